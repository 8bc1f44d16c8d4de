package boa

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"

	"github.com/trainyard/trainyard/sched"
)

var _ sched.Memory = (*widths)(nil)

var errMemory = errors.New("boa: memory of a job is cut short")

// SaveJob appends the path of job j.
func (w *widths) SaveJob(j sched.JobID, b []byte) []byte {
	if int(j) >= len(w.jobs) || w.jobs[j].version == 0 {
		return b
	}
	r := &w.jobs[j]
	b = binary.AppendUvarint(b, uint64(r.version))
	b = binary.AppendUvarint(b, uint64(r.from))
	for _, i := range r.path {
		b = binary.AppendUvarint(b, uint64(i))
	}
	return b
}

// LoadJob takes what SaveJob wrote.
func (w *widths) LoadJob(j sched.JobID, b []byte) error {
	var list []uint64
	for len(b) > 0 {
		x, n := binary.Uvarint(b)
		if n <= 0 {
			return errMemory
		}
		list, b = append(list, x), b[n:]
	}
	if len(list) < 2 {
		return errMemory
	}
	for int(j) >= len(w.jobs) {
		w.jobs = append(w.jobs, route{})
	}
	r := &w.jobs[j]
	r.version, r.from, r.path = uint32(list[0]), int32(list[1]), nil
	for _, i := range list[2:] {
		r.path = append(r.path, int(i))
	}
	return nil
}

// SaveRest appends the plan and what it was made from, or the price.
func (w *widths) SaveRest(b []byte) []byte {
	if w.control != nil {
		w.Control = w.control.Save(nil)
	}
	var buf bytes.Buffer
	if err := gob.NewEncoder(&buf).Encode(&w.state); err != nil {
		panic(fmt.Sprintf("boa: save: %v", err)) // a buffer takes all
	}
	return append(b, buf.Bytes()...)
}

// LoadRest takes what SaveRest wrote.
func (w *widths) LoadRest(b []byte) error {
	var s state
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(&s); err != nil {
		return fmt.Errorf("boa: load: %w", err)
	}
	if w.control != nil {
		if err := w.control.Load(s.Control); err != nil {
			return err
		}
	}
	w.state = s
	return nil
}
