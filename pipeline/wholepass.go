package pipeline

import "github.com/trainyard/trainyard/sched"

// wholePass is the walk written down as plainly as possible: sort all jobs, go through them once. It is the reference
// twin of the indexed walk, and the walk of systems whose ties keep the order of the list.
func (p *Pipeline) wholePass(v *sched.View) {
	now := v.Now.Seconds()
	p.ranks.sortList(&p.books, now)
	for _, id := range p.ranks.list {
		if p.books.jobs[id].in != waiting || p.books.ledger.Set(id) != nil {
			continue // a holder, not evicted in this walk, keeps what it has
		}
		if p.try(v, id, width(v, id), now) == misfit && p.stops(v, id) {
			return
		}
	}
}
