package pollux

import (
	"math"
	"math/rand/v2"
	"slices"
)

// ScalingIntervals is how many decisions utility is averaged over.
const ScalingIntervals = 15

// rescale changes the number of nodes where the mean utility of the last decisions has left the band: to that at which
// the utility of a new division is nearest the middle of the band, found by bisection, as utility falls with nodes.
// Jobs lose what they hold on nodes that go when the policy divides again.
//
// Source: specification boa.md, 3.5. The released code calls its policy with an argument missing here, so that what it
// would do was never run as published.
func (r *run) rescale() {
	r.utility = append(r.utility, r.held())
	if len(r.utility) <= ScalingIntervals {
		return
	}
	r.utility = slices.Delete(r.utility, 0, 1)
	mean := 0.0
	for _, u := range r.utility {
		mean += u / ScalingIntervals
	}
	if r.nodes > r.Scale.Min && mean < r.Scale.Low || r.nodes < r.Scale.Max && mean > r.Scale.High {
		r.nodes = r.bestSize()
		r.utility = r.utility[:0]
	}
}

// bestSize returns the number of nodes whose utility is nearest the middle of the band.
func (r *run) bestSize() int {
	target := (r.Scale.Low + r.Scale.High) / 2
	low, high, nodes := r.Scale.Min, r.Scale.Max, r.nodes
	for low+1 < high {
		u := r.tried(nodes)
		if u == target {
			return nodes
		}
		if u < target {
			high = nodes
		} else {
			low = nodes
		}
		nodes = (low + high) / 2
	}
	if math.Abs(target-r.tried(low)) < math.Abs(target-r.tried(high)) {
		return low
	}
	return high
}

// held is the utility of what jobs hold: the sum of their speedups over one GPU, for each GPU of the cluster.
func (r *run) held() float64 {
	sum := 0.0
	for _, j := range r.active {
		sum += j.overOne(len(j.held), j.gpus)
	}
	return sum / float64(r.nodes*r.GPUsPerNode)
}

// tried is the utility of what the policy would give on so many nodes. The policy does not remember having been asked.
func (r *run) tried(nodes int) float64 {
	e := r.divide.(*evolution)
	source := *e.source
	trial := *e
	trial.source, trial.rng = &source, rand.New(&source)
	p := newProblem(r, nodes)
	x := fittest(trial.evolve(p)).x
	sum := 0.0
	for i, j := range p.jobs {
		n, gpus := count(p.row(x, i))
		sum += j.overOne(n, gpus)
	}
	return sum / float64(nodes*r.GPUsPerNode)
}

// overOne is the learnt speedup over one GPU; linear while nothing is known.
func (j *job) overOne(nodes, gpus int) float64 {
	if gpus == 0 || !j.learnt.fitted() {
		return float64(gpus)
	}
	one, _, _ := j.learnt.optimize(j.App, 1, 1)
	goodput, _, _ := j.learnt.optimize(j.App, nodes, gpus)
	return goodput / one
}
