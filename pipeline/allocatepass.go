package pipeline

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
	p.forgetGrants(v)
	p.grants = p.s.Allocate.Allocate(v, p.room, p.able(v), d, p.grants)
	for i := range p.grants {
		p.grantOf[p.grants[i].Job] = int32(i) + 1
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

// forgetGrants empties grants and grantOf.
func (p *Pipeline) forgetGrants(v *sched.View) {
	for i := range p.grants {
		p.grantOf[p.grants[i].Job] = 0
	}
	p.grants = p.grants[:0]
	if more := cap(v.Jobs) - len(p.grantOf); more > 0 {
		p.grantOf = append(p.grantOf, make([]int32, more)...)
	}
}

// grant returns what job id was granted in this walk, nil if nothing.
func (p *Pipeline) grant(id sched.JobID) *sched.Grant {
	if p.s.Allocate == nil || p.grantOf[id] == 0 {
		return nil
	}
	return &p.grants[p.grantOf[id]-1]
}

// runsAsGranted reports whether job id is to run as it does.
func (p *Pipeline) runsAsGranted(v *sched.View, id sched.JobID) bool {
	g, j := p.grant(id), &v.Jobs[id]
	return g == nil || j.Config == g.Config && j.Want == g.Wanted()
}

// giveUpUngranted takes their GPUs from the holders that are granted none, or another number, or are to be placed anew.
func (p *Pipeline) giveUpUngranted(v *sched.View) {
	for _, id := range p.list {
		g := p.grant(id)
		keeps := g != nil && !p.replaces && !g.Anew && len(p.ledger.Set(id)) == int(g.GPUs)
		if p.jobs[id].in == holding && !keeps && !p.isProtected(v, id) {
			p.touch(id)
			p.unbook(id)
			p.jobs[id].in = waiting
			p.waits++
		}
	}
}

// reconfigure has those who keep the GPUs they hold run as they were granted: the walk has not touched them.
func (p *Pipeline) reconfigure(v *sched.View, d *sched.Desired) {
	for i := range p.grants {
		g := &p.grants[i]
		if p.jobs[g.Job].in == holding && p.stamp[g.Job] != p.walkNo && !p.runsAsGranted(v, g.Job) {
			t := d.Keep(v, g.Job)
			t.Config, t.Want = g.Config, g.Wanted()
		}
	}
}

// placeDown places what g grants, or as much less as fits and its user may hold, down to what is worth starting with.
func (p *Pipeline) placeDown(v *sched.View, g *sched.Grant, now float64) {
	most := g.GPUs
	if p.s.UserLimit > 0 {
		most = min(most, int32(p.s.UserLimit)-p.user[p.jobs[g.Job].user])
	}
	for n := most; n >= g.Least; n-- {
		if p.try(v, g.Job, int(n), now) != misfit {
			break
		}
	}
	if p.claiming() {
		p.claim(g.Job)
	}
}
