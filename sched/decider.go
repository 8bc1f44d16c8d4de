package sched

import "time"

// Decider is one scheduling system: a deterministic state machine over the log. It does no I/O, reads no clock, starts
// no goroutine, uses no global randomness and lets no map order reach a decision.
//
// Its memory changes in Observe only: Decide is a pure function of memory, View and v.Now. So a log can be folded
// without deciding, and a crash or a replay loses nothing.
type Decider interface {
	// Observe is called with every logged event after its fold, the system's own Decided and Refused included.
	Observe(v *View, e *Event)
	// Decide is called once after the events of an instant and appends changes to d.
	Decide(v *View, d *Desired)
	Memory
}

// Memory is what a Decider or a stage remembers, by job and the rest, so that a store may keep each job's share with
// the job. Save appends to b; Load of what Save wrote gives the same future. A Load of nothing is an error unless Save
// writes nothing.
type Memory interface {
	SaveJob(j JobID, b []byte) []byte
	SaveRest(b []byte) []byte
	LoadJob(j JobID, b []byte) error
	LoadRest(b []byte) error
}

// Key ranks a job; the smaller comes first. Value grows by Slope per second while nothing happens to the job, so that
// a key stays right between events: a running job's remaining time falls by 1, its attained service grows by its width.
// Ties go to the smaller Seq, then to the smaller JobID.
type Key struct {
	Level int32
	Value float64
	Slope float64
	Seq   int64
}

// Orderer ranks jobs.
type Orderer interface {
	// Key returns the rank of job j now, and until when it holds if nothing happens to j (Never: until something does).
	// It is asked again after each event of the job and at until.
	Key(v *View, j JobID) (k Key, until Time)
}

// Remainer estimates how much work job j still has to do, in time on the GPUs it asked for, alone. Knowledge stands
// behind it: an oracle or an estimator.
type Remainer interface {
	Remaining(v *View, j JobID) time.Duration
}

// Placer picks exact GPUs for a gang on the scratch ledger, all or nothing.
type Placer interface {
	// Fits reports whether Place would succeed, and is cheap.
	Fits(v *View, l *Ledger, j JobID, n int) bool
	// Place appends n GPUs that are free in l to dst. ok is false, and dst unchanged, if it finds none.
	Place(v *View, l *Ledger, j JobID, n int, dst []GPUID) (gpus []GPUID, ok bool)
}

// Shaper is an Orderer or Placer whose answers differ between jobs of equal demand: jobs of different shape are never
// taken for one another when the walk skips all that cannot fit.
type Shaper interface {
	Shape(v *View, j JobID) int32
}
