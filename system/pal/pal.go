// Package pal is the system of Jain et al., "PAL: A Variability-Aware Policy for Scheduling ML Workloads in GPU Clusters",
// SC'24: placement on exact GPUs by class of application, PM score and locality, under any order of jobs.
//
// It changes where jobs run. Who runs is the longest prefix of the order that the cluster has GPUs for. All of them are
// placed anew at every round, those of sensitive classes first; one moves only if that is worth a restart.
package pal

import (
	"time"

	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/allocate"
	"github.com/trainyard/trainyard/stage/place"
)

// Knowledge is what the system assumes to be known.
type Knowledge struct {
	Scores  *place.Scores
	Penalty place.Penalty
	// Tolerance is by how much a single GPU may be slower than the fastest one to spare a node; see place.PAL.
	Tolerance float64
	Work      sched.Remainer  // nil = a job is expected to go on for as long as it has run
	Observed  *place.Observed // where Scores has the classes of jobs from; nil = from elsewhere
}

// Options say how far the system goes. The zero value is as published.
type Options struct {
	MoveCost time.Duration // a job moves if it gains more
	// Restart is MoveCost by model, where that is known; nil = it is not.
	Restart      func(model string) time.Duration
	ReplaceEvery time.Duration   // all are placed anew in the first round at or after each multiple of it; 0 = in every round
	Grants       sched.Allocator // who runs; nil = allocate.Prefix, the longest prefix of the order
}

// FirstRound is the default time between placements. Source: blox-pal, 300 s.
const FirstRound = 300 * time.Second

// PAL places the jobs of a system by L x V.
func PAL(of pipeline.Stages, k Knowledge, o Options) pipeline.Stages {
	of.Place = place.PAL{Scores: k.Scores, Penalty: k.Penalty, Tolerance: k.Tolerance}
	return replacing(of, k, o)
}

// PMFirst places the jobs of a system on the fastest GPUs, wherever they are.
func PMFirst(of pipeline.Stages, k Knowledge, o Options) pipeline.Stages {
	of.Place = place.PMFirst{Scores: k.Scores}
	return replacing(of, k, o)
}

func replacing(of pipeline.Stages, k Knowledge, o Options) pipeline.Stages {
	if k.Observed != nil {
		of.Learn = append(of.Learn, k.Observed)
	}
	grants := o.grants()
	if l, ok := grants.(sched.Observer); ok {
		of.Learn = append(of.Learn, l)
	}
	of.Allocate = allocate.ByClass{Grants: grants, Class: k.Scores.Class}
	of.Admit, of.Replace, of.Quantum = nil, true, 0
	of.Move, of.ReplaceEvery = worth{k, o}, o.ReplaceEvery
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
	k Knowledge
	o Options
}

var _ sched.Mover = worth{}

// Worth reports whether the time gained is more than the cost.
func (w worth) Worth(v *sched.View, j sched.JobID, was, now []sched.GPUID) bool {
	job := v.Job(j)
	left := job.RunNow(v.Now)
	if w.k.Work != nil {
		left = w.k.Work.Remaining(v, j)
	}
	price := w.o.MoveCost
	if w.o.Restart != nil {
		price = w.o.Restart(job.Spec.Model)
	}
	here, there := w.k.cost(v, j, was), w.k.cost(v, j, now)
	return float64(left)*(here-there) > float64(price)*there && there < here
}

// cost is the time of an iteration on gpus over the nominal one, as far as is known.
func (k Knowledge) cost(v *sched.View, j sched.JobID, gpus []sched.GPUID) float64 {
	x := k.Scores.Slowest(k.Scores.Class(v, j), gpus)
	return x * k.Penalty(v, j, len(gpus))[place.Distance(v, gpus)]
}

// Expected returns what an iteration of a job on gpus takes over the nominal one by the PM scores themselves, which must be
// those that k was made from.
func (k Knowledge) Expected(s *variability.Scores) func(v *sched.View, j sched.JobID, gpus []sched.GPUID) float64 {
	return func(v *sched.View, j sched.JobID, gpus []sched.GPUID) float64 {
		pm, worst := s.PM[k.Scores.Class(v, j)], 0.0
		for _, g := range gpus {
			if int(g) < len(pm) {
				worst = max(worst, pm[g])
			}
		}
		if worst == 0 {
			worst = 1
		}
		return worst * k.Penalty(v, j, len(gpus))[place.Distance(v, gpus)]
	}
}

// Class returns the class of a job among classes: that of its model on the map, nil = none, else what its submitter said,
// else that of its model in the published experiments, else the first, the most sensitive.
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

// Locality is what is known of distance by a table whose rows speak of models and of the classes that of tells, named by
// names.
func Locality(table variability.Locality, names []string, of place.ClassOf) place.Penalty {
	return func(v *sched.View, j sched.JobID, n int) (p place.Penalties) {
		class := names[of(v, j)]
		for level := range p {
			p[level] = table.Penalty(v.Jobs[j].Spec.Model, class, n, variability.Level(level))
		}
		return p
	}
}
