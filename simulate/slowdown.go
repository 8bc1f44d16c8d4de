package simulate

import (
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/place"
	"github.com/trainyard/trainyard/trace"
)

// truth is how GPUs differ and what distance costs in the simulated world.
type truth struct {
	scores   *variability.Scores      // nil = GPUs do not differ
	class    func(*sched.JobSpec) int // among the classes of scores
	locality variability.Locality     // for models, and classes where there are scores
}

// slowdown returns the time of an iteration of t on gpus relative to that on median GPUs of one node.
func (w *truth) slowdown(v *sched.View, t *trace.Job, gpus []sched.GPUID) float64 {
	class, x := "", 1.0
	if w.scores != nil {
		c := w.class(&t.Spec)
		class, x = w.scores.Classes[c], slowest(w.scores.PM[c], gpus)
	}
	return x * w.locality.Penalty(t.Spec.Model, class, len(gpus), place.Distance(v, gpus))
}

// slowest is what a synchronous gang runs at. A GPU of a node beyond those of the scores is as the median.
func slowest(pm []float64, gpus []sched.GPUID) float64 {
	worst := 0.0
	for _, g := range gpus {
		x := 1.0
		if int(g) < len(pm) {
			x = pm[g]
		}
		worst = max(worst, x)
	}
	return worst
}
