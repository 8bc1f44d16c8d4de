// Package pal is the system of Jain et al., "PAL: A Variability-Aware Policy for Scheduling ML Workloads in GPU Clusters",
// SC'24: placement on exact GPUs by class of application, PM score and locality, under any order of jobs.
//
// It changes where jobs run. Who runs is the longest prefix of the order that the cluster has GPUs for. All of them are
// placed anew at every round, those of sensitive classes first; one moves only if that is worth a restart.
package pal

import (
	"time"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/allocate"
	"github.com/trainyard/trainyard/stage/place"
)

// Knowledge is what the system assumes to be known.
type Knowledge struct {
	Scores *place.Scores
	Across func(spec *sched.JobSpec, n int) float64 // locality penalty of n GPUs on several nodes, >= 1
	// Tolerance is by how much a single GPU may be slower than the fastest one to spare a node; see place.PAL.
	Tolerance float64
	Work      sched.Remainer // nil = a job is expected to go on for as long as it has run
}

// FirstRound is the default time between placements. Source: blox-pal, 300 s.
const FirstRound = 300 * time.Second

// PAL places the jobs of a system by L x V.
func PAL(of engine.Stages, k Knowledge, moveCost time.Duration) engine.Stages {
	of.Place = place.PAL{Scores: k.Scores, Across: k.Across, Tolerance: k.Tolerance}
	return replacing(of, k, moveCost)
}

// PMFirst places the jobs of a system on the fastest GPUs, wherever they are.
func PMFirst(of engine.Stages, k Knowledge, moveCost time.Duration) engine.Stages {
	of.Place = place.PMFirst{Scores: k.Scores}
	return replacing(of, k, moveCost)
}

func replacing(of engine.Stages, k Knowledge, moveCost time.Duration) engine.Stages {
	of.Allocate = allocate.ByClass{Grants: allocate.Prefix{}, Class: k.Scores.Class}
	of.Admit, of.Replace, of.Quantum = nil, true, 0
	of.Move = worth{k, moveCost}
	of.Round = FirstRound
	return of
}

// Packed places the jobs of a system on as few nodes as are free, again at every round: packed, non-sticky.
func Packed(of engine.Stages) engine.Stages {
	of.Place, of.Allocate, of.Admit = place.Packed{}, allocate.Prefix{}, nil
	of.Replace, of.Quantum, of.Round = true, 0, FirstRound
	return of
}

// PackedSticky places jobs on as few nodes as are free; those that run keep their GPUs.
func PackedSticky(of engine.Stages) engine.Stages {
	of.Place, of.Allocate, of.Admit = place.Packed{}, allocate.Prefix{}, nil
	of.Quantum, of.Round = 0, FirstRound
	return of
}

// worth weighs moves: what is left to do gets shorter by the ratio of L x V there and here, and costs a restart.
type worth struct {
	k    Knowledge
	cost time.Duration
}

var _ sched.Mover = worth{}

// Worth reports whether the time gained is more than the cost.
func (w worth) Worth(v *sched.View, j sched.JobID, was, now []sched.GPUID) bool {
	job := v.Job(j)
	left := job.RunNow(v.Now)
	if w.k.Work != nil {
		left = w.k.Work.Remaining(v, j)
	}
	here, there := w.k.cost(v, j, was), w.k.cost(v, j, now)
	return float64(left)*(here-there) > float64(w.cost)*there && there < here
}

// cost is the time of an iteration on gpus over the nominal one, as far as is known.
func (k Knowledge) cost(v *sched.View, j sched.JobID, gpus []sched.GPUID) float64 {
	x := k.Scores.Slowest(k.Scores.Class(v, j), gpus)
	for _, g := range gpus {
		if v.GPUs[g].Node != v.GPUs[gpus[0]].Node {
			return x * k.Across(v.Jobs[j].Spec, len(gpus))
		}
	}
	return x
}

// Expected returns what an iteration of a job on gpus takes over the nominal one by the PM scores themselves, which must be
// those that k was made from.
func (k Knowledge) Expected(s *variability.Scores) func(v *sched.View, j sched.JobID, gpus []sched.GPUID) float64 {
	return func(v *sched.View, j sched.JobID, gpus []sched.GPUID) float64 {
		pm, worst, across := s.PM[k.Scores.Class(v, j)], 0.0, 1.0
		for _, g := range gpus {
			if int(g) < len(pm) {
				worst = max(worst, pm[g])
			}
			if v.GPUs[g].Node != v.GPUs[gpus[0]].Node {
				across = k.Across(v.Jobs[j].Spec, len(gpus))
			}
		}
		if worst == 0 {
			worst = 1
		}
		return worst * across
	}
}

// Class returns the class of a job among classes: what its submitter said, else that of its model in the published
// experiments, else the first, the most sensitive.
func Class(classes []string) func(*sched.JobSpec) int {
	number := make(map[string]int, len(classes))
	for c, name := range classes {
		number[name] = c
	}
	return func(spec *sched.JobSpec) int {
		if c, ok := number[spec.Class]; ok {
			return c
		}
		name, _ := variability.Published(spec.Model)
		return number[name] // 0 where the table has no such class
	}
}
