// Package pal is the system of Jain et al., "PAL: A Variability-Aware Policy for Scheduling ML Workloads in GPU
// Clusters", SC'24: placement on exact GPUs by class of application, PM score and locality, under any order of jobs.
//
// It changes where jobs run. Who runs is the longest prefix of the order that the cluster has GPUs for. All of them are
// placed again at every round, those of sensitive classes first; one moves only if that is worth a restart.
package pal

import (
	"time"

	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/allocate"
	"github.com/trainyard/trainyard/stage/place"
	"github.com/trainyard/trainyard/stage/watch"
)

// Known is what is known of jobs and GPUs.
type Known struct {
	Work    sched.Remainer                   // what jobs have left to do; nil: as much as they have done
	Restart func(model string) time.Duration // what a restart costs, where that is learned; nil: Options say
	Scores  *variability.Scores              // PM scores of the GPUs by number
	// of models, among the classes of the scores; nil: what jobs say, else what was published
	Classes *variability.ClassMap
	// Locality is what distance costs, by model or class; nil: Options say.
	Locality *variability.Locality
	Slow     watch.Truth // which GPUs are slow for a while; nil: unknown
}

// Beliefs are what the system takes to be true of jobs on GPUs.
type Beliefs struct {
	Scores    *place.Scores
	Penalty   place.Penalty
	Work      sched.Remainer                   // see Known
	Restart   func(model string) time.Duration // see Known
	Observed  *place.Observed                  // where Scores has the classes of jobs from; nil: from elsewhere
	PM        *variability.Scores              // what Scores was made from
	Tolerance float64                          // see Options
}

// Beliefs follow from what is known.
func (k Known) Beliefs(o Options) Beliefs {
	b := Beliefs{Work: k.Work, Restart: k.Restart, PM: k.Scores, Tolerance: o.Tolerance}
	class := place.BySpec(Class(k.Scores.Classes, k.Classes))
	if o.Observe {
		b.Observed = place.NewObserved(k.Scores)
		class = b.Observed.Class
	}
	b.Scores = place.NewScores(variability.Rule{}.All(k.Scores), class)
	across := max(o.Across, 1)
	b.Penalty = place.TwoLevel(across)
	if k.Locality != nil {
		b.Penalty = Locality(k.Locality.OrElse(across), k.Scores.Classes, class)
	}
	return b
}

// Options say how far the system goes. The zero value is as published.
type Options struct {
	MoveCost time.Duration // a job moves if it gains more; what is known of restarts comes first
	// all are placed again in the first round at or after each multiple of it; 0: in every round
	ReplaceEvery time.Duration
	Grants       sched.Allocator // who runs; nil: allocate.Prefix, the longest prefix of the order
	// by how much a single GPU may be slower than the fastest one to spare a node; see place.PAL
	Tolerance float64
	Across    float64 // what distance costs where no table says; < 1: nothing
	Observe   bool    // jobs are of the class that their speeds show
}

// FirstRound is the default time between placements. Source: blox-pal, 300 s.
const FirstRound = 300 * time.Second

// PAL places the jobs of a system by L x V.
func PAL(of pipeline.Stages, b Beliefs, o Options) pipeline.Stages {
	of.Place = place.PAL{Scores: b.Scores, Penalty: b.Penalty, Tolerance: b.Tolerance}
	return replacing(of, b, o)
}

// PMFirst places the jobs of a system on the fastest GPUs, wherever they are.
func PMFirst(of pipeline.Stages, b Beliefs, o Options) pipeline.Stages {
	of.Place = place.PMFirst{Scores: b.Scores}
	return replacing(of, b, o)
}

func replacing(of pipeline.Stages, b Beliefs, o Options) pipeline.Stages {
	if b.Observed != nil {
		of.Learn = append(of.Learn, b.Observed)
	}
	grants := o.grants()
	if l, ok := grants.(sched.Observer); ok {
		of.Learn = append(of.Learn, l)
	}
	of.Allocate = allocate.ByClass{Grants: grants, Class: b.Scores.Class}
	of.Admit, of.Replace, of.Quantum = nil, true, 0
	of.Move, of.ReplaceEvery = worth{b, o.MoveCost}, o.ReplaceEvery
	of.Round = FirstRound
	return of
}

