package explain

import (
	"cmp"
	"slices"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Span is a time as a forecast knows it: the quantiles of what was drawn. Never = not within the horizon. Of fewer than
// nine draws that differ nothing is known but the middle: it may be at once, or never.
type Span struct {
	P10, P50, P90 sched.Time
	// Unknown: it depends on jobs of which nothing is known. Then the middle is Never.
	Unknown bool
	// Alone: it holds if no one else submits anything; how others come is not known, or not for so long.
	Alone bool
}

// Estimate is what a forecast says of one job.
type Estimate struct {
	Job   sched.JobID
	Basis Basis // of the work it has left
	Start Span  // next start: of a job that is up, when it came up
	End   Span
	// Within counts the draws in which the job ended within the horizon: with none of them, no end is known.
	Within int
}

// Forecast is a look into the future.
type Forecast struct {
	At    sched.Time // of the moment
	Until sched.Time // the horizon
	Draws int        // that were finished
	Cut   int        // of them, those that ended for too many events, before the horizon
	Ended int        // jobs that finished before, from which it knows how long jobs take
	All   int        // jobs that there are at that moment, done or not, and planned ones
	Jobs  []Estimate // of the jobs that were asked about and are not done, by JobID
	// Busy and Queue are GPUs that those jobs hold, from their start to their end, and how many of them wait for their
	// start, at times from At on: nil = of some jobs alone.
	Busy, Queue []Band
}

// Band is what a figure is at a time to come, in 10, 50 and 90 of 100 futures at most.
type Band struct {
	At            sched.Time
	P10, P50, P90 float64
}

// Of returns the estimate of job j, nil if it is done or not known, or f is nil.
func (f *Forecast) Of(j sched.JobID) *Estimate {
	if f == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(f.Jobs, j, func(e Estimate, j sched.JobID) int { return cmp.Compare(e.Job, j) })
	if !ok {
		return nil
	}
	return &f.Jobs[i]
}

// Basis is what a guess of the work of a job rests on. The words are for people and machines.
type Basis uint8

// Bases, the best first.
const (
	BySteps    Basis = iota // the job says how many steps it has in all, and how far it is
	ByClass                 // earlier jobs that were alike
	ByUser                  // earlier jobs of its user that were as wide: too few were alike
	ByWidth                 // earlier jobs of others that were as wide
	ByAll                   // all earlier jobs
	ByWallTime              // the limit on its run time alone
	ByNothing               // nothing is known but how long it has run
)

var bases = [...]string{"steps", "class", "user", "width", "all", "wall-time", "nothing"}

// String returns the word of b.
func (b Basis) String() string { return bases[b] }

// Change is something about a job, the machine or the budget that could be otherwise. The order is that of what it
// costs the one who makes it, the least first: GPUs that lie idle because a user wants it, where else the job may run,
// a promise about its length, company on its GPUs, its speed, the turns of others, money.
type Change uint8

// Changes.
const (
	Undrain         Change = iota // GPUs that a user drained
	MoreTypes                     // Spec.Types: one more
	ShorterWallTime               // Spec.WallTime
	AllowSharing                  // Spec.Share
	OtherGPUs                     // Spec.GPUs: another width of those it allows, or fewer
	HigherPriority                // Spec.Priority
	MoreBudget                    // of a system that rents
	RequeueOther                  // a job that may not be stopped for others, which its user puts back in the queue
)

var changes = [...]string{"undrain", "types", "wall_time", "share", "gpus", "priority", "budget", "requeue"}

// String returns the key of a job file that is to be changed, "undrain", "budget" or "requeue".
func (c Change) String() string { return changes[c] }

// Remedy is a change with which the system would start the job, as it was found to do on a copy.
type Remedy struct {
	Change    Change
	Spec      *sched.JobSpec // the job as it would have to be; its own for Undrain and MoreBudget
	Drained   []sched.GPUID  // Undrain: GPUs that were drained one by one and are to be used again
	Machine   bool           // Undrain: so is the machine
	Budget    float64        // MoreBudget: in GPUs
	Requeue   sched.JobID    // RequeueOther: the job
	Loses     time.Duration  // RequeueOther: its work that is lost by that
	GPUs      []sched.GPUID  // that it would be given
	At        sched.Time     // when: now, at the system's next turn, or once nodes have booted
	Displaces []sched.JobID  // jobs that would have to go for it, by JobID
}

// Remedies are what would let a waiting job start.
type Remedies struct {
	Unchanged bool       // it would start as it is, by At
	At        sched.Time // see Unchanged
	List      []Remedy   // the cheapest of each kind; those that displace no one before others, then by Change
	Tried     int        // changes that were verified, these included
}

// Displacement says how a job last lost its GPUs to a decision.
type Displacement struct {
	Job  sched.JobID
	By   sched.JobID      // who took them; None where the decision names no one
	Why  sched.ReasonCode // the rule, such as sched.WhyPreempted
	At   sched.Time
	Lost time.Duration // work that was done and not saved; 0 until the attempt has ended
	Back sched.Time    // when the job was up again; Never = not yet
}
