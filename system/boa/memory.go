package boa

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"math"

	"github.com/trainyard/trainyard/internal/memo"
	"github.com/trainyard/trainyard/model/price"
	"github.com/trainyard/trainyard/sched"
)

var _ sched.Memory = (*widths)(nil)

// Format names what is saved.
func (*widths) Format() string { return "boa/2" }

// SaveJob appends the path of job j; nothing of a job that is done or has none.
func (w *widths) SaveJob(j sched.JobID, b []byte) []byte {
	if int(j) >= len(w.jobs) || len(w.jobs[j].path) == 0 {
		return b
	}
	r := &w.jobs[j]
	b = memo.Uint(memo.Uint(b, uint64(r.version)), uint64(r.from))
	for _, i := range r.path {
		b = memo.Uint(b, uint64(i))
	}
	return b
}

// LoadJob takes what SaveJob wrote.
func (w *widths) LoadJob(j sched.JobID, b []byte) error {
	m := memo.NewReader(b)
	r := route{version: uint32(m.Uint(math.MaxUint32)), from: int32(m.Uint(math.MaxInt32)), path: price.Path{int(m.Uint(math.MaxInt32))}}
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
