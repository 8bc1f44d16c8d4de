package eaco

import (
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/share"
)

var (
	_ sched.Explainer = (*Decider)(nil)
	_ sched.Explainer = (*Pairs)(nil)
)

// Explain says of a job that has GPUs how it gets on next to others and how its trial goes, of one that waits which
// sets of GPUs were looked at and why none is for it.
func (d *Decider) Explain(v *sched.View, j sched.JobID, say func(sched.Fact)) {
	c := d.Separate(v, j)
	switch {
	case c == nil:
	case len(c.Held[j]) > 0:
		c.ReportHeld(v, j, say)
	case c.Queued[j]:
		d.reportWaiting(v, c, j, say)
	}
}

// reportWaiting says what keeps job j from sharing and from running, on a copy of the company.
func (d *Decider) reportWaiting(v *sched.View, c *share.Company, j sched.JobID, say func(sched.Fact)) {
	spec, late := v.Jobs[j].Spec, c.Late(v, j)
	n := c.NeedOf(v, j, late)
	c.ReportLimit(v, j, 1, say)
	c.ReportClass(v, j, say)
	if held := c.HeldBy(v, spec.User); d.p.UserGPUs > 0 && held+n.GPUs > d.p.UserGPUs {
		say(sched.Fact{Name: "held-by-its-user", Value: float64(held), Unit: "GPUs"})
	}
	if why := c.Apart(v, j); why != "" {
		say(sched.Fact{Name: "shares-with-nobody", Text: why})
	} else if late {
		say(sched.Fact{Name: "shares-with-nobody", Text: "it misses its deadline even alone"})
	}
	c.ReportMemory(v, j, say)
	c.ReportBars(v, &n, say)
	if !late || !d.p.LateWait {
		c.ReportSets(v, j, n, say)
	}
}

// Explain says of a job that has GPUs how much slower the other one on them makes it, of one that waits how many jobs
// it could join, next to which of them both do most, and how much that would have to be.
func (p *Pairs) Explain(v *sched.View, j sched.JobID, say func(sched.Fact)) {
	if !p.Primed() || int(j) >= len(p.Held) || v.Jobs[j].State == sched.Done {
		return
	}
	x := *p
	x.Core, x.crowd = p.Separate(), nil
	switch {
	case len(x.Held[j]) > 0:
		g := x.Held[j][0]
		say(sched.Fact{Name: "jobs-on-its-gpus", Value: float64(len(x.On[g]))})
		say(sched.Fact{Name: "slow-down-predicted", Value: x.Slower(v, g, len(x.Held[j]), j, x.On[g], sched.None)})
	case x.Queued[j]:
		x.ReportClass(v, j, say)
		x.reportPartners(v, j, say)
	}
}

func (p *Pairs) reportPartners(v *sched.View, j sched.JobID, say func(sched.Fact)) {
	if !joinsOthers(v, j) {
		say(sched.Fact{Name: "shares-with-nobody",
			Text: "it does not want to, its model is not given, or no one does here"})
		return
	}
	p.ReportMemory(v, j, say)
	p.singles(v, j)
	say(sched.Fact{Name: "could-join", Value: float64(len(p.crowd)), Unit: "jobs"})
	best, most := sched.JobID(sched.None), 0.0
	for _, o := range p.crowd {
		if both := p.together(v, j, o); both > most {
			best, most = o, both
		}
	}
	if best == sched.None {
		return
	}
	least := packedMore
	if p.rule == Gandiva {
		least = gandivaLeast
	}
	say(sched.Fact{Name: "best-beside", Text: share.NameOf(v, best)})
	say(sched.Fact{Name: "done-together", Value: most})
	say(sched.Fact{Name: "done-together-least", Value: least})
}
