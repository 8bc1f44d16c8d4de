// Package boa is BOA Constrictor (Li, Berg, Mukhopadhyay and Harchol-Balter, arXiv 2602.01404): renting GPUs to a budget.
//
// It decides how many GPUs to rent and how wide each job runs, from one price of GPU time: a job takes the width that
// makes its own delay, plus the price of what it holds, least. Nobody queues; the size of the cluster follows from the widths.
//
// The paper's text was not at hand beyond its abstract: the theory is that of the authors' earlier paper (EPEW 2024, arXiv
// 2406.15560), the running of it that of their code. See docs/papers/boa.md.
package boa

import (
	"time"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/model/price"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/allocate"
	"github.com/trainyard/trainyard/stage/order"
	"github.com/trainyard/trainyard/stage/provision"
)

// Params is what the system assumes and what it may spend.
type Params struct {
	Budget  float64 // GPUs rented on average, > 0
	Curves  speedup.Source
	Known   []speedup.Class // rates of arrival and curves by application: perfect information; nil = estimated
	Priced  bool            // steer the price by what was spent, and know no rates at all
	Glue    bool            // widths by the authors' search, not by the exact program
	Restart func(model string) time.Duration
	Seed    uint64 // of that search
	PerNode int
	Keep    time.Duration // a node that is not needed is kept so long
	Most    int32         // nodes at most; 0 = what the pools allow
}

// Cycle is how often the authors' allocator decides.
const Cycle = time.Minute

// Exact runs every job on the optimal path through its phases, restarts counted, as soon as anything happens. The error is
// an infeasible budget.
func Exact(p Params, place sched.Placer) (engine.Stages, error) {
	w, err := newWidths(p)
	if err != nil {
		return engine.Stages{}, err
	}
	return w.stages(place, allocate.ByWidth{Wants: w, Soon: w.soon}), nil
}

// Published is the system as its authors run it: decisions every minute, widths by their search, partial widths where
// GPUs are short.
func Published(p Params, place sched.Placer) (engine.Stages, error) {
	p.Glue = true
	w, err := newWidths(p)
	if err != nil {
		return engine.Stages{}, err
	}
	s := w.stages(place, allocate.ByWidth{Wants: w, Partial: true})
	s.Round = Cycle
	return s, nil
}

func (w *widths) stages(place sched.Placer, by allocate.ByWidth) engine.Stages {
	rent := &provision.Rent{Demand: &provision.Wanted{Wants: w}, Keep: w.p.Keep, Most: w.p.Most}
	parts := engine.Parts{Learn: []sched.Observer{w}, Provision: []sched.Provisioner{rent}}
	if l, ok := w.p.Curves.(sched.Observer); ok {
		parts.Learn = append([]sched.Observer{l}, parts.Learn...)
	}
	return engine.Stages{Order: order.FIFO{}, Place: place, Allocate: watching{by}, Parts: parts}
}

// watching has the epochs of all jobs watched: where one ends, the width may change.
type watching struct{ allocate.ByWidth }

// Allocate is that of ByWidth.
func (w watching) Allocate(v *sched.View, room []int32, order []sched.JobID, d *sched.Desired, dst []sched.Grant) []sched.Grant {
	for _, j := range order {
		if !v.Jobs[j].Watched {
			d.Watch = append(d.Watch, sched.Watch{Job: j, On: true})
		}
	}
	w.Wants.(*widths).refresh(v, d)
	return w.ByWidth.Allocate(v, room, order, d, dst)
}

// soon reports whether nodes boot that are there before a job has restarted.
func (w *widths) soon(v *sched.View) bool {
	for i := range v.Pools {
		if p := &v.Pools[i]; p.Ordered > p.Nodes && p.Spec.Boot <= w.p.Restart("") {
			return true
		}
	}
	return false
}

var _ allocate.Wants = (*widths)(nil)

// cheapest is the price at which every job takes the width that costs least GPU time.
const cheapest = 1e9

// classOf turns an application into a class of the price's.
func classOf(c speedup.Class, restart time.Duration) price.Class {
	out := price.Class{Name: c.Model, Rate: c.Rate, Restart: restart.Seconds()}
	for k := 1; k < len(c.Chain[0].Speed); k++ {
		out.Configs = append(out.Configs, price.Config{GPUs: k})
	}
	for _, phase := range c.Chain {
		out.Times = append(out.Times, times(phase))
	}
	return out
}
