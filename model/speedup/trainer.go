package speedup

import (
	"math"

	"github.com/trainyard/trainyard/sched"
)

// Timer says how long updates take.
type Timer interface {
	// Update returns the seconds of an update of accum micro-batches of perGPU samples on each of gpus GPUs on so many
	// nodes; 0 = unknown or not possible.
	Update(gpus, nodes, perGPU, accum int) float64
}

// Worth says what updates are worth.
type Worth interface {
	// Sizes returns the progress that makes up each phase, > 0. The slice is not to be changed.
	Sizes() []float64
	// Gain returns the progress of an update of so many samples in a phase; 0 = such updates lead nowhere.
	Gain(phase, batch int) float64
}

// Limits says which batch sizes an application takes. Limits that contradict each other leave no way to run.
type Limits struct {
	Start     int // smallest global batch size, > 0
	Max       int // largest, >= Start
	MinPerGPU int // samples of a micro-batch on one GPU, > 0
	MaxPerGPU int // what fits into the memory of a GPU, >= MinPerGPU

	// Accumulate lets an update be made of several micro-batches where its samples do not fit on the GPUs at once.
	Accumulate bool
	// Probe has one GPU make updates larger than Start of at least two micro-batches: their difference is how gradient
	// noise is measured there. It needs Accumulate.
	Probe bool
	// Even rounds batch sizes up, so that each GPU has as many samples in each micro-batch, but not above Max;
	// otherwise the largest share sets the pace and the batch size stays as it is.
	Even bool
	// List are the only batch sizes to choose from, ascending; nil = BatchPoints of them.
	List []int
	// MaxGPUs bounds the widths that Best answers for; 0 = no bound.
	MaxGPUs int
}

// BatchPoints is how many batch sizes, in geometric progression, Best tries.
//
// Source: specification of BOA, 3.5.
const BatchPoints = 50

// Trainer is an App made of how long updates take, what they are worth and which batch sizes there are.
type Trainer struct {
	Name   string
	Time   Timer
	Worth  Worth
	Limits Limits
}

var _ App = (*Trainer)(nil)

// Sizes returns the progress that makes up each phase, in the unit of Worth.
func (t *Trainer) Sizes() []float64 { return t.Worth.Sizes() }

// Speed returns the progress per second of a phase. Without a batch size it is that of Best, without Accum that of the
// fewest micro-batches that fit.
func (t *Trainer) Speed(phase int, w Way) float64 {
	if w.Batch == 0 {
		_, speed := t.Best(phase, w.GPUs, w.Nodes, sched.BatchRange{})
		return speed
	}
	seconds, batch := t.Update(w)
	if seconds <= 0 {
		return 0
	}
	return t.Worth.Gain(phase, batch) / seconds
}

// Update returns the seconds of an update run so, and how many samples it really has; 0 = not possible. w.Batch is > 0.
func (t *Trainer) Update(w Way) (seconds float64, batch int) {
	perGPU, accum, batch, ok := t.Limits.split(w)
	if !ok {
		return 0, 0
	}
	return t.Time.Update(w.GPUs, w.Nodes, perGPU, accum), batch
}

// split divides a batch among GPUs and micro-batches: the samples of each, the micro-batches, and what they make
// together. ok is false if that is not to be done.
func (l *Limits) split(w Way) (perGPU, accum, batch int, ok bool) {
	if w.GPUs < 1 || w.Batch < l.Start || w.Batch > l.Max || l.MaxPerGPU < 1 {
		return 0, 0, 0, false
	}
	if accum = w.Accum; accum == 0 {
		accum = l.micro(w)
	}
	perGPU, batch = ceilDiv(w.Batch, w.GPUs*accum), w.Batch
	if l.Even {
		perGPU = min(perGPU, l.Max/(w.GPUs*accum))
		batch = perGPU * w.GPUs * accum
	}
	return perGPU, accum, batch, perGPU >= l.MinPerGPU && perGPU <= l.MaxPerGPU && (accum == 1 || l.Accumulate)
}

// micro returns the fewest micro-batches.
func (l *Limits) micro(w Way) int {
	if !l.Accumulate {
		return 1
	}
	n := ceilDiv(ceilDiv(w.Batch, w.GPUs), l.MaxPerGPU)
	if l.Probe && w.GPUs == 1 && w.Batch > l.Start {
		n = max(n, 2)
	}
	return n
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// Best tries the batch sizes of Limits that also lie within limits, where zero means no bound. A batch size that is
// rounded to be even is reported as it was asked for if it would leave the limits.
func (t *Trainer) Best(phase, gpus, nodes int, limits sched.BatchRange) (w Way, speed float64) {
	l := t.Limits
	if gpus < 1 || nodes < 1 || nodes > gpus || l.MaxGPUs > 0 && gpus > l.MaxGPUs {
		return Way{}, 0
	}
	if limits.PerGPU > 0 {
		l.MaxPerGPU = min(l.MaxPerGPU, int(limits.PerGPU))
	}
	low, high := l.bounds(gpus, limits)
	n := BatchPoints
	if l.List != nil {
		n = len(l.List)
	}
	last := 0
	for i := range n {
		batch := l.point(i, low, high)
		if batch < low || batch > high || batch == last {
			continue
		}
		last = batch
		way := Way{GPUs: gpus, Nodes: nodes, Batch: batch}
		perGPU, accum, real, ok := l.split(way)
		if !ok {
			continue
		}
		seconds := t.Time.Update(gpus, nodes, perGPU, accum)
		if seconds <= 0 {
			continue
		}
		if s := t.Worth.Gain(phase, real) / seconds; s > speed {
			w, speed = Way{gpus, nodes, min(max(real, low), high), accum}, s
		}
	}
	return w, speed
}

// bounds returns the smallest and the largest batch size on so many GPUs.
func (l *Limits) bounds(gpus int, limits sched.BatchRange) (low, high int) {
	low, high = max(l.Start, l.MinPerGPU*gpus, int(limits.Min)), l.Max
	if limits.Max > 0 {
		high = min(high, int(limits.Max))
	}
	if !l.Accumulate {
		high = min(high, l.MaxPerGPU*gpus)
	}
	return low, high
}

// point returns batch size number i to try.
func (l *Limits) point(i, low, high int) int {
	switch {
	case l.List != nil:
		return l.List[i]
	case i == 0 || high <= low:
		return low
	case i == BatchPoints-1:
		return high
	}
	x := float64(low) * math.Pow(float64(high)/float64(low), float64(i)/(BatchPoints-1))
	return int(math.Ceil(x - 1e-8))
}
