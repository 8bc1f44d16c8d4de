package pipeline

import (
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Decide walks down the order if anything happened that may change a decision.
//
// The walk, in the words of the naive twin (wholepass.go): go through all jobs, best rank first. A job that holds GPUs
// keeps them. A job that waits is placed on free GPUs; if it does not fit and the system preempts, the lowest-ranked
// holders below it are evicted, one by one, until it fits; those whose GPUs it did not take after all are reprieved,
// best rank first, and the others take their turn in the walk like any waiting job. A job that does not fit even then
// evicts no other; Admit says whether the walk goes on.
func (p *Pipeline) Decide(v *sched.View, d *sched.Desired) {
	if !p.primed {
		p.prime(v)
	}
	if p.stale {
		p.resync(v)
	}
	if p.s.atTurn(v.Now) {
		p.refresh(v)
		if p.protection.retry <= v.Now {
			p.dirty, p.protection.retry = true, sched.Never
			p.books.given.forget()
		}
		if p.dirty || p.rolling() && p.s.onGrid(v.Now) {
			p.dirty = false
			p.walkDown(v, d)
			p.commit(v, d)
		}
		if p.ranks.turns != nil {
			d.Notes = append(d.Notes, p.ranks.turns.Notes()...)
		}
	}
	p.wakeUp(v.Now, d)
	p.asked, p.wake = true, d.Wake
}

// Waits returns when it asked last to be woken.
func (p *Pipeline) Waits() (until sched.Time, known bool) { return p.wake, p.asked }

// atTurn reports whether decisions may be taken now.
func (s *Stages) atTurn(now sched.Time) bool {
	return s.Round == 0 || time.Duration(now)%s.Round == 0
}

// onGrid reports whether order is to be looked at again now although nothing happened.
func (s *Stages) onGrid(now sched.Time) bool {
	return s.Round > 0 || s.Quantum > 0 && time.Duration(now)%s.Quantum == 0
}

// rolling reports whether time alone may change a decision on the grid.
func (p *Pipeline) rolling() bool {
	return (p.books.waits > 0 || p.s.Replace || p.s.Restless) && len(p.books.ledger.Holders()) > 0
}

// wakeUp asks for the next time at which a key ceases to hold or the grid is reached, whichever matters.
func (p *Pipeline) wakeUp(now sched.Time, d *sched.Desired) {
	if at := min(p.ranks.nextDue(&p.books), p.protection.retry); at != sched.Never {
		d.WakeBy(nextMultiple(at, p.s.Round))
	}
	if p.dirty && p.s.Round > 0 || p.rolling() && p.s.Round > 0 {
		d.WakeBy(nextMultiple(now+1, p.s.Round))
	}
	if p.s.Quantum > 0 && p.rolling() {
		d.WakeBy(nextMultiple(max(now+1, 0), p.s.Quantum))
	}
}

// nextMultiple returns the first multiple of step that is at or after t; t if step is 0.
func nextMultiple(t sched.Time, step time.Duration) sched.Time {
	if step == 0 {
		return t
	}
	if over := time.Duration(t) % step; over != 0 {
		return t.Add(step - over)
	}
	return t
}
