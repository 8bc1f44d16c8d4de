package pipeline

import (
	"slices"
	"time"

	"github.com/trainyard/trainyard/internal/arena"
	"github.com/trainyard/trainyard/sched"
)

// Decide walks down the order if anything happened that may change a decision.
//
// The walk, in the words of the naive twin (wholepass.go): go through all jobs, best rank first. A job that holds GPUs
// keeps them. A job that waits is placed on free GPUs; if it does not fit and the system preempts, the lowest-ranked
// holders below it are evicted, one by one, until it fits; those whose GPUs it did not take after all are reprieved,
// best rank first, and the others take their turn in the walk like any waiting job. A job that does not fit even then
// evicts nobody; Admit says whether the walk goes on.
func (p *Pipeline) Decide(v *sched.View, d *sched.Desired) {
	if !p.primed {
		p.prime(v)
	}
	if p.stale {
		p.resync(v)
	}
	if p.atTurn(v.Now) {
		p.refresh(v)
		if p.retry <= v.Now {
			p.dirty, p.retry = true, sched.Never
			p.given.forget()
		}
		if p.dirty || p.rolling() && p.onGrid(v.Now) {
			p.dirty = false
			p.walk(v, d)
			p.commit(v, d)
		}
		if p.turns != nil {
			d.Notes = append(d.Notes, p.turns.Notes()...)
		}
	}
	p.wakeUp(v.Now, d)
	p.asked, p.wake = true, d.Wake
}

// Waits returns when it asked last to be woken.
func (p *Pipeline) Waits() (until sched.Time, known bool) { return p.wake, p.asked }

// atTurn reports whether decisions may be taken now.
func (p *Pipeline) atTurn(now sched.Time) bool {
	return p.s.Round == 0 || time.Duration(now)%p.s.Round == 0
}

// onGrid reports whether order is to be looked at again now although nothing happened.
func (p *Pipeline) onGrid(now sched.Time) bool {
	return p.s.Round > 0 || p.s.Quantum > 0 && time.Duration(now)%p.s.Quantum == 0
}

// rolling reports whether time alone may change a decision on the grid.
func (p *Pipeline) rolling() bool {
	return (p.waits > 0 || p.s.Replace || p.s.Restless) && len(p.ledger.Holders()) > 0
}

