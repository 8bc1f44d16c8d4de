package host

import (
	"context"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/sched"
)

// Forecaster learns from the log, and looks into the future of a copy. All but its Moments belongs to the engine's
// goroutine.
type Forecaster interface {
	eventlog.Sink // hears the whole log, what is replayed included
	// Restart forgets what was heard: the log is heard again.
	Restart()
	// Displaced returns how a job last lost its GPUs to a decision; ok is false if it never did.
	Displaced(job sched.JobID) (d explain.Displacement, ok bool)
	// Guessed reports whether the speed at which a job runs is a guess.
	Guessed(job sched.JobID) bool
	// Take copies what v shows, what dec remembers and what jobs said of themselves. fresh makes a system that knows
	// nothing yet.
	Take(h eventlog.Header, v *sched.View, dec sched.Decider, fresh func() (sched.Decider, error)) (Moment, error)
}

// Moment is a world at one instant, whose future can be tried. It is never changed.
type Moment interface {
	View() *sched.View
	// Remedies looks for what would let a job start.
	Remedies(ctx context.Context, job sched.JobID) (*explain.Remedies, error)
	// Forecast says when jobs start and end: some, or those planned, which have the numbers after those of the moment.
	Forecast(ctx context.Context, of []sched.JobID, planned []*sched.JobSpec) (*explain.Forecast, error)
}
