package boa

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"math"

	"github.com/trainyard/trainyard/internal/memo"
	"github.com/trainyard/trainyard/sched"
)

var _ sched.Memory = (*widths)(nil)

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
	b = memo.Uint(memo.Uint(memo.Uint(memo.Uint(b, uint64(r.version)), uint64(r.from)), flags), uint64(r.gpus))
	for _, i := range r.path {
		b = memo.Uint(b, uint64(i))
	}
	return b
}

// LoadJob takes what SaveJob wrote.
func (w *widths) LoadJob(j sched.JobID, b []byte) error {
	m := memo.NewReader(b)
	r := route{version: uint32(m.Uint(math.MaxUint32)), from: int32(m.Uint(math.MaxInt32))}
	flags := m.Uint(3)
	r.fresh, r.ahead, r.gpus = flags&1 != 0, flags&2 != 0, int32(m.Uint(math.MaxInt32))
	for m.Len() > 0 && m.Err() == nil {
		r.path = append(r.path, int(m.Uint(math.MaxInt32)))
	}
	if err := m.End(); err != nil {
		return fmt.Errorf("boa: memory of a job: %w", err)
	}
	*w.route(j) = r
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
