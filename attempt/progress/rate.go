package progress

import (
	"cmp"
	"slices"
	"time"
)

// Rate estimates how fast a count rises while it does: the median of the slopes between readings of a window that are
// at most lags apart. A pause for a checkpoint or an evaluation does not move it much, nor does a burst of lines after
// one: it is the speed of the training proper, not what all of a run comes to. The zero value is ready to use.
//
// The first reading after a start is cut: up to the next one, a training still warms up.
//
// Source: specification of the manager, section 5.3, asks for a robust slope over a window; this one is ours, after
// Theil and Sen, who take all pairs: one pause in the middle of a window is between half of those.
type Rate struct {
	Apart  time.Duration // between readings, at least; 0 = apart
	points [window]point // of this run of counts, oldest first
	n      int
	last   float64 // count
	cut    bool    // the first reading was passed over
}

type point struct {
	at    time.Duration
	count float64
}

// Size of a Rate: readings are apart by at least apart, unless it says otherwise, so that a window is 2 minutes or
// longer.
const (
	window = 25
	apart  = 5 * time.Second
	lags   = 6 // readings
	enough = 3 // readings before there is an estimate
)

// Add takes in that the count was so large at a time, by the caller's clock, which must not fall. A count that falls,
// or that the caller says counts something else (again), starts a new window: what was lost and is done again has its
// own speed.
func (r *Rate) Add(at time.Duration, count float64, again bool) {
	fell := again || count < r.last
	r.last = count
	if fell {
		r.n = 0
	}
	if !r.cut {
		r.cut = true
		return
	}
	if r.n > 0 && at < r.points[r.n-1].at+cmp.Or(r.Apart, apart) {
		return
	}
	if r.n == window {
		r.n = copy(r.points[:], r.points[1:])
	}
	r.points[r.n] = point{at, count}
	r.n++
}

// PerSecond returns the estimate, and false as long as too little is known.
func (r *Rate) PerSecond() (float64, bool) {
	if r.n < enough {
		return 0, false
	}
	var slopes [window * lags]float64
	k := 0
	for i := range r.points[:r.n] {
		for j := i + 1; j < min(r.n, i+1+lags); j++ {
			slopes[k] = (r.points[j].count - r.points[i].count) / (r.points[j].at - r.points[i].at).Seconds()
			k++
		}
	}
	slices.Sort(slopes[:k])
	return (slopes[(k-1)/2] + slopes[k/2]) / 2, true
}
