package pipeline

import (
	"time"

	"github.com/trainyard/trainyard/sched"
)

// allocatePass is the walk of systems that grant GPUs by demand alone, before any is placed. A newcomer that cannot be
// placed waits; it holds up no other, and what was given up for it stays given up.
func (p *Pipeline) allocatePass(v *sched.View, d *sched.Desired) {
	now := v.Now.Seconds()
	replaces := p.s.replacesAt(v.Now)
	p.ranks.sortList(&p.books, now)
	if p.s.Class != nil && !p.s.ClassTakes {
		p.ranks.keepHolders(&p.books, now)
	}
	p.grants.forget(cap(v.Jobs))
	able := p.able(v)
	p.grants.take(p.s.Allocate.Allocate(v, p.grants.room, able, d, p.grants.list))
	p.walk.giveUpUngranted(v, &p.books, p.ranks.list, &p.grants, replaces)
	if p.claims.laid = replaces && p.s.Move != nil; p.claims.laid {
		p.claims.lay(v, &p.grants, p.books.ledger)
	}
	for i := range p.grants.list {
		if g := &p.grants.list[i]; p.books.jobs[g.Job].in == waiting {
			p.placeDown(v, g, now)
		}
	}
}

// replacesAt reports whether all are placed again in this round. It follows from the time alone, so that nothing need
// be remembered.
func (s *Stages) replacesAt(now sched.Time) bool {
	if !s.Replace || s.ReplaceEvery <= s.Round {
		return s.Replace
	}
	return time.Duration(now)%s.ReplaceEvery < max(s.Round, 1)
}

// able returns the jobs that may be granted GPUs, best rank first, and leaves in grants.room those there are. Protected
// holders keep what they have. A job that could never be placed would hold up those behind it for ever: it is left out.
func (p *Pipeline) able(v *sched.View) []sched.JobID {
	l, room := p.books.ledger, p.grants.room[:0]
	for t := range l.Types() {
		room = append(room, int32(l.Usable(sched.TypeID(t))))
	}
	able := p.walk.quarantined[:0]
	for _, id := range p.ranks.list {
		switch {
		case p.books.jobs[id].in == holding && p.protection.covers(v, id):
			set := l.Set(id)
			for _, g := range set {
				if l.Owner(g) == id { // who divides counts those that are shared
					room[v.Nodes[l.NodeOf(set[0])].Spec.Type]--
				}
			}
			p.protection.retryBy(p.protection.until(v, id))
		case p.s.UserLimit > 0 && p.s.least(v, id) > p.s.UserLimit:
		case p.s.Block || p.canEverFit(v, id):
			able = append(able, id)
		}
	}
	p.walk.quarantined, p.grants.room = able[:0], room
	return able
}

// takeSet gives waiting job g.Job the set in which room was found for it, and reports whether it may have it.
func takeSet(p *Pipeline, v *sched.View, g *sched.Grant) bool {
	if len(g.Set) == 0 || p.s.overLimit(&p.books, g) || !reusable(v, p.books.ledger, g.Set) ||
		p.walk.free.bars(v, p.s.Unsaved, g.Job, g.Set) {
		return false
	}
	p.walk.touch(g.Job)
	p.ranks.groups.remove(p.books.jobs, g.Job)
	p.books.book(g.Job, g.Set)
	p.walk.taken = append(p.walk.taken, g.Job)
	return true
}

// overLimit reports whether the user of g.Job may not hold the whole of its set in addition.
func (s *Stages) overLimit(b *books, g *sched.Grant) bool {
	return s.UserLimit > 0 && int(b.user[b.jobs[g.Job].user])+len(g.Set) > s.UserLimit
}

// placeDown places what g grants, or as much less as fits and its user may hold, down to what is worth starting with.
func (p *Pipeline) placeDown(v *sched.View, g *sched.Grant, now float64) {
	most := g.GPUs
	if p.s.UserLimit > 0 {
		most = min(most, int32(p.s.UserLimit)-p.books.user[p.books.jobs[g.Job].user])
	}
	for n := most; n >= g.Least && !takeSet(p, v, g); n-- {
		if p.try(v, g.Job, int(n), now) != misfit {
			break
		}
	}
	if p.claims.laid {
		p.claims.settle(g.Job, p.books.ledger.Set(g.Job))
	}
}
