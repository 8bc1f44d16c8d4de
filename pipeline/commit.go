package pipeline

import (
	"github.com/trainyard/trainyard/internal/arena"
	"github.com/trainyard/trainyard/sched"
)

// commit turns what the walk did into changes of target: what is taken away first, then what is given, in walk order.
func (p *Pipeline) commit(v *sched.View, d *sched.Desired) {
	for _, id := range p.walk.touched {
		p.changed.Note(id)
		if len(p.books.ledger.Set(id)) == 0 {
			d.Give(id, nil, sched.Reason{Code: sched.WhyPreempted, Job: p.walk.winner(v, p.books.ledger, id)})
			if p.ranks.turns != nil {
				p.ranks.turns.Lost(v, id)
			}
		}
	}
	for _, id := range p.walk.taken {
		p.changed.Note(id)
		set, was := p.books.ledger.Set(id), v.Jobs[id].Target
		if len(set) == 0 {
			continue // evicted again: it is touched, and was seen above
		}
		switch {
		case len(was) == 0:
			p.grants.give(d, id, set, sched.Reason{Code: sched.WhyStarted})
			if p.ranks.turns != nil {
				p.ranks.turns.Took(v, id)
			}
		case arena.SameSet(set, was) && p.grants.asRuns(v, id):
			p.reindex(v, id) // evicted and given the very same GPUs: nothing happened
		case len(set) != len(was):
			p.grants.give(d, id, set, sched.Reason{Code: sched.WhyResized, A: float64(len(was)), B: float64(len(set))})
		default:
			p.grants.give(d, id, set, sched.Reason{Code: sched.WhyMoved})
		}
	}
	if p.s.Allocate != nil {
		p.grants.reconfigure(v, d, &p.books, &p.walk)
	}
	p.straighten(v)
}

// straighten notes with an order that remembers which of the jobs whose rank changed still hold GPUs after the walk.
func (p *Pipeline) straighten(v *sched.View) {
	if p.ranks.turns == nil {
		return
	}
	for _, id := range p.ranks.turns.Astray() {
		if len(p.books.ledger.Set(id)) > 0 {
			p.ranks.turns.Took(v, id)
			p.changed.Note(id)
			if !p.walk.touches(id) {
				p.rekey(v, id)
			}
		}
	}
}
