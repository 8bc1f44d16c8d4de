package manager

import (
	"fmt"
	"iter"
	"slices"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/manager/store"
	"github.com/trainyard/trainyard/sched"
)

// mend supposes what stands for the events of the log that cannot be read, wherever they are, so that all others can be
// folded: jobs keep their numbers, and nothing is lost but what those events said. It returns the stand-ins. There are
// none, and nothing is supposed, where all events can be read, where the log cannot do without one of those that
// cannot, or contradicts itself.
func (k *keeper) mend() []store.StandIn {
	list, err := k.Unreadable()
	if err != nil || len(list) == 0 ||
		slices.ContainsFunc(list, func(x store.StandIn) bool { return !x.Spared && !x.Kept }) {
		return nil
	}
	k.Suppose(list)
	if _, _, err := k.fold(); err != nil {
		k.Suppose(nil)
		return nil
	}
	return list
}

// fold returns the state that the log leads to, whoever decided. The number of the last event that was looked at goes
// with an error.
func (k *keeper) fold() (state *engine.State, at uint64, err error) {
	h, err := k.logged()
	if err != nil {
		return nil, 0, err
	}
	state, _, err = engine.Fold(h, k.numbered(&at))
	return state, at, err
}

// numbered reads the log, with the number of the last event in at. What the fold would pass over is an error: a job
// that arrives under another number than its own, and an attempt that is started before the one before has ended.
func (k *keeper) numbered(at *uint64) iter.Seq2[*eventlog.Record, error] {
	return func(yield func(*eventlog.Record, error) bool) {
		seen := order{live: make(map[sched.JobID]bool)}
		for rec, err := range k.records {
			if err == nil {
				*at = rec.Event.Seq
				err = seen.next(&rec.Event)
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// order is what a log has said so far of jobs and attempts.
type order struct {
	jobs sched.JobID
	live map[sched.JobID]bool // has an attempt that was ordered and has not ended
}

// next returns why an event cannot follow; nil if it can.
func (o *order) next(e *sched.Event) error {
	switch {
	case e.Kind == sched.JobArrived && e.Job != o.jobs:
		return fmt.Errorf("log: seq %d: job %d arrives, want job %d", e.Seq, e.Job, o.jobs)
	case e.Kind == sched.JobArrived:
		o.jobs++
	case e.Kind == sched.Ordered && sched.ActionKind(e.Code) == sched.Start && o.live[e.Job]:
		return fmt.Errorf("log: seq %d: an attempt of job %d starts, and the one before has not ended", e.Seq, e.Job)
	case e.Kind == sched.Ordered && sched.ActionKind(e.Code) == sched.Start:
		o.live[e.Job] = true
	case e.Kind == sched.AttemptEnded, e.Kind == sched.StartFailed, e.Kind == sched.Released:
		delete(o.live, e.Job)
	}
	return nil
}
