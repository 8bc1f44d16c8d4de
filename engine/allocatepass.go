package engine

import (
	"time"

	"github.com/trainyard/trainyard/sched"
)

// allocatePass is the walk of systems that grant GPUs by demand alone, before any is placed. A newcomer that cannot be
// placed waits; it holds up nobody, and what was given up for it stays given up.
func (p *Pipeline) allocatePass(v *sched.View, d *sched.Desired) {
	now := v.Now.Seconds()
	p.replaces = p.replacesAt(v.Now)
	p.sortList(now)
	p.grants = p.s.Allocate.Allocate(v, p.room, p.able(v), d, p.grants[:0])
	for len(p.granted) < len(v.Jobs) {
		p.granted, p.keeps = append(p.granted, 0), append(p.keeps, 0)
	}
	p.giveUpUngranted(v)
	if p.claiming() {
		p.layClaims(v)
	}
	for i := range p.grants {
		if g := &p.grants[i]; p.jobs[g.Job].in == waiting {
			p.placeDown(v, g, now)
		}
	}
}

// replacesAt reports whether all are placed anew in this round. It follows from the time alone, so that nothing need be
// remembered.
func (p *Pipeline) replacesAt(now sched.Time) bool {
	if !p.s.Replace || p.s.ReplaceEvery <= p.s.Round {
		return p.s.Replace
	}
	return time.Duration(now)%p.s.ReplaceEvery < max(p.s.Round, 1)
}

// able returns the jobs that may be granted GPUs, best rank first, and leaves in p.room those there are. Protected holders
// keep what they have. A job that could never be placed would hold up those behind it for ever: it is left out.
func (p *Pipeline) able(v *sched.View) []sched.JobID {
	p.room = p.room[:0]
	for t := range p.ledger.Types() {
		p.room = append(p.room, int32(p.ledger.Usable(sched.TypeID(t))))
	}
	able := p.aside[:0]
	for _, id := range p.list {
		switch {
		case p.jobs[id].in == holding && p.isProtected(v, id):
			set := p.ledger.Set(id)
			p.room[v.Nodes[p.ledger.NodeOf(set[0])].Spec.Type] -= int32(len(set))
			p.retry = min(p.retry, p.protectedUntil(v, id))
		case p.s.UserLimit > 0 && p.least(v, id) > p.s.UserLimit:
		case p.s.Block || p.canEverFit(v, id):
			able = append(able, id)
		}
	}
	p.aside = able[:0]
	return able
}

// giveUpUngranted takes their GPUs from the holders that are granted none, or another number, or are to be placed anew.
func (p *Pipeline) giveUpUngranted(v *sched.View) {
	for i := range p.grants {
		if g := &p.grants[i]; !p.replaces && len(p.ledger.Set(g.Job)) == int(g.GPUs) {
			p.keeps[g.Job] = p.walkNo
		}
	}
	for _, id := range p.list {
		if p.jobs[id].in == holding && p.keeps[id] != p.walkNo && !p.isProtected(v, id) {
			p.touch(id)
			p.unbook(id)
			p.jobs[id].in = waiting
			p.waits++
		}
	}
}

// placeDown places what g grants, or as much less as fits, down to what is worth starting with.
func (p *Pipeline) placeDown(v *sched.View, g *sched.Grant, now float64) {
	for n := g.GPUs; n >= g.Least; n-- {
		if p.try(v, g.Job, int(n), now) != misfit {
			break
		}
	}
	if p.claiming() {
		p.claim(g.Job)
	}
}
