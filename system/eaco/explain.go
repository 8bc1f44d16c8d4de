package eaco

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/trainyard/trainyard/sched"
)

var (
	_ sched.Explainer = (*Decider)(nil)
	_ sched.Explainer = (*Pairs)(nil)
)

// separate returns a copy that can be asked what would be decided: its scratch and its explanations of sets are its
// own.
func (c *core) separate() core {
	x := *c
	x.finder, x.ask = finder{rule: c.finder.rule}, newPredictor(c.know.Learner)
	return x
}

// Explain says of a job that has GPUs how it gets on next to others and how its trial goes, of one that waits which
// sets of GPUs were looked at and why none is for it.
func (d *Decider) Explain(v *sched.View, j sched.JobID, say func(sched.Fact)) {
	if !d.primed || int(j) >= len(d.held) || int(j) >= len(d.jobs) || v.Jobs[j].State == sched.Done {
		return
	}
	x := *d
	x.core, x.crowd = d.separate(), nil
	switch {
	case len(x.held[j]) > 0:
		x.reportHeld(v, j, say)
	case x.queued[j]:
		x.reportWaiting(v, j, say)
	}
}

// reportHeld says how many jobs share the GPUs of job j, how much that slows it and may, and of a trial who is the
// newcomer, when it is over at the latest, and how much slower the epoch was that was timed.
func (d *Decider) reportHeld(v *sched.View, j sched.JobID, say func(sched.Fact)) {
	say(sched.Fact{Name: "jobs-on-its-gpus", Value: float64(d.size(j))})
	slow := d.slowOff(v, j, nil)
	say(sched.Fact{Name: "slow-down-predicted", Value: slow})
	d.reportLimit(v, j, slow, say)
	for _, o := range d.open {
		d.crowd = d.partner(d.held[o], d.crowd)
		if !slices.Contains(d.crowd, j) {
			continue
		}
		say(sched.Fact{Name: "on-trial", Text: nameOf(v, o)})
		if m := &d.jobs[o]; m.until != sched.Never {
			say(sched.Fact{Name: "trial-over-in", Value: max(m.until.Sub(v.Now), 0).Seconds(), Unit: "s"})
		}
		if took, alone := d.jobs[j].took, d.know.epoch(v, j); took > 0 && alone > 0 {
			say(sched.Fact{Name: "slow-down-measured", Value: float64(took) / float64(alone)})
		}
		return
	}
}

// reportLimit says how much slower than alone job j may be, or what it has to spare if it is so much slower.
func (d *Decider) reportLimit(v *sched.View, j sched.JobID, slow float64, say func(sched.Fact)) {
	if end := v.Jobs[j].Spec.Deadline; end > 0 {
		say(sched.Fact{Name: "slack", Value: end.Sub(d.know.finish(v, j, slow)).Seconds(), Unit: "s"})
		return
	}
	say(sched.Fact{Name: "slow-down-limit", Value: d.p.Slow})
}

// mostReported bounds the sets that are reported one by one.
const mostReported = 4

// reportWaiting says what keeps job j from sharing, how many GPUs it may have by themselves and what bars it from the
// others, and the sets that were looked at, the most used first.
func (d *Decider) reportWaiting(v *sched.View, j sched.JobID, say func(sched.Fact)) {
	spec, late := v.Jobs[j].Spec, d.late(v, j)
	n := d.need(v, j, late)
	d.reportLimit(v, j, 1, say)
	if held := d.heldBy(v, spec.User); d.p.UserGPUs > 0 && held+n.gpus > d.p.UserGPUs {
		say(sched.Fact{Name: "held-by-its-user", Value: float64(held), Unit: "GPUs"})
	}
	if why := d.alone(v, j); why != "" {
		say(sched.Fact{Name: "shares-with-nobody", Text: why})
	} else if late {
		say(sched.Fact{Name: "shares-with-nobody", Text: "it misses its deadline even alone"})
	}
	d.reportBars(v, &n, say)
	if late && d.p.LateWait {
		return
	}
	sets := 0
	set := d.first(v, &d.book, n, func(gpus []sched.GPUID) bool {
		r := d.admits(v, j, gpus)
		if sets++; sets <= mostReported {
			say(sched.Fact{Name: fmt.Sprintf("set-%d", sets), Text: where(v, gpus) + ": " + d.reportRefusal(v, r)})
		}
		return r.code == admitted
	})
	say(sched.Fact{Name: "sets-looked-at", Value: float64(sets)})
	if set != nil {
		say(sched.Fact{Name: "fits", Text: where(v, set)})
	}
}

