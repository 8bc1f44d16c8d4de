package pipeline

import (
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// wholePass is the walk written down as plainly as possible: sort all jobs, go through them once. It is the reference
// twin of the indexed walk, and the walk of systems whose ties keep the order of the list.
func (p *Pipeline) wholePass(v *sched.View) {
	now := v.Now.Seconds()
	p.sortList(now)
	for _, id := range p.list {
		if p.jobs[id].in != waiting || p.ledger.Set(id) != nil {
			continue // a holder, not evicted in this walk, keeps what it has
		}
		if p.try(v, id, width(v, id), now) == misfit && p.stops(v, id) {
			return
		}
	}
}

// sortList drops jobs that are done or not eligible and sorts the others, best rank first.
func (p *Pipeline) sortList(now float64) {
	p.list = slices.DeleteFunc(p.list, func(id sched.JobID) bool {
		x := &p.jobs[id]
		x.list = x.in != away
		return !x.list
	})
	p.sort(p.list, now)
}

// sort sorts list, best rank first; ties keep their order where the system says so.
func (p *Pipeline) sort(list []sched.JobID, now float64) {
	slices.SortStableFunc(list, func(a, b sched.JobID) int {
		switch x, y := &p.jobs[a], &p.jobs[b]; {
		case p.s.KeepOrder && x.key.Level == y.key.Level && valueAt(&x.key, now) == valueAt(&y.key, now):
			return 0
		case beforeAt(x, y, a, b, now):
			return -1
		}
		return 1
	})
}

// nextInList returns the next victim for job id: the last holder of the list that was not looked at yet, as long as it
// comes behind id.
func (p *Pipeline) nextInList(id sched.JobID) sched.JobID {
	for ; p.cursor >= 0; p.cursor-- {
		w := p.list[p.cursor]
		if w == id {
			return sched.None
		}
		if p.jobs[w].in == holding && p.ledger.Set(w) != nil {
			p.cursor--
			return w
		}
	}
	return sched.None
}
