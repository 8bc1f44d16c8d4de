package experiment

import (
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// seat is where a GPU is. Rack 0 is not known.
type seat struct {
	node int
	rack int32
}

// seatsOf returns the seats of the GPUs of a cluster, by number.
func seatsOf(nodes []sched.NodeSpec) (seats []seat) {
	for n := range nodes {
		for range nodes[n].GPUs {
			seats = append(seats, seat{n, nodes[n].Rack})
		}
	}
	return seats
}

// distance returns how far apart the most distant two of gpus, at least one, are: as place.Distance, of the true cluster.
func distance(seats []seat, gpus []sched.GPUID) variability.Level {
	first, level := seats[gpus[0]], variability.SameNode
	for _, g := range gpus[1:] {
		s := seats[g]
		switch {
		case s.node == first.node:
		case s.rack == 0 || s.rack != first.rack:
			return variability.Across
		default:
			level = variability.SameRack
		}
	}
	return level
}

// truth is how GPUs differ and what distance costs in the simulated world.
type truth struct {
	seats    []seat
	scores   *variability.Scores      // nil = GPUs do not differ
	class    func(*sched.JobSpec) int // among the classes of scores
	locality variability.Locality     // for models, and classes where there are scores
}

// slowdown returns the time of an iteration of t on gpus relative to that on median GPUs of one node.
func (w *truth) slowdown(t *trace.Job, gpus []sched.GPUID) float64 {
	class, x := "", 1.0
	if w.scores != nil {
		c := w.class(&t.Spec)
		class, x = w.scores.Classes[c], slowest(w.scores.PM[c], gpus)
	}
	return x * w.locality.Penalty(t.Spec.Model, class, len(gpus), distance(w.seats, gpus))
}

// slowest is what a synchronous gang runs at.
func slowest(pm []float64, gpus []sched.GPUID) float64 {
	worst := pm[gpus[0]]
	for _, g := range gpus[1:] {
		worst = max(worst, pm[g])
	}
	return worst
}
