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
	if displaces(v, e) {
		d.displaced(e)
	} else if x := d.of[e.Job]; x != nil && e.Job != sched.None {
		d.follow(v, e, x)
	}
}

func (d *Displacements) displaced(e *sched.Event) {
	if d.of == nil {
		d.of, d.work = make(map[sched.JobID]*Displacement), make(map[sched.JobID]time.Duration)
		d.kept = make(map[sched.JobID]time.Duration)
	}
	x := &Displacement{Job: e.Job, By: sched.None, Why: e.Why.Code, At: e.Time, Back: sched.Never}
	if x.Why == sched.WhyPreempted {
		x.By = e.Why.Job
	}
	d.of[e.Job] = x
	delete(d.kept, e.Job)
}

// follow notes in x what became of the attempt that was stopped, and of what was kept of it.
func (d *Displacements) follow(v *sched.View, e *sched.Event, x *Displacement) {
	was, stops := d.work[e.Job]
	switch e.Kind {
	case sched.Saved:
		d.shown(e, x)
	case sched.Ordered:
		if x.Back == sched.Never && sched.ActionKind(e.Code) == sched.Stop {
			d.work[e.Job] = v.Job(e.Job).Work
		}
	case sched.Progressed:
		if stops { // so far it was a guess
			d.work[e.Job] = e.Work
		}
	case sched.AttemptEnded:
		if delete(d.kept, e.Job); stops { // else what is lost from now on is not by this
			x.Lost, d.kept[e.Job] = max(was-e.Work, 0), e.Work
			delete(d.work, e.Job)
		}
	case sched.AttemptStarted:
		if x.Back == sched.Never {
			x.Back = e.Time
		}
	}
}

// shown takes what an attempt after the one that was stopped shows of what was kept of that.
func (d *Displacements) shown(e *sched.Event, x *Displacement) {
	switch e.Code {
	case sched.FromZero, sched.StartedOver:
		x.Lost += d.kept[e.Job] // it was not, after all
		delete(d.kept, e.Job)
	case sched.WentOn:
		delete(d.kept, e.Job)
	}
}
