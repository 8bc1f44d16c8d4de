package pipeline

import (
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// walk is one way down the order. It is made for one Decide and reused by the next.
type walk struct {
	no          uint32
	heads       heads         // groups still to be looked at
	victims     victims       // of the job being placed
	free        keepFree      // kept for one that waits for jobs that are not stopped
	evictor     sched.JobID   // placed last of those for whom others went; None
	taken       []sched.JobID // placed, in walk order
	takers      takers        // who took which GPU
	touched     []sched.JobID // whose holdings change, in order of first change
	stamp       []uint32      // by job: the walk that last touched it
	quarantined []sched.JobID
	scratch     []sched.GPUID
}

// grow makes room for job id; more is how many jobs are expected in all.
func (w *walk) grow(id sched.JobID, more int) {
	w.stamp = grown(w.stamp, int(id), more)
	for int(id) >= len(w.stamp) {
		w.stamp = append(w.stamp, 0)
	}
}

// begin starts another walk.
func (w *walk) begin() {
	w.no++
	w.taken, w.touched, w.quarantined = w.taken[:0], w.touched[:0], w.quarantined[:0]
	w.evictor = sched.None
	w.heads.begin()
	w.free.forget()
}

// touch notes that this walk changes what job id holds.
func (w *walk) touch(id sched.JobID) {
	if !w.touches(id) {
		w.stamp[id] = w.no
		w.touched = append(w.touched, id)
	}
}

// touches reports whether this walk changes what job id holds.
func (w *walk) touches(id sched.JobID) bool { return w.stamp[id] == w.no }

// headBehind has group i looked at after job id was placed. A group whose best job ranks before id has had its turn,
// and more to choose from: none in it fits. Where holders are protected it is looked at again: books.given does not say
// whose protection has ended.
func (w *walk) headBehind(b *books, r *ranks, id sched.JobID, i int32, now float64) {
	if best := r.groups.list[i].heap[0]; w.victims.protection.any() || b.beforeAt(id, best, now) {
		w.heads.add(&r.groups, i, w.no)
	}
}

// settleVictims reprieves the victims whose GPUs are still free after job id took its own; the others join the waiting
// jobs of this walk at the rank they held. It reports whether any did.
func (w *walk) settleVictims(b *books, r *ranks, id sched.JobID, now float64) (gone bool) {
	x := &w.victims
	for i := len(x.popped) - 1; i >= 0; i-- {
		victim, set := x.popped[i], x.sets[i]
		if b.ledger.Untaken(set) {
			x.reprieve(victim, set)
			continue
		}
		gone = true
		for _, h := range w.heads.hopeless { // what the victim leaves over may do for a lower-ranked job
			w.headBehind(b, r, id, h, now)
		}
		w.heads.hopeless = w.heads.hopeless[:0]
		w.touch(victim)
		b.giveUp(victim, set)
		e := &b.jobs[victim]
		if e.key.Slope != 0 {
			e.key.Value, e.key.Slope = valueAt(&e.key, now), 0
		}
		if !r.whole {
			r.groups.add(b.jobs, victim)
			w.headBehind(b, r, id, e.group, now)
		}
	}
	x.popped, x.sets = x.popped[:0], x.sets[:0]
	return gone
}

// giveUpUngranted takes their GPUs from the holders of list that are granted none, or another number, or are to be
// placed again.
func (w *walk) giveUpUngranted(v *sched.View, b *books, list []sched.JobID, g *grants, replaces bool) {
	for _, id := range list {
		x := g.to(id)
		keeps := x != nil && !replaces && !x.Again && len(b.ledger.Set(id)) == int(x.GPUs)
		if b.jobs[id].in == holding && !keeps && !w.victims.protection.covers(v, id) {
			w.touch(id)
			b.unbook(id)
			b.move(id, waiting)
		}
	}
}

// walkDown goes down the order and leaves what it did in books and walk.
func (p *Pipeline) walkDown(v *sched.View, d *sched.Desired) {
	p.walk.begin()
	if p.s.Admit != nil {
		p.s.Admit.Begin(v, p.books.ledger)
	}
	switch {
	case p.s.Allocate != nil:
		p.allocatePass(v, d)
	case p.ranks.whole:
		p.wholePass(v)
	case p.walk.onlyLess(&p.s) && p.ranks.groups.widths.keep(&p.ranks.groups, p.books.jobs):
		byWidth(p, v)
	default:
		p.indexed(v)
	}
}

// onlyLess reports whether what a job may have only becomes less down the order, whoever is placed before it.
func (w *walk) onlyLess(s *Stages) bool {
	return s.Admit == nil && (!s.Preempt || s.UserLimit == 0 && !w.victims.protection.any())
}

// indexed is the walk over the best waiting job of each shape. Once a job of a shape does not fit, no lower-ranked job
// of that shape can: what it may take, the free GPUs and those of lower-ranked holders, only shrinks down the order.
func (p *Pipeline) indexed(v *sched.View) {
	now := v.Now.Seconds()
	p.walk.gatherHeads(&p.books, &p.ranks, p.s.Admit != nil, now)
	groups, heads := &p.ranks.groups, &p.walk.heads
	for h := heads.next(groups, &p.books, p.walk.no, now); h != none; h = heads.next(groups, &p.books, p.walk.no, now) {
		id := groups.list[h].heap[0]
		what := p.try(v, id, width(v, id), now)
		g := &groups.list[h] // only now: the list may have grown
		switch what {
		case tookIt:
		case passedOver:
			groups.remove(p.books.jobs, id)
			p.walk.quarantined = append(p.walk.quarantined, id)
		case overLimit:
			g.failed = p.walk.no
		case misfit:
			g.failed = p.walk.no
			p.walk.victims.noteFailure(g, id)
			if p.stops(v, id) {
				heads.heap = heads.heap[:0]
			}
		}
		if len(heads.heap) > 0 {
			heads.sink(groups, &p.books, 0, now)
		}
	}
	for _, id := range p.walk.quarantined {
		groups.add(p.books.jobs, id)
	}
}

// gatherHeads starts with the groups whose best job may fit; all if admission decides about each.
func (w *walk) gatherHeads(b *books, r *ranks, all bool, now float64) {
	worst := r.worstHolder(b, now)
	for _, i := range r.groups.waiting {
		if all || w.free.on || w.mayFit(b, r, &r.groups.list[i], worst, now) {
			w.heads.add(&r.groups, i, w.no)
		} else {
			w.heads.hopeless = append(w.heads.hopeless, i)
		}
	}
}

// mayFit is false when the best job of g cannot fit unless some job is evicted, at the price of a few comparisons.
// worst is the holder that ranks last, or None.
func (w *walk) mayFit(b *books, r *ranks, g *group, worst sched.JobID, now float64) bool {
	best := g.heap[0]
	if w.failedBefore(b, r, g) {
		return false
	}
	s := &r.groups.shapes[g.shape]
	if int(s.gpus) <= b.ledger.Free(s.types) {
		return true
	}
	return worst != sched.None && b.beforeAt(best, worst, now)
}

// failedBefore reports whether the best job of g, or one before it, did not fit and nothing was given up since.
func (w *walk) failedBefore(b *books, r *ranks, g *group) bool {
	return !w.victims.protection.any() && g.fail.at == b.given.now() && !r.rising && g.fail.covers(b.jobs, g.heap[0])
}

// stops reports whether the misfit of job id ends the walk. A job that could not fit an empty cluster holds up no
// other.
func (p *Pipeline) stops(v *sched.View, id sched.JobID) bool {
	if p.s.Admit == nil || !p.s.Block && !p.canEverFit(v, id) {
		return false
	}
	return p.s.Admit.Misfit(v, p.books.ledger, id)
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
	if p.s.UserLimit > 0 && p.walk.overLimit(&p.books, &p.ranks, id, n, p.s.UserLimit) {
		return overLimit
	}
	victims := &p.walk.victims
	victims.begin()
	evicts := p.s.Preempt && p.s.Allocate == nil
	if !p.s.Place.Fits(v, p.books.ledger, id, n) && (!evicts || !victims.evictFor(v, id, n, now)) {
		if evicts {
			p.walk.free.look(v, p.books.ledger, p.s.Place, id, n)
		}
		return misfit
	}
	gpus := p.walk.choose(v, &p.s, p.books.ledger, &p.claims, id, n)
	if p.s.Admit != nil && !p.s.Admit.May(v, id, gpus) || p.walk.free.bars(v, p.s.Unsaved, id, gpus) {
		victims.reprieveAll()
		return passedOver
	}
	p.walk.touch(id)
	p.ranks.groups.remove(p.books.jobs, id)
	p.books.book(id, gpus)
	p.walk.taken = append(p.walk.taken, id)
	if p.walk.settleVictims(&p.books, &p.ranks, id, now) {
		p.walk.evictor = id
		p.dirty = p.dirty || p.s.UserLimit > 0 // a job of the victim's user was passed over, maybe: walk again
	}
	return tookIt
}

// overLimit reports whether the user of job id may not hold n GPUs more, or could not for another job of its shape in
// this walk.
func (w *walk) overLimit(b *books, r *ranks, id sched.JobID, n, limit int) bool {
	x := &b.jobs[id]
	s := &r.groups.shapes[x.shape]
	if s.over == w.no || int(b.user[x.user])+n > limit {
		s.over = w.no
		return true
	}
	return false
}

// choose returns the n GPUs, sorted, that job id, which fits, is to have. They are on scratch until the next call.
func (w *walk) choose(v *sched.View, s *Stages, l *sched.Ledger, c *claims, id sched.JobID, n int) []sched.GPUID {
	gpus, ok := s.Place.Place(v, l, id, n, w.scratch[:0])
	w.scratch = gpus[:0]
	if !ok {
		panic("pipeline: a placer that says Fits must Place")
	}
	if !slices.IsSorted(gpus) {
		slices.Sort(gpus)
	}
	if s.Move != nil {
		gpus = mover{s.Place, s.Move}.weigh(v, l, c, id, n, gpus)
		w.scratch = gpus[:0]
	}
	return gpus
}

// winner returns the job that took, in this walk, the first GPU taken of those that evicted job id held, for the
// explanation.
func (w *walk) winner(v *sched.View, l *sched.Ledger, id sched.JobID) sched.JobID {
	w.takers.note(l, w.taken, len(v.GPUs), w.no)
	return w.takers.firstOf(v.Jobs[id].Target, w.no)
}
