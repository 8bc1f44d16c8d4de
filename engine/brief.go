package engine

import "github.com/trainyard/trainyard/sched"

// Brief says why jobs do not run as far as a View alone tells, for lists of many: the cost of a job does not grow with the
// number of others that wait. It holds while the View stays as it is.
type Brief struct {
	v      *sched.View
	stocks map[sched.TypeSet][]stock
}

// NewBrief returns the Brief of v.
func NewBrief(v *sched.View) *Brief { return &Brief{v, make(map[sched.TypeSet][]stock)} }

// Why is the function Why of a job without those ahead of it, those who hold GPUs and which GPUs cannot be used. Its code
// is WaitSystem where enough GPUs are free, whatever the system has against it.
func (b *Brief) Why(id sched.JobID) Waiting {
	w, free := whyView(b.v, id)
	if !free {
		return w
	}
	spec := b.v.Jobs[id].Spec
	list, counted := b.stocks[spec.Types]
	if !counted {
		list = stocks(b.v, spec.Types)
		b.stocks[spec.Types] = list
	}
	if w = roomOf(list, int(spec.GPUs.Min)); w.Code == NotWaiting {
		w.Code = WaitSystem
	}
	return w
}

// Order returns the jobs that wait or hold GPUs in the order in which dec, who decided last, looked at them; nil where it has
// no order that could be told. It changes nothing.
func Order(v *sched.View, dec sched.Decider) []sched.JobID {
	if c, ok := dec.(*composed); ok {
		dec = c.Decider
	}
	if p, ok := dec.(*Pipeline); ok && p.primed {
		return p.ranks(v)
	}
	return nil
}
