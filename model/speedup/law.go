package speedup

import (
	"fmt"
	"math"
	"slices"

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

// Power is the law k^p.
type Power struct{ Exponent float64 } // 0..1 for a concave curve

// At returns k^p.
func (p Power) At(gpus float64) float64 { return math.Pow(gpus, p.Exponent) }

// Proportional is the law of a job that is k times as fast on k GPUs.
type Proportional struct{}

// At returns gpus.
func (Proportional) At(gpus float64) float64 { return gpus }

// Points are speedups at some widths. Any shape is allowed: measured curves fall, jump and begin at more than one GPU.
type Points struct {
	GPUs    []int     // ascending, > 0
	Speedup []float64 // of each; 0 = not possible
	Between Between   // what holds between them; beyond them nothing is possible
}

// NewPoints returns the points of a table. It is an error if it is empty, names a width below 1 or a speedup that is
// not a number >= 0, or has none above 0.
func NewPoints(table map[int]float64, between Between) (*Points, error) {
	p := &Points{Between: between}
	for gpus := range table {
		p.GPUs = append(p.GPUs, gpus)
	}
	slices.Sort(p.GPUs)
	possible := false
	for _, gpus := range p.GPUs {
		s := table[gpus]
		switch {
		case gpus < 1 || gpus > maxCount:
			return nil, fmt.Errorf("speedup: table: %d GPUs, want 1 to %d", gpus, maxCount)
		case !(s >= 0 && s <= maxRate):
			return nil, fmt.Errorf("speedup: table: %v on %d GPUs, want a number from 0 to %v", s, gpus,
				float64(maxRate))
		}
		possible = possible || s > 0
		p.Speedup = append(p.Speedup, s)
	}
	if !possible {
		return nil, fmt.Errorf("speedup: table of %d widths without a speedup above 0, want one", len(table))
	}
	return p, nil
}

// At returns the speedup of a width.
func (p *Points) At(gpus float64) float64 {
	i := 0
	for i < len(p.GPUs) && float64(p.GPUs[i]) < gpus {
		i++
	}
	switch {
	case i == len(p.GPUs):
		return 0
	case float64(p.GPUs[i]) == gpus:
		return p.Speedup[i]
	case i == 0 || p.Between != Linear || p.Speedup[i-1] == 0 || p.Speedup[i] == 0:
		return 0
	}
	return mix(p.Speedup[i-1], p.Speedup[i], share(gpus, float64(p.GPUs[i-1]), float64(p.GPUs[i])))
}

// Stage is a part of a training with a law of its own.
type Stage struct {
	Size float64 // seconds on one GPU, > 0; where the law does not say 1 there, at speedup 1
	Law  Law
}

// Stages is an App of which only speedups are known: batch sizes are its own affair, nodes make no difference. Its unit
// of progress is a second at speedup 1.
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
