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
func (*widths) Format() string { return "boa/3" }

// SaveJob appends the path of job j and what follows from it; nothing of a job that was never looked at.
func (w *widths) SaveJob(j sched.JobID, b []byte) []byte {
	if int(j) >= len(w.jobs) || w.jobs[j].version == 0 {
		return b
	}
	r := &w.jobs[j]
	flags := uint64(0)
	if r.fresh {
		flags |= 1
	}
	if r.ahead {
		flags |= 2
	}
	for _, x := range []uint64{uint64(r.version), uint64(r.from), flags, uint64(r.gpus)} {
		b = binary.AppendUvarint(b, x)
	}
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
	if len(list) < 4 || list[2] > 3 {
		return errMemory
	}
	r := w.route(j)
	*r = route{version: uint32(list[0]), from: int32(list[1]), fresh: list[2]&1 != 0, ahead: list[2]&2 != 0, gpus: int32(list[3])}
	for _, i := range list[4:] {
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