// heldBy returns how many GPUs a user holds.
func (b *book) heldBy(v *sched.View, user string) (n int) {
	for id := range b.held {
		if v.Jobs[id].Spec.User == user {
			n += len(b.held[id])
		}
	}
	return n
}

var barNames = [bars]string{"gpus-it-may-have", "gpus-not-shared", "gpus-full", "gpus-too-used", "gpus-short-of-memory"}

// reportBars says how many GPUs of its types there are by what bars the job from them.
func (d *Decider) reportBars(v *sched.View, n *need, say func(sched.Fact)) {
	var count [bars]int
	for i := range v.Nodes {
		if node := &v.Nodes[i]; !node.Open() || !n.types.Has(node.Spec.Type) {
			continue
		}
		spots := d.spots(v, sched.NodeID(i)).spots
		for k := range spots {
			count[d.barred(&spots[k], n)]++
		}
	}
	for why, gpus := range count {
		if gpus > 0 || bar(why) == joins {
			say(sched.Fact{Name: barNames[why], Value: float64(gpus), Unit: "GPUs"})
		}
	}
}

// reportRefusal says why a set is not for a job.
func (d *Decider) reportRefusal(v *sched.View, r refusal) string {
	switch name := nameOf(v, r.job); r.code {
	case tooSlow:
		if v.Jobs[r.job].Spec.Deadline > 0 {
			return fmt.Sprintf("%s would be %.4g times slower and miss its deadline", name, r.slow)
		}
		return fmt.Sprintf("%s would be %.4g times slower, at most %.4g is allowed", name, r.slow, d.p.Slow)
	case tried:
		return name + " was taken off those there before"
	case onTrial:
		return name + " takes part in a trial"
	case noSave:
		return "a trial might stop it, and nothing shows that it saves"
	case noSlack:
		return name + " has too little time to spare for a trial that fails"
	}
	return "it may have them"
}

// nameOf returns what people call job j.
func nameOf(v *sched.View, j sched.JobID) string {
	return cmp.Or(v.Jobs[j].Spec.Name, fmt.Sprintf("job %d", j))
}

// where names the nodes of gpus, which are in order.
func where(v *sched.View, gpus []sched.GPUID) string {
	text, last := fmt.Sprintf("%d GPUs of", len(gpus)), sched.NodeID(sched.None)
	for _, g := range gpus {
		if n := v.GPUs[g].Node; n != last {
			text, last = text+" "+v.Nodes[n].Spec.Name, n
		}
	}
	return text
}

// Explain says of a job that has GPUs how much slower the other one on them makes it, of one that waits how many jobs
// it could join, next to which of them both do most, and how much that would have to be.
func (p *Pairs) Explain(v *sched.View, j sched.JobID, say func(sched.Fact)) {
	if !p.primed || int(j) >= len(p.held) || v.Jobs[j].State == sched.Done {
		return
	}
	x := *p
	x.core, x.crowd = p.separate(), nil
	switch {
	case len(x.held[j]) > 0:
		g := x.held[j][0]
		say(sched.Fact{Name: "jobs-on-its-gpus", Value: float64(len(x.on[g]))})
		say(sched.Fact{Name: "slow-down-predicted", Value: x.ask.slow(v, g, len(x.held[j]), j, x.on[g], sched.None)})
	case x.queued[j]:
		x.reportPartners(v, j, say)
	}
}

func (p *Pairs) reportPartners(v *sched.View, j sched.JobID, say func(sched.Fact)) {
	if !joinsOthers(v, j) {
		say(sched.Fact{Name: "shares-with-nobody",
			Text: "it does not want to, its model is not given, or no one does here"})
		return
	}
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
	say(sched.Fact{Name: "best-beside", Text: nameOf(v, best)})
	say(sched.Fact{Name: "done-together", Value: most})
	say(sched.Fact{Name: "done-together-least", Value: least})
}
