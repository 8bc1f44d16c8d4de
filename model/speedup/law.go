package speedup

import (
	"github.com/trainyard/trainyard/sched"
)

// Law is a speedup by width: how many times as fast as on one GPU. Widths need not be whole.
type Law interface {
	// At returns the speedup on gpus >= 1 GPUs; 0 = not possible.
	At(gpus float64) float64
}

// Amdahl is the law of a job of which only a share is parallel.
type Amdahl struct{ Parallel float64 } // 0..1

// At returns 1/(1-f+f/k).
func (a Amdahl) At(gpus float64) float64 { return 1 / (1 - a.Parallel + a.Parallel/gpus) }

// Stage is a part of a training with a law of its own.
type Stage struct {
	Size float64 // seconds on one GPU, > 0; where the law does not say 1 there, at speedup 1
	Law  Law
}

// Stages is an App of which only speedups are known: it chooses batch sizes itself, nodes make no difference. Its
// unit of progress is a second at speedup 1.
type Stages []Stage

var _ App = Stages(nil)

// Sizes returns the size of each stage.
func (s Stages) Sizes() []float64 {
	sizes := make([]float64, len(s))
	for i := range s {
		sizes[i] = s[i].Size
	}
	return sizes
}

// Speed returns the speedup of w.GPUs, whatever the batch size.
func (s Stages) Speed(phase int, w Way) float64 {
	if w.GPUs < 1 {
		return 0
	}
	return s[phase].Law.At(float64(w.GPUs))
}

// Best returns the speedup and leaves the batch size open.
func (s Stages) Best(phase, gpus, nodes int, _ sched.BatchRange) (w Way, speed float64) {
	if speed = s.Speed(phase, Way{GPUs: gpus}); speed == 0 {
		return Way{}, 0
	}
	return Way{GPUs: gpus, Nodes: nodes}, speed
}
