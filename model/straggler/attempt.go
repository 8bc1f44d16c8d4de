package straggler

import (
	"math"
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// How an attempt is judged. The CUSUM drifts by at least one standard deviation against it, whatever the error of the
// reference within three of its own: with normal noise it speaks by chance once in about exp(2*limit) = 5e8 reports
// (Siegmund's approximation), and the median must agree. A clipped report is less than half of what it takes, so three
// of any jump are enough and two odd ones are not.
const (
	window     = 5   // reports that say where an attempt stands: their median
	warmUp     = 10  // reports that make a reference
	clip       = 4.  // a report counts for at most so many standard deviations
	limit      = 10. // sum at which the CUSUM speaks
	refined    = 60  // reports that go into a reference at most: an hour's at one a minute
	least      = 3   // reports before anything is said
	checkEvery = 3   // reports from check to check
)

// attempt is a job at work. Levels are logarithms of step time over what is expected.
type attempt struct {
	job      sched.JobID
	kind     int32
	gpus     []sched.GPUID
	expected float64 // logarithm
	began    sched.Time
	last     sched.Time // report
	n        int        // reports
	recent   [warmUp]float64
	times    [warmUp]sched.Time
	noise    noise
	settle   int // report by which it is to have a reference of its own; 0 = it has

	source source
	ref    float64 // level of a healthy step, if source says so
	weight int     // reports behind ref, as far as they are this job's own
	dead   float64 // deviations up to here are chance, or too small to matter
	up     float64 // CUSUM of too long
	down   float64 // CUSUM of too short
	rise   sched.Time
	slow   bool
	onset  sched.Time
	checks int // reports since the last check
}

// source says where a reference comes from.
type source uint8

const (
	unknown source = iota // no reference yet
	self                  // the first reports of this attempt
	kinds                 // jobs of other kinds
	peers                 // other jobs of the kind
	earlier               // earlier attempts of the job
)

// verdict is what a report changes.
type verdict uint8

const (
	nothing verdict = iota
	anchored
	turnedSlow
	stillSlow // and a check is due
	recovered
	healthy // and a check is due
)

// expect takes the reference from what is known before the first report.
func (d *Detector) expect(a *attempt) {
	if own := d.history(a.job, a.kind); own != nil {
		a.source, a.ref, a.weight = earlier, own.ref, own.weight
		a.dead = a.deadBand(d.p.Margin)
		return
	}
	ref, scale, ok := d.peers[a.kind].middle(a.job)
	a.source = peers
	if !ok {
		ref, scale, ok = d.middleOfKinds(a.kind, a.job)
		a.source = kinds
	}
	if !ok {
		a.source = unknown
		return
	}
	a.ref, a.dead = ref, max(math.Log1p(d.p.Margin)/2, a.noise.sigma()+4*scale)
}

// deadBand is the deviation that no one hears of, with a reference of the job's own: half of what is worth a word, or
// the noise and three standard errors of the reference.
func (a *attempt) deadBand(margin float64) float64 {
	return max(math.Log1p(margin)/2, a.noise.sigma()*(1+3/math.Sqrt(float64(a.weight))))
}

// sure is how well a reference must be known.
const sure = 0.1

// backed reports whether the reference says what a step takes on other GPUs, to a tenth: such an attempt can clear its
// GPUs.
func (a *attempt) backed() bool { return a.source >= kinds && a.dead <= sure }

// feed takes in the level of one report.
func (a *attempt) feed(now sched.Time, level, margin float64) verdict {
	a.recent[a.n%warmUp], a.times[a.n%warmUp] = level, now
	a.n++
	a.last = now
	a.checks++
	if a.source == unknown {
		if a.n < warmUp {
			return nothing
		}
		a.source = self
		a.settleAt(median(a.recent[:]), warmUp, margin)
		return anchored
	}
	a.sum(now, level)
	a.refine(level, margin)
	return a.judge(now, margin)
}

// sum adds a report to the CUSUMs.
func (a *attempt) sum(now sched.Time, level float64) {
	sigma := a.noise.sigma()
	z := func(x float64) float64 { return max(-clip, min(clip, (x-a.dead)/sigma)) }
	a.up = min(2*limit, max(0, a.up+z(level-a.ref)))
	a.down = min(2*limit, max(0, a.down+z(a.ref-level)))
	if a.up == 0 {
		a.rise = now
	}
}

// judge says where the attempt stands.
func (a *attempt) judge(now sched.Time, margin float64) verdict {
	excess, worth := a.excess(), max(math.Log1p(margin), a.dead)
	switch {
	case a.n < least:
		return nothing
	case a.slow && excess <= a.dead:
		a.slow, a.up, a.rise = false, 0, now
		if a.settle > 0 {
			a.settle = a.n + warmUp
		}
		return recovered
	case !a.slow && a.up >= limit && excess > worth:
		a.slow, a.onset, a.checks = true, a.rise, 0
		return turnedSlow
	case !a.slow && a.down >= limit && excess < -worth: // what was taken for healthy was not
		a.source = self
		a.settleAt(a.level(), least, margin)
		return anchored
	case !a.slow && a.settled():
		if !a.backed() {
			a.source = self
		}
		a.settleAt(median(a.recent[:]), warmUp, margin)
		return anchored
	}
	return a.checkUp(excess)
}

// settled reports whether it is time to settle, and the attempt has gone on where its reference says.
func (a *attempt) settled() bool {
	return a.settle > 0 && a.n >= a.settle && math.Abs(median(a.recent[:])-a.ref) <= a.dead
}

// checkUp says now and then how an attempt is that goes on as before.
func (a *attempt) checkUp(excess float64) verdict {
	if a.checks < checkEvery {
		return nothing
	}
	a.checks = 0
	switch {
	case a.slow:
		return stillSlow
	case a.up == 0 && excess <= a.dead:
		return healthy
	}
	return nothing
}

// settleAt makes ref, which so many of the attempt's own reports say, the reference.
func (a *attempt) settleAt(ref float64, weight int, margin float64) {
	a.ref, a.weight, a.up, a.down, a.settle = ref, weight, 0, 0, 0
	a.dead = a.deadBand(margin)
	a.rise = a.last
}

// refine brings a reference of the attempt's own nearer to the truth. What might be the start of a change does not
// count, and no report for much.
func (a *attempt) refine(level, margin float64) {
	if a.settle > 0 || a.slow || a.weight >= refined || max(a.up, a.down) > limit/2 {
		return
	}
	a.weight++
	most := 2 * a.noise.sigma()
	a.ref += max(-most, min(most, level-a.ref)) / float64(a.weight)
	a.dead = a.deadBand(margin)
}

// level is where the attempt stands now.
func (a *attempt) level() float64 {
	var last [window]float64
	n := min(a.n, window)
	for i := range n {
		last[i] = a.recent[(a.n-1-i)%warmUp]
	}
	return median(last[:n])
}

// excess is the level over the reference.
func (a *attempt) excess() float64 { return a.level() - a.ref }

// surely is a time at which the level was already what it is: most of the window was reported from then on.
func (a *attempt) surely() sched.Time { return a.times[(a.n-least)%warmUp] }

// median returns the middle of x, or the mean of the two middle ones. It changes the order of a copy.
func median(x []float64) float64 {
	var room [maxPeers]float64
	sorted := append(room[:0], x...)
	slices.Sort(sorted)
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}
