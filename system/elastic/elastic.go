// Package elastic lists the systems that resize jobs: elastic scaling (Saxena, Jayaram, Basu, Sabharwal, Verma, MASCOTS
// 2020), and those that it is measured against. All see arrivals, speeds by width and what jobs ask for; which of them
// know remaining work says their constructor.
//
// See docs/papers/elastic.md for what is known of the paper and what is ours.
package elastic

import (
	"time"

	"github.com/trainyard/trainyard/model/elastic"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/allocate"
	"github.com/trainyard/trainyard/stage/order"
	"github.com/trainyard/trainyard/stage/place"
	"github.com/trainyard/trainyard/stage/provision"
)

// Known is what all of the systems know of jobs.
type Known struct {
	Speeds  speedup.Source                   // by width and batch size, learned or by an oracle
	Restart func(model string) time.Duration // what a restart costs
}

// KnownWork is what the systems that weigh remaining work know.
type KnownWork struct {
	Known
	Work sched.Remainer
}

// Params are what the systems have in common.
type Params struct {
	Batch    *elastic.BatchRule // by which a job has a fixed batch size; nil: the best at each width
	Seed     uint64             // of elastic.BatchRandom
	LR       allocate.LRRule
	Most     int32         // widest any job may be; 0: what it says itself
	Horizon  time.Duration // in which a restart must pay for itself; 0: restarts are not counted
	Place    sched.Placer
	Interval time.Duration // between decisions; 0: at events
	Unsaved  sched.Unsaved // who keeps the width that it starts with
	Pays     bool          // FIFO, AFSL and Optimus resize only where that pays for the restart; false: as published
}

// rates are what divisions go by.
func (p Params) rates(k Known) *allocate.Rates {
	return &allocate.Rates{Curves: k.Speeds, Restart: k.Restart, Batch: p.Batch, Seed: p.Seed, LR: p.LR, Most: p.Most,
		Horizon: p.Horizon, Unsaved: p.Unsaved}
}

// weighed is rates with the work that is left.
func (p Params) weighed(k KnownWork) *allocate.Rates {
	r := p.rates(k.Known)
	r.Work = k.Work
	return r
}

// Sum is elastic scaling: those who came first take part as far as their fewest GPUs go, and the sum of scaling factors
// of all who do is made as large as can be. Who runs is squeezed, never evicted.
func Sum(k Known, p Params, mode elastic.Mode, fairness float64) pipeline.Stages {
	return p.stages(&allocate.Divide{Rates: p.rates(k), Rule: &allocate.Sum{Fairness: fairness}, Admits: true,
		Mode: mode})
}

// FIFO is elastic FIFO: minima in the order of arrival, then equal growth.
func FIFO(k Known, p Params) pipeline.Stages {
	return p.stages(&allocate.Divide{Rates: p.rates(k), Rule: p.paying(allocate.Evenly{})})
}

// AFSL is AFS-L.
func AFSL(k KnownWork, p Params) pipeline.Stages {
	return p.stages(&allocate.Divide{Rates: p.weighed(k), Rule: p.paying(allocate.AFSL{})})
}

// Optimus is Optimus' marginal gains.
func Optimus(k KnownWork, p Params) pipeline.Stages {
	return p.stages(&allocate.Divide{Rates: p.weighed(k), Rule: p.paying(allocate.Optimus{})})
}

// paying returns the rule, or one that has resizes pay.
func (p Params) paying(r allocate.Rule) allocate.Rule {
	if p.Pays {
		return allocate.Paying{Rule: r}
	}
	return r
}

// PolluxRound is how often Pollux decides.
const PolluxRound = time.Minute

// Pollux makes the power mean of the jobs' speedups over their fair share as large as can be, restarts counted, every
// minute unless p says otherwise. perNode is the GPUs of a node, > 0.
func Pollux(k Known, p Params, perNode int) pipeline.Stages {
	if p.Interval == 0 {
		p.Interval = PolluxRound
	}
	seen := &allocate.Widest{}
	s := p.stages(&allocate.Divide{Rates: p.rates(k),
		Rule: &allocate.Pollux{PerNode: perNode, Restart: k.Restart, Seen: seen}})
	s.Learn = append(s.Learn, seen)
	return s
}

// PolluxAutoscale is Pollux on as many nodes as its utility is worth, at most so many; the others are let go, or stay
// idle where they are owned.
func PolluxAutoscale(k Known, p Params, utility float64, perNode, most int, rent provision.Rent) pipeline.Stages {
	s := Pollux(k, p, perNode)
	by := s.Allocate.(*allocate.Divide)
	scale := &allocate.Autoscale{Divide: by, Pollux: by.Rule.(*allocate.Pollux), Utility: utility, Most: most,
		Interval: s.Round}
	rent.Demand, rent.Drain = provision.Reported(scale.GPUs), true
	s.Allocate, s.Provision = scale, append(s.Provision, scale, &rent)
	s.Replace, s.Move = true, unmoved{} // off the nodes that drain
	return s
}

// unmoved finds no move worth a restart: only who cannot stay moves.
type unmoved struct{}

// Worth reports false.
func (unmoved) Worth(*sched.View, sched.JobID, []sched.GPUID, []sched.GPUID) bool { return false }

func (p Params) stages(by *allocate.Divide) pipeline.Stages {
	s := pipeline.Stages{Order: order.FIFO{}, Place: &place.OneType{By: p.Place, Of: by.TypeOf}, Allocate: by,
		Round: p.Interval, Restless: p.Interval > 0,
		Block: true} // who could never fit is passed over, or rejected, by the rule
	for _, part := range []any{by.Rates.Curves, p.Place} {
		if l, ok := part.(sched.Observer); ok {
			s.Learn = append(s.Learn, l)
		}
	}
	return s
}
