// Package boa is BOA Constrictor (Li, Berg, Mukhopadhyay and Harchol-Balter, arXiv 2602.01404): renting GPUs to a
// budget.
//
// It decides how many GPUs to rent and how wide each job runs, from one price of GPU time: a job takes the widths that
// make its own delay, plus the price of what it holds, least. No one queues; the size of the cluster follows from the
// widths. Jobs choose their batch sizes, as in AdaptDL, which changes them without a restart.
//
// The paper's text was not at hand beyond its abstract: the theory is that of the authors' earlier paper (EPEW 2024,
// arXiv 2406.15560), the running of it that of their code. See docs/papers/boa.md.
package boa

import (
	"math"
	"slices"
	"time"

	"github.com/trainyard/trainyard/model/price"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/allocate"
	"github.com/trainyard/trainyard/stage/order"
	"github.com/trainyard/trainyard/stage/provision"
)

// Known is what the systems know of jobs and nodes.
type Known struct {
	Curves speedup.Source // how fast jobs go
	// rates of arrival and curves by application: perfect information; nil: not known
	Mix     []speedup.Class
	Restart func(model string) time.Duration // what a restart costs
	PerNode int                              // GPUs of a node
	Boot    time.Duration                    // of a rented node
}

// Params is what the system knows and what it may spend. Where rates are neither known nor priced they are estimated.
type Params struct {
	Known
	Budget float64         // GPUs rented on average, > 0
	Month  price.MonthRule // GPU-hours by calendar month instead; its zero value = none. It needs Priced
	Epoch  int64           // seconds since 1970 at time 0, for months
	Fixed  bool            // follow plans whatever they turn out to cost, as the theory has it
	Priced bool            // steer the price by what was spent, and know no rates at all
	// a step of a job's priority multiplies by it what the job's delay is worth; 0 = 1: priorities play no part
	Weight float64
	Seed   uint64 // of the authors' search
	Rent   provision.Rent
	// Unsaved says which jobs keep the width that they start with, and the node that they are on.
	Unsaved sched.Unsaved

	plan        planner // how widths are found
	asPublished bool    // when they are found again, and from what
}

// Cycle is how often the authors' allocator decides.
const Cycle = time.Minute

// Exact runs every job on the optimal path through its phases, restarts counted, as soon as anything happens. The error
// is an infeasible budget.
func Exact(p Params, place sched.Placer) (pipeline.Stages, error) {
	p.plan = exactly
	return soonest(p, place)
}

// Equal gives all jobs the same number of GPUs, or the nearest below at which they run: as many as the budget pays for.
// It is a baseline.
func Equal(p Params, place sched.Placer) (pipeline.Stages, error) {
	p.plan = equally
	return soonest(p, place)
}

// soonest decides as soon as anything happens.
func soonest(p Params, place sched.Placer) (pipeline.Stages, error) {
	w, err := newWidths(p)
	if err != nil {
		return pipeline.Stages{}, err
	}
	return w.stages(place, allocate.ByWidth{Wants: w, Soon: w.soon}), nil
}

// Published is the system as its authors run it: decisions every minute, widths by their search, partial widths where
// GPUs are short.
func Published(p Params, place sched.Placer) (pipeline.Stages, error) {
	p.plan, p.asPublished = published, true
	w, err := newWidths(p)
	if err != nil {
		return pipeline.Stages{}, err
	}
	s := w.stages(place, allocate.ByWidth{Wants: w, Partial: true})
	s.Round = Cycle
	return s, nil
}

func (w *widths) stages(place sched.Placer, by allocate.ByWidth) pipeline.Stages {
	parts := w.renting().Parts()
	if l, ok := w.p.Curves.(sched.Observer); ok {
		parts.Learn = []sched.Observer{l, w}
	}
	return pipeline.Stages{Order: order.FIFO{}, Place: place, Allocate: granting{by, w}, Parts: parts}
}

// granting gives out widths, unless the month's money is used up, and has the epochs of jobs watched whose width is
// going to change.
type granting struct {
	allocate.ByWidth
	w *widths
}

var _ sched.Reviser = granting{}

// Allocate is that of ByWidth.
func (g granting) Allocate(v *sched.View, room []int32, order []sched.JobID, d *sched.Desired,
	dst []sched.Grant) []sched.Grant {
	if g.w.spend.stopped() {
		return dst
	}
	for _, j := range order {
		if on := g.w.changes(v, j); on != v.Jobs[j].Watched {
			d.Watch = append(d.Watch, sched.Watch{Job: j, On: on})
		}
	}
	return g.ByWidth.Allocate(v, room, order, d, dst)
}

// Revision changes when all widths may have.
func (g granting) Revision() uint64 { return uint64(g.w.version()) }

// toMove returns what a restart of job j costs, in GPU-seconds: the GPUs it holds meanwhile, and its delay at the price
// of now.
func (w *widths) toMove(v *sched.View, j sched.JobID) float64 {
	job := &v.Jobs[j]
	if w.p.Unsaved.Protects(job) {
		return math.Inf(1)
	}
	return w.p.Restart(job.Spec.Model).Seconds() * (float64(len(job.Target)) + w.menu.weight(job.Spec)/w.price())
}

// clock wakes the system when plan or price are to be looked at again.
type clock struct {
	w    *widths
	jobs *provision.Present
}

// Provision asks to be woken while jobs hold GPUs, or may not. Otherwise there is nothing to decide, and a job that can
// never run would keep a simulation going for ever.
func (c *clock) Provision(v *sched.View, d *sched.Desired) {
	jobs := c.jobs.Jobs(v)
	holds := func(j sched.JobID) bool { return len(v.Jobs[j].Target) > 0 }
	if slices.ContainsFunc(jobs, holds) || len(d.Jobs) > 0 || len(jobs) > 0 && c.w.spend.stopped() {
		d.WakeBy(c.w.next())
	}
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
