package allocate

import (
	"math"

	"github.com/trainyard/trainyard/model/price/step"
	"github.com/trainyard/trainyard/sched"
)

// bidder is a job in a division by price.
type bidder struct {
	claim   Claim
	curve   *step.Curve // with its restart; nil = to be made
	own     step.Curve  // memory for it
	speed   []float64   // by width, 0 = not allowed
	least   float64     // effective work left, in seconds at factor 1
	mean    float64     // expected work left, in seconds at factor 1
	restart float64
	width   int // that it has now
	moved   bool
	settled bool          // its width changed at this instant: it gives nothing up
	stays   bool          // once it runs it may not be stopped
	again   bool          // it is moved at its width
	stopped bool          // or made narrower, for others
	at      int           // in the auction
	set     []sched.GPUID // where room was found for it, if it moved
}

// leastWork, in seconds, is what a job has left that is about to end.
const leastWork = 1

// bidder fills b with what there is to know of job j, but for its weight and curve.
func (a *Clear) bidder(v *sched.View, j sched.JobID, b *bidder) bool {
	c := a.Rates.claim(v, j)
	if _, possible := c.Least(); !possible {
		return false
	}
	job := &v.Jobs[j]
	asked := c.asked(job.Unit())
	e, m := a.Sizes.Left(v, j)
	b.stays = a.Rates.Unsaved.Protects(job)
	if b.stays {
		e = m // the effective work supposes that it can be stopped
	}
	e = a.held(job, j, e)
	b.claim, b.curve, b.width, b.moved, b.again, b.stopped = c, nil, c.Held, false, false, false
	b.settled = a.memory[j].changed == v.Now+1
	b.least = float64(max(e, leastWork) * asked)
	b.mean = float64(max(m, leastWork) * asked)
	b.restart = 0
	if job.Attempts > 0 {
		b.restart = a.Rates.Restart(job.Spec.Model).Seconds()
	}
	b.speed = append(b.speed[:0], c.S[:min(a.widest(v, &c), len(c.S)-1)+1]...)
	clear(b.speed[:min(c.Min, len(b.speed))])
	if c.Held > 0 && c.Held < len(c.S) && c.Held >= len(b.speed) {
		b.speed = append(b.speed, c.S[len(b.speed):c.Held+1]...)
	}
	if c.Held >= len(b.speed) || c.Held > 0 && b.speed[c.Held] == 0 {
		b.width = 0 // it cannot go on so: as it trains, what is possible changes
	}
	return true
}

// widest returns the widest that a job may be: where speeds are learned, twice as wide as one of its kind has been.
func (a *Clear) widest(v *sched.View, c *Claim) int {
	if a.Explored == nil || c.curve == nil {
		return c.Max
	}
	seen := a.Explored.Of(v.Jobs[c.ID].Spec.Model)
	return min(c.Max, max(2*seen, int(v.Jobs[c.ID].Spec.GPUs.Want), c.Min))
}

// held returns the effective work that counts of a job that could have e left, in seconds. While it runs, work that
// rises is held at its reference until it is HoldFor times that, which is the next reference: that a job was not
// lucky yet does not have it stopped at once.
func (a *Clear) held(job *sched.Job, j sched.JobID, e float64) float64 {
	for int(j) >= len(a.memory) {
		a.memory = append(a.memory, jobMemory{})
	}
	m := &a.memory[j]
	if len(job.Target) == 0 {
		m.reference = 0
		return e
	}
	if m.reference == 0 || e >= float64(a.Constants.HoldFor*m.reference) {
		m.reference = e
	}
	return min(e, m.reference)
}

// ends returns the seconds until the job ends as it asked to run.
func (b *bidder) ends(job *sched.Job) float64 { return b.mean / b.claim.asked(job.Unit()) }

// cheapest returns the fewest GPU-seconds in which the job's work can be done.
func (b *bidder) cheapest() float64 {
	best := math.Inf(1)
	for k, s := range b.speed {
		if s > 0 {
			best = min(best, float64(float64(k)*b.mean)/s)
		}
	}
	return best
}

// most returns the widest that b may be.
func (b *bidder) most() int { return len(b.speed) - 1 }

// unsaved returns the seconds of work, at factor 1, that a job loses if it is stopped now.
func (b *bidder) unsaved(v *sched.View) float64 {
	job := &v.Jobs[b.claim.ID]
	if job.Evidence == sched.SavesNot || job.Evidence == sched.ResumesNot {
		return float64(max(job.WorkNow(v.Now), 0).Seconds() * b.claim.asked(job.Unit()))
	}
	return 0
}