// wakeUp asks for the next time at which a key ceases to hold or the grid is reached, whichever matters.
func (p *Pipeline) wakeUp(now sched.Time, d *sched.Desired) {
	if at := min(p.nextDue(), p.retry); at != sched.Never {
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

// walk goes down the order and leaves what it did in ledger, taken and touched.
func (p *Pipeline) walk(v *sched.View, d *sched.Desired) {
	p.walkNo++
	p.taken, p.touched, p.aside = p.taken[:0], p.touched[:0], p.aside[:0]
	if p.s.Admit != nil {
		p.s.Admit.Begin(v, p.ledger)
	}
	switch {
	case p.s.Allocate != nil:
		p.allocatePass(v, d)
	case p.whole():
		p.wholePass(v)
	default:
		p.indexed(v)
	}
}

// indexed is the walk over the best waiting job of each shape. Once a job of a shape does not fit, no lower-ranked job
// of that shape can: what it may take, the free GPUs and those of lower-ranked holders, only shrinks down the order.
func (p *Pipeline) indexed(v *sched.View) {
	now := v.Now.Seconds()
	p.gatherHeads(now)
	for h := p.nextHead(now); h != none; h = p.nextHead(now) {
		id := p.groups.list[h].heap[0]
		what := p.try(v, id, width(v, id), now)
		g := &p.groups.list[h] // only now: the list may have grown
		switch what {
		case tookIt:
		case passedOver:
			p.groups.remove(p.jobs, id)
			p.aside = append(p.aside, id)
		case overLimit:
			g.failed = p.walkNo
		case misfit:
			g.failed = p.walkNo
			p.noteFailure(g, id)
			if p.stops(v, id) {
				p.heads = p.heads[:0]
			}
		}
		if len(p.heads) > 0 {
			p.sinkHead(0, now)
		}
	}
	for _, id := range p.aside {
		p.groups.add(p.jobs, id)
	}
}

// gatherHeads begins a walk with the groups whose best job may fit.
func (p *Pipeline) gatherHeads(now float64) {
	p.heads, p.hopeless = p.heads[:0], p.hopeless[:0]
	worst := p.worstHolder(now)
	for _, i := range p.groups.waiting {
		if p.mayFit(&p.groups.list[i], worst, now) {
			p.addHead(i)
		} else {
			p.hopeless = append(p.hopeless, i)
		}
	}
}

// mayFit is false when the best job of g cannot fit unless somebody is evicted, at the price of a few comparisons.
func (p *Pipeline) mayFit(g *group, worst sched.JobID, now float64) bool {
	if p.s.Admit != nil {
		return true
	}
	if !p.guards() && g.fail.at == p.given.now() && !p.rising && g.fail.covers(p.jobs, g.heap[0]) {
		return false // nothing was given up since it did not fit
	}
	s := &p.groups.shapes[g.shape]
	if int(s.gpus) <= p.ledger.Free(s.types) {
		return true
	}
	return worst != sched.None && beforeAt(&p.jobs[g.heap[0]], &p.jobs[worst], g.heap[0], worst, now)
}

// worstHolder returns the holder that ranks last, or None.
func (p *Pipeline) worstHolder(now float64) sched.JobID {
	worst := sched.JobID(sched.None)
	for _, i := range p.groups.holding {
		if id := p.groups.list[i].heap[0]; worst == sched.None || beforeAt(&p.jobs[worst], &p.jobs[id], worst, id, now) {
			worst = id
		}
	}
	return worst
}

// stops reports whether the misfit of job id ends the walk. A job that could not fit an empty cluster holds up nobody.
func (p *Pipeline) stops(v *sched.View, id sched.JobID) bool {
	if p.s.Admit == nil || !p.s.Block && !p.canEverFit(v, id) {
		return false
	}
	return p.s.Admit.Misfit(v, p.ledger, id)
}

// verdict says what became of a waiting job at its turn.
type verdict uint8

const (
	tookIt     verdict = iota
	misfit             // nor will any lower-ranked job of its shape fit
	passedOver         // it might have fitted, but must not: a reservation
	overLimit          // its user may hold no more: in this walk, no job of its shape is placed any more
)

// try places waiting job id on n GPUs, evicting lower-ranked holders if it must and may.
func (p *Pipeline) try(v *sched.View, id sched.JobID, n int, now float64) verdict {
	if p.s.UserLimit > 0 {
		s := &p.groups.shapes[p.jobs[id].shape]
		if s.over == p.walkNo || int(p.user[p.jobs[id].user])+n > p.s.UserLimit {
			s.over = p.walkNo
			return overLimit
		}
	}
	p.popped, p.clear, p.cleared = p.popped[:0], p.clear[:0], false
	evicts := p.s.Preempt && p.s.Allocate == nil
	if !p.s.Place.Fits(v, p.ledger, id, n) && (!evicts || !p.evictFor(v, id, n, now)) {
		return misfit
	}
	gpus, ok := p.s.Place.Place(v, p.ledger, id, n, p.scratch[:0])
	p.scratch = gpus[:0]
	if !ok {
		panic("engine: a placer that says Fits must Place")
	}
	if !slices.IsSorted(gpus) {
		slices.Sort(gpus)
	}
	if p.s.Move != nil {
		gpus = p.weigh(v, id, n, gpus)
		p.scratch = gpus[:0]
	}
	if p.s.Admit != nil && !p.s.Admit.May(v, id, gpus) {
		p.reprieveAll()
		return passedOver
	}
	p.touch(id)
	p.groups.remove(p.jobs, id)
	p.book(id, gpus)
	p.taken = append(p.taken, id)
	p.settleVictims(id, now)
	return tookIt
}

// touch notes that this walk changes what job id holds.
func (p *Pipeline) touch(id sched.JobID) {
	if p.stamp[id] != p.walkNo {
		p.stamp[id] = p.walkNo
		p.touched = append(p.touched, id)
	}
}

// commit turns what the walk did into changes of target: what is taken away first, then what is given, in walk order.
func (p *Pipeline) commit(v *sched.View, d *sched.Desired) {
	for _, id := range p.touched {
		if len(p.ledger.Set(id)) == 0 {
			d.Give(id, nil, sched.Reason{Code: sched.WhyPreempted, Job: p.winner(v, id)})
			if p.turns != nil {
				p.turns.Lost(v, id)
			}
		}
	}
	for _, id := range p.taken {
		set, was := p.ledger.Set(id), v.Jobs[id].Target
		if len(set) == 0 {
			continue // evicted again: it is touched, and was seen above
		}
		switch {
		case len(was) == 0:
			p.give(d, id, sched.Reason{Code: sched.WhyStarted})
			if p.turns != nil {
				p.turns.Took(v, id)
			}
		case arena.SameSet(set, was) && p.runsAsGranted(v, id):
			p.reindex(v, id) // evicted and given the very same GPUs: nothing happened
		case len(set) != len(was):
			p.give(d, id, sched.Reason{Code: sched.WhyResized, A: float64(len(was)), B: float64(len(set))})
		default:
			p.give(d, id, sched.Reason{Code: sched.WhyMoved})
		}
	}
	if p.s.Allocate != nil {
		p.reconfigure(v, d)
	}
	p.straighten(v)
}

// give appends what the walk booked for job id, to run as it was granted.
func (p *Pipeline) give(d *sched.Desired, id sched.JobID, why sched.Reason) {
	t := d.Give(id, p.ledger.Set(id), why)
	if g := p.grant(id); g != nil {
		t.Config, t.Want = g.Config, g.Wanted()
	}
}

// straighten tells an order with memory which of the jobs whose rank changed still hold GPUs after the walk.
func (p *Pipeline) straighten(v *sched.View) {
	if p.turns == nil {
		return
	}
	for _, id := range p.turns.Astray() {
		if len(p.ledger.Set(id)) > 0 {
			p.turns.Took(v, id)
			if p.stamp[id] != p.walkNo {
				p.rekey(v, id)
			}
		}
	}
}

// winner returns the job of the walk that took the first GPU taken of those evicted job id held, for the explanation.
func (p *Pipeline) winner(v *sched.View, id sched.JobID) sched.JobID {
	p.noteTakers(len(v.GPUs))
	for _, g := range v.Jobs[id].Target {
		if p.takenIn[g] == p.walkNo {
			return p.taker[g]
		}
	}
	return sched.None
}

// noteTakers notes, once a walk, who took which GPU.
func (p *Pipeline) noteTakers(gpus int) {
	if p.takersOf == p.walkNo {
		return
	}
	p.takersOf = p.walkNo
	if len(p.taker) < gpus {
		p.taker, p.takenIn = make([]sched.JobID, gpus), make([]uint32, gpus)
	}
	for _, id := range p.taken {
		for _, g := range p.ledger.Set(id) {
			p.taker[g], p.takenIn[g] = id, p.walkNo
		}
	}
}
