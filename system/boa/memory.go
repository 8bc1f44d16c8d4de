package boa

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"math"
	"time"

	"github.com/trainyard/trainyard/internal/memo"
	"github.com/trainyard/trainyard/model/price"
	"github.com/trainyard/trainyard/sched"
)

var (
	_ sched.Memory  = (*widths)(nil)
	_ sched.Changer = (*widths)(nil)
)

// Changed appends the jobs that were looked at again: that another event of theirs is to be looked at, it names itself.
func (w *widths) Changed(dst []sched.JobID) (list []sched.JobID, known bool) {
	return w.changed.Changed(dst)
}

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

// state is what is saved of all jobs together. The names of it and its fields are part of the format.
type state struct {
	Version uint32 // of the plan, or of the price
	Began   sched.Time
	Estimates
	Meter    meter
	Reported float64 `json:"Told"` // price at which the present version was made
	Control  []byte  // of the controller
}

// Estimates is what is saved of the plan and what it was made from.
type Estimates struct {
	Plan    *price.Plan
	Classes []price.Class
	Credit  []float64
	Asked   float64
	Seen    []seen
	Period  time.Duration
	Due     sched.Time
	Look    sched.Time
	Looked  sched.Time
	Factor  float64
}

// SaveRest appends the plan and what it was made from, or the price.
func (w *widths) SaveRest(b []byte) []byte {
	p, s := &w.plan, &w.spend
	out := state{Version: w.version(), Began: w.began, Meter: s.meter, Reported: s.reported,
		Estimates: Estimates{Plan: p.plan, Classes: p.classes, Credit: p.credit, Asked: p.asked, Seen: w.seen,
			Period: p.period, Due: p.due, Look: s.look, Looked: s.looked, Factor: p.factor}}
	if s.control != nil {
		out.Control = s.control.Save(nil)
	}
	var buf bytes.Buffer
	if err := gob.NewEncoder(&buf).Encode(&out); err != nil {
		panic(fmt.Sprintf("boa: save: %v", err)) // a buffer takes all
	}
	return append(b, buf.Bytes()...)
}

// LoadRest takes what SaveRest wrote.
func (w *widths) LoadRest(b []byte) error {
	var in state
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(&in); err != nil {
		return fmt.Errorf("boa: load: %w", err)
	}
	p, s := &w.plan, &w.spend
	if s.control != nil {
		if err := s.control.Load(in.Control); err != nil {
			return err
		}
		s.version = in.Version
	} else {
		p.version = in.Version
	}
	w.began, w.seen = in.Began, in.Seen
	p.plan, p.classes, p.credit, p.asked, p.factor = in.Plan, in.Classes, in.Credit, in.Asked, in.Factor
	p.period, p.due, p.plans = in.Period, in.Due, nil
	s.meter, s.reported, s.look, s.looked = in.Meter, in.Reported, in.Look, in.Looked
	return nil
}
