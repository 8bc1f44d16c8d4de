package pipeline

import "github.com/trainyard/trainyard/sched"

// revisions notices that the answers of stages, or of what they read, may all have changed.
type revisions struct {
	of       []sched.Reviser
	seen     uint64 // sum of the revisions at which keys were last asked for
	reshapes bool   // one of them decides on shapes
}

// newRevisions watches the stages and the parts of s.
func newRevisions(s *Stages) (r revisions) {
	for _, stage := range s.deciding() {
		if x, ok := stage.(sched.Reviser); ok {
			_, shapes := stage.(sched.Shaper)
			r.add(x, shapes)
		}
	}
	for _, l := range s.Learn {
		if x, ok := l.(sched.Reviser); ok {
			r.add(x, true)
		}
	}
	for _, p := range s.Provision {
		if x, ok := p.(sched.Reviser); ok {
			r.add(x, true)
		}
	}
	return r
}

func (r *revisions) add(x sched.Reviser, shapes bool) {
	r.of = append(r.of, x)
	r.reshapes = r.reshapes || shapes
}

// changed reports whether anything was revised since it was last asked.
func (r *revisions) changed() bool {
	sum := uint64(0)
	for _, x := range r.of {
		sum += x.Revision()
	}
	changed := sum != r.seen
	r.seen = sum
	return changed
}
