package allocate

import (
	"github.com/trainyard/trainyard/model/price/step"
	"github.com/trainyard/trainyard/sched"
)

// leave grants those who share GPUs what they hold, and takes it out of room. It returns those who take part in the
// division, and how many GPUs do not, with the work left there, in GPU-seconds.
func (a *Clear) leave(v *sched.View, room []int32, order []sched.JobID, dst []sched.Grant) (rest []sched.JobID,
	granted []sched.Grant, gpus int, left float64) {
	for i := range v.GPUs {
		if g := sched.GPUID(i); v.GPUs[i].Targets > 1 && v.Usable(g) {
			room[v.Nodes[v.GPUs[i].Node].Spec.Type]--
			gpus++
		}
	}
	var b bidder
	a.alone = a.alone[:0]
	for _, j := range order {
		job := &v.Jobs[j]
		shared, own := shares(v, job)
		if !shared {
			a.alone = append(a.alone, j)
			continue
		}
		room[typeOf(v, job)] -= int32(own)
		gpus += own
		if a.bidder(v, j, &b) {
			left += b.cheapest()
		}
		n := int32(len(job.Target))
		dst = append(dst, sched.Grant{Job: j, GPUs: n, Least: n, Want: job.Want, Config: job.Config})
	}
	return a.alone, dst, gpus, left
}

// shares reports whether others are to hold GPUs of job j, and how many it may use has it for itself.
func shares(v *sched.View, j *sched.Job) (shared bool, own int) {
	for _, g := range j.Target {
		switch {
		case v.GPUs[g].Targets > 1:
			shared = true
		case v.Usable(g):
			own++
		}
	}
	return shared, own
}

// Worth returns what job j does in a second alone on so many GPUs of a type, in job-seconds, and the price of a GPU of
// that type, as of the last division.
func (a *Clear) Worth(v *sched.View, j sched.JobID, t sched.TypeID, gpus int) (rate, price float64) {
	m := a.market()
	if price = m.Floor; int(t) < len(a.prices) {
		price = a.prices[t]
	}
	var b bidder
	if !a.bidder(v, j, &b) || gpus >= len(b.speed) {
		return 0, price
	}
	var c step.Curve
	c.Set(&step.Job{Speed: b.speed, Work: b.least, Restart: b.restart, Held: b.claim.Held,
		Weight: weightOf(&a.Constants, v.Now, &v.Jobs[j], a.horizon, b.ends(&v.Jobs[j]))}, m)
	return float64(c.Worth(price) * c.Speed(gpus)), price
}

// Kept lists the jobs for which GPUs are kept, in order of ids.
func (a *Clear) Kept(dst []sched.JobID) []sched.JobID {
	for j := range a.memory {
		if a.memory[j].kept > 0 {
			dst = append(dst, sched.JobID(j))
		}
	}
	return dst
}
