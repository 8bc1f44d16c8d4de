package whatif

import (
	"time"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/sched"
)

// Displacement says how a job last lost its GPUs to a decision.
type Displacement = explain.Displacement

// Displacements is a sink that remembers who displaced whom, by the reasons in the log. The zero value is ready to use.
// It has to hear the whole log, the part that is replayed included.
type Displacements struct {
	of   map[sched.JobID]*Displacement
	work map[sched.JobID]time.Duration // done when the attempt that is stopping was asked to
	kept map[sched.JobID]time.Duration // said to be, at its end
}

var _ eventlog.Sink = (*Displacements)(nil)

// Of returns how job j last lost its GPUs to a decision; ok is false if it never did.
func (d *Displacements) Of(j sched.JobID) (_ Displacement, ok bool) {
	x, ok := d.of[j]
	if !ok {
		return Displacement{}, false
	}
	return *x, true
}

// displaces reports whether an event takes the target of a job that runs away at once.
func displaces(v *sched.View, e *sched.Event) bool {
	return e.Kind == sched.Decided && len(e.GPUs) == 0 && e.Target.At == sched.AtOnce && v.Job(e.Job).HoldsDevices() &&
		v.Job(e.Job).Attempt != sched.Stopping
}

// Log notes targets that are taken away, what is lost by it and when the job is back.
func (d *Displacements) Log(v *sched.View, e *sched.Event) {
	switch {
	case displaces(v, e):
		if d.of == nil {
			d.of, d.work = make(map[sched.JobID]*Displacement), make(map[sched.JobID]time.Duration)
			d.kept = make(map[sched.JobID]time.Duration)
		}
		x := &Displacement{Job: e.Job, By: sched.None, Why: e.Why.Code, At: e.Time, Back: sched.Never}
		if x.Why == sched.WhyPreempted {
			x.By = e.Why.Job
		}
		d.of[e.Job] = x
		return
	case e.Job == sched.None || d.of[e.Job] == nil:
		return
	case e.Kind == sched.Saved && (e.Code == sched.FromZero || e.Code == sched.StartedOver):
		d.of[e.Job].Lost += d.kept[e.Job] // it was not, after all
		delete(d.kept, e.Job)
		return
	case d.of[e.Job].Back != sched.Never:
		return
	}
	switch x := d.of[e.Job]; {
	case e.Kind == sched.Ordered && sched.ActionKind(e.Code) == sched.Stop:
		d.work[e.Job] = v.Job(e.Job).Work
	case e.Kind == sched.AttemptEnded:
		if was, ok := d.work[e.Job]; ok {
			x.Lost, d.kept[e.Job] = max(was-e.Work, 0), e.Work
			delete(d.work, e.Job)
		}
	case e.Kind == sched.AttemptStarted:
		x.Back = e.Time
	}
}
