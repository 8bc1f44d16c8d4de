package straggler

import (
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// incident is a slow attempt.
type incident struct {
	job      sched.JobID
	gpus     []sched.GPUID
	onset    sched.Time
	last     sched.Time // when it was last found slow
	level    float64    // then
	reported int8       // checks that said so
	open     bool       // the attempt goes on
}

// limits on what is kept.
const (
	maxCases = 256
	owed     = 5 // good checks that a blamed GPU is charged with
	outweigh = 3 // that take back a charge
)

func (d *Detector) openCase(j sched.JobID) *incident {
	for _, c := range d.cases {
		if c.open && c.job == j {
			return c
		}
	}
	return nil
}

// accuse starts a case against the GPUs of an attempt that has just been found slow, unless it is the job's own doing.
func (d *Detector) accuse(now sched.Time, a *attempt) {
	if earlierCase := d.lastCase(a.job); a.source == earlier && a.onset <= a.began && earlierCase != nil &&
		!d.nearby(earlierCase, a) {
		d.withdraw(earlierCase)
		a.slow = false
		a.source = self
		a.settleAt(a.level(), least, d.p.Margin)
		d.remember(a)
		return
	}
	if len(d.cases) == maxCases {
		d.cases = slices.Delete(d.cases, 0, 1)
	}
	d.cases = append(d.cases, &incident{job: a.job, gpus: a.gpus, onset: a.onset, open: true})
	d.uphold(now, a)
}

// lastCase returns the last case of job j that is over.
func (d *Detector) lastCase(j sched.JobID) *incident {
	for i := len(d.cases) - 1; i >= 0; i-- {
		if c := d.cases[i]; c.job == j && !c.open {
			return c
		}
	}
	return nil
}

// nearby reports whether an attempt is on a node of the case.
func (d *Detector) nearby(c *incident, a *attempt) bool {
	return slices.ContainsFunc(a.gpus, func(g sched.GPUID) bool {
		return slices.ContainsFunc(c.gpus, func(h sched.GPUID) bool { return d.gpus[g].node == d.gpus[h].node })
	})
}

// withdraw takes back what a case said of its GPUs.
func (d *Detector) withdraw(c *incident) {
	for _, g := range c.gpus {
		for range min(c.reported, outweigh) {
			d.out = append(d.out, Check{GPU: g, Factor: 1, Share: 1})
		}
	}
	d.cases = slices.DeleteFunc(d.cases, func(x *incident) bool { return x == c })
}

// uphold brings a case up to date and says who is to blame.
func (d *Detector) uphold(now sched.Time, a *attempt) {
	d.forget(now)
	c := d.openCase(a.job)
	if c == nil {
		return // forgotten: there were too many
	}
	c.last, c.level = now, a.excess()
	c.reported = min(c.reported+1, outweigh)
	gpus, share := d.blame(c)
	for _, g := range gpus {
		d.gpus[g].marked = owed
		d.out = append(d.out, Check{GPU: g, Factor: factorOf(c.level), Share: share})
	}
}

// forget drops cases that say nothing any more: too old, or all of their GPUs were seen healthy since.
func (d *Detector) forget(now sched.Time) {
	d.cases = slices.DeleteFunc(d.cases, func(c *incident) bool {
		return !c.open && (now.Sub(c.last) > d.p.Memory || !slices.ContainsFunc(c.gpus, func(g sched.GPUID) bool {
			return d.suspect(g, c)
		}))
	})
}

// suspect reports whether nothing clears GPU g of case c.
func (d *Detector) suspect(g sched.GPUID, c *incident) bool { return d.gpus[g].clear <= c.onset }

// acquit ends the case of an attempt that is as fast as before: it is over, whatever it was.
func (d *Detector) acquit(a *attempt) {
	if c := d.openCase(a.job); c != nil {
		d.cases = slices.DeleteFunc(d.cases, func(x *incident) bool { return x == c })
	}
	for _, g := range a.gpus {
		d.good(g)
	}
}

// clear notes that the GPUs of a healthy attempt are healthy.
func (d *Detector) clear(a *attempt) {
	if !a.backed() {
		return
	}
	at := a.surely()
	for _, g := range a.gpus {
		d.gpus[g].clear = max(d.gpus[g].clear, at)
		d.good(g)
	}
}

// good reports a good check of a GPU that was blamed.
func (d *Detector) good(g sched.GPUID) {
	if d.gpus[g].marked > 0 {
		d.gpus[g].marked--
		d.out = append(d.out, Check{GPU: g, Factor: 1, Share: 1})
	}
}