func (o *Options) grants() sched.Allocator {
	if o.Grants == nil {
		return allocate.Prefix{}
	}
	return o.Grants
}

// Packed places the jobs of a system on as few nodes as are free, again at every round: packed, non-sticky.
func Packed(of pipeline.Stages, o Options) pipeline.Stages {
	of.Place, of.Allocate, of.Admit = place.Packed{}, o.grants(), nil
	of.ReplaceEvery = o.ReplaceEvery
	of.Replace, of.Quantum, of.Round = true, 0, FirstRound
	return of
}

// PackedSticky places jobs on as few nodes as are free; those that run keep their GPUs.
func PackedSticky(of pipeline.Stages, o Options) pipeline.Stages {
	of.Place, of.Allocate, of.Admit = place.Packed{}, o.grants(), nil
	of.Quantum, of.Round = 0, FirstRound
	return of
}

// worth weighs moves: what is left to do gets shorter by the ratio of L x V there and here, and costs a restart.
type worth struct {
	b    Beliefs
	cost time.Duration
}

var _ sched.Mover = worth{}

// Worth reports whether the time gained is more than the cost.
func (w worth) Worth(v *sched.View, j sched.JobID, was, now []sched.GPUID) bool {
	job := v.Job(j)
	left := job.RunNow(v.Now)
	if w.b.Work != nil {
		left = w.b.Work.Remaining(v, j)
	}
	price := w.cost
	if w.b.Restart != nil {
		price = w.b.Restart(job.Spec.Model)
	}
	here, there := w.b.cost(v, j, was), w.b.cost(v, j, now)
	return float64(left)*(here-there) > float64(price)*there && there < here
}

// cost is the time of an iteration on gpus over the nominal one, as far as is known.
func (b Beliefs) cost(v *sched.View, j sched.JobID, gpus []sched.GPUID) float64 {
	x := b.Scores.Slowest(b.Scores.Class(v, j), gpus)
	return x * b.Penalty(v, j, len(gpus))[place.Distance(v, gpus)]
}

// Slowdown returns what an iteration of a job on gpus takes over the nominal one by its binned scores and by distance.
func (b Beliefs) Slowdown(v *sched.View, j sched.JobID, gpus []sched.GPUID) float64 {
	return b.cost(v, j, gpus)
}

// Expected returns what an iteration of a job on gpus takes over the nominal one by the PM scores themselves.
func (b Beliefs) Expected(v *sched.View, j sched.JobID, gpus []sched.GPUID) float64 {
	pm, worst := b.PM.PM[b.Scores.Class(v, j)], 0.0
	for _, g := range gpus {
		if int(g) < len(pm) {
			worst = max(worst, pm[g])
		}
	}
	if worst == 0 {
		worst = 1
	}
	return worst * b.Penalty(v, j, len(gpus))[place.Distance(v, gpus)]
}

// Class returns the class of a job among classes: that of its model on the map, nil = none, else what its submitter
// said, else that of its model in the published experiments, else the first, the most sensitive.
func Class(classes []string, models *variability.ClassMap) func(*sched.JobSpec) int {
	number := make(map[string]int, len(classes))
	for c, name := range classes {
		number[name] = c
	}
	if models == nil {
		models = &variability.ClassMap{}
	}
	return func(spec *sched.JobSpec) int {
		mapped, _ := models.Class(spec.Model)
		for _, name := range [...]string{mapped, spec.Class} {
			if c, ok := number[name]; ok {
				return c
			}
		}
		name, _ := variability.Published(spec.Model)
		return number[name] // 0 where the table has no such class
	}
}

// Locality is what is known of distance by a table whose rows speak of models and of the classes that of returns, named
// by names.
func Locality(table variability.Locality, names []string, of place.ClassOf) place.Penalty {
	return func(v *sched.View, j sched.JobID, n int) (p place.Penalties) {
		class := names[of(v, j)]
		for level := range p {
			p[level] = table.Penalty(v.Jobs[j].Spec.Model, class, n, variability.Level(level))
		}
		return p
	}
}
