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

// Format names what is saved.
func (*widths) Format() string { return "boa/2" }

// SaveJob appends the path of job j; nothing of a job that is done or has none.
func (w *widths) SaveJob(j sched.JobID, b []byte) []byte {
	if int(j) >= len(w.jobs) || len(w.jobs[j].path) == 0 {
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
		if n <= 0 || x > 1<<31-1 {
			return errMemory
		}
		list, b = append(list, x), b[n:]
	}
	if len(list) < 3 {
		return errMemory
	}
	r := w.route(j)
	*r = route{version: uint32(list[0]), from: int32(list[1])}
	for _, i := range list[2:] {
		r.path = append(r.path, int(i))
	}
	return nil
}

// SaveRest appends the plan and what it was made from, or the price.
func (w *widths) SaveRest(b []byte) []byte {
	s := w.state
	if w.control != nil {
		s.Control = w.control.Save(nil)
	}
	var buf bytes.Buffer
	if err := gob.NewEncoder(&buf).Encode(&s); err != nil {
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
	s.Control = nil
	w.state, w.plans = s, nil
	return nil
}
