package remaining

import (
	"github.com/trainyard/trainyard/sched"
)

// Stated takes jobs at their word: what is left by the steps that they report, else of the wall time that they state.
// Of others it knows nothing but how long they have lasted. It learns nothing from other jobs. NewStated is the only
// way to one.
type Stated struct{ *Estimator }

// NewStated returns a Stated that has heard nothing.
func NewStated() Stated { return Stated{New()} }

// Left returns the work that job j has left, in seconds, for an order and as expected.
func (s Stated) Left(v *sched.View, j sched.JobID) (effective, mean float64) {
	if left, ok := s.reported(v, j); ok {
		return left.Seconds(), left.Seconds()
	}
	done := max(v.Jobs[j].WorkNow(v.Now), 0).Seconds()
	if wall := v.Jobs[j].Spec.WallTime.Seconds(); wall > done {
		return wall - done, wall - done
	}
	return (&mix{}).at(done)
}

// Assumed reports whether what job j has left is a guess: it says nothing of it.
func (s Stated) Assumed(v *sched.View, j sched.JobID) bool {
	return !s.Sure(v, j) && v.Jobs[j].Spec.WallTime <= 0
}

// Known takes what is left of jobs from an oracle.
type Known struct{ sched.Remainer }

// Left returns the work that job j has left, in seconds, twice.
func (k Known) Left(v *sched.View, j sched.JobID) (effective, mean float64) {
	left := k.Remaining(v, j).Seconds()
	return left, left
}
