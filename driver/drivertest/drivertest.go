// Package drivertest is the conformance suite of drivers: whatever implements sched.Driver must pass it. It plays the
// engine's part by hand, so it tests the driver alone: what it reports, when, and how often.
package drivertest

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Bench describes what a driver under test was opened with. Its cluster has at least 2 GPUs. Its jobs 0, 1 and 2 arrive
// by themselves, soon, each of one GPU: job 1 is done within Short of its start, the others need longer than Long.
type Bench struct {
	Short, Long time.Duration // Short < Long
	Endless     bool          // io.EOF never comes: jobs may be submitted for ever
}

// Run tests the drivers that open makes, a new one for each test.
func Run(t *testing.T, open func(t *testing.T) (sched.Driver, Bench)) {
	for _, c := range []struct {
		name string // what the test ensures
		test func(*rig)
	}{
		{"SyncReportsTheInventory", func(r *rig) {}},
		{"TicksExactlyAtUntil", (*rig).ticks},
		{"StartIsAnswered", func(r *rig) { r.start(0, 1); r.until(r.startedOf(0)) }},
		{"AttemptEndsByItselfOnce", (*rig).endsByItself},
		{"StopIsAnsweredOnce", (*rig).stopped},
		{"StopBeforeTheStartIsReported", (*rig).stoppedEarly},
		{"StopRacesWithTheEnd", (*rig).race},
		{"ActionsAreIdempotent", (*rig).twice},
		{"NextAttemptGoesOn", (*rig).again},
		{"ActionsForThePastDoNothing", (*rig).past},
		{"NextCutShortLosesNothing", (*rig).cut},
		{"EndsWhenNothingCanCome", (*rig).eof},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d, b := open(t)
			r := &rig{T: t, d: d, Bench: b, now: d.Now(), ctx: t.Context()}
			r.sync()
			c.test(r)
		})
	}
}

// rig is a driver under test and what it has reported.
type rig struct {
	*testing.T
	Bench
	d        sched.Driver
	v        sched.View // what a driver may look up: nodes, GPUs and the specs of jobs
	ctx      context.Context
	now      sched.Time
	arrived  int
	attempts [3]attempts
}

// attempts counts the reports about the attempts of one job, by number.
type attempts struct {
	last    int32         // ordered
	work    time.Duration // at the latest start
	started map[int32]int
	ended   map[int32][]sched.Event
}

// sync checks the inventory and waits for the three jobs.
func (r *rig) sync() {
	events, err := r.d.Sync(r.ctx, &r.v)
	if err != nil {
		r.Fatal(err)
	}
	for i := range events {
		e := &events[i]
		if e.Kind != sched.NodeJoined {
			continue
		}
		if err := e.NodeSpec.Validate(); err != nil {
			r.Fatalf("node %q: %v", e.NodeSpec.Name, err)
		}
		Join(&r.v, e)
	}
	gpus := len(r.v.GPUs)
	if gpus < 2 {
		r.Fatalf("%d GPUs in the inventory, want at least 2", gpus)
	}
	for i := range r.attempts {
		r.attempts[i].started, r.attempts[i].ended = map[int32]int{}, map[int32][]sched.Event{}
	}
	r.until(func() bool { return r.arrived == 3 })
}

// Join adds the node of a NodeJoined to v, as the engine would to a cluster in which none ever left.
func Join(v *sched.View, e *sched.Event) {
	id := sched.NodeID(len(v.Nodes))
	v.Nodes = append(v.Nodes, sched.Node{Spec: *e.NodeSpec, Generation: 1, First: sched.GPUID(len(v.GPUs))})
	for range e.NodeSpec.GPUs {
		v.GPUs = append(v.GPUs, sched.GPU{Node: id})
	}
}

// next asks for the events of an instant and checks what holds of any.
func (r *rig) next(until sched.Time) []sched.Event {
	r.Helper()
	events, err := r.d.Next(r.ctx, until)
	if err != nil {
		r.Fatalf("next until %v: %v", until, err)
	}
	if len(events) == 0 {
		r.Fatal("next returned no events")
	}
	if now := r.d.Now(); now < r.now || now < events[0].Time {
		r.Fatalf("now is %v, was %v, the events are of %v", now, r.now, events[0].Time)
	}
	for i := range events {
		r.note(&events[i], events[0].Time, until)
	}
	if events[0].Kind == sched.Ticked && (len(events) > 1 || events[0].Time != max(until, r.now)) {
		r.Fatalf("ticked at %v among %d events, want alone and at %v", events[0].Time, len(events), until)
	}
	r.now = r.d.Now()
	return events
}

// note checks one event and counts it.
func (r *rig) note(e *sched.Event, instant, until sched.Time) {
	r.Helper()
	switch {
	case e.Time != instant || e.Time > max(until, r.now):
		r.Fatalf("%v at %v in a batch of %v, wanted until %v", e.Kind, e.Time, instant, until)
	case e.Kind.Own():
		r.Fatalf("%v is not a driver's to report", e.Kind)
	}
	switch e.Kind {
	case sched.JobArrived:
		if err := e.Spec.Validate(); err != nil {
			r.Fatal(err)
		}
		r.arrived++
		r.v.Jobs = append(r.v.Jobs, sched.Job{Spec: e.Spec, State: sched.Waiting})
	case sched.AttemptStarted, sched.AttemptEnded, sched.StartFailed:
		r.report(e)
	}
}

// report checks that an attempt starts once, ends once, and in this order.
func (r *rig) report(e *sched.Event) {
	r.Helper()
	a := &r.attempts[e.Job]
	switch {
	case e.Attempt < 1 || e.Attempt > a.last:
		r.Fatalf("%v of attempt %d/%d, which no one ordered", e.Kind, e.Job, e.Attempt)
	case len(a.ended[e.Attempt]) > 0:
		r.Fatalf("%v of attempt %d/%d, which is over", e.Kind, e.Job, e.Attempt)
	case e.Kind != sched.AttemptEnded && a.started[e.Attempt] > 0:
		r.Fatalf("%v of attempt %d/%d, which runs", e.Kind, e.Job, e.Attempt)
	case e.Kind == sched.AttemptEnded && e.Outcome == sched.NoOutcome:
		r.Fatalf("attempt %d/%d ended without an outcome", e.Job, e.Attempt)
	}
	if e.Kind == sched.AttemptStarted {
		a.started[e.Attempt]++
		a.work = e.Work
		return
	}
	a.ended[e.Attempt] = append(a.ended[e.Attempt], *e)
}

// until asks for events until done holds, as long as a slow driver may take.
func (r *rig) until(done func() bool) {
	r.Helper()
	end := r.now.Add(10 * r.Long)
	for !done() {
		if r.now >= end {
			r.Fatalf("at %v it has not happened yet", r.now)
		}
		r.next(r.now.Add(r.Short))
	}
}

// pass lets a time pass and looks at what is reported meanwhile.
func (r *rig) pass(d time.Duration) {
	r.Helper()
	for end := r.now.Add(d); r.now < end; {
		r.next(end)
	}
}

func (r *rig) startedOf(j sched.JobID) func() bool {
	return func() bool { return r.attempts[j].started[r.attempts[j].last] > 0 }
}

func (r *rig) endedOf(j sched.JobID) func() bool {
	return func() bool { return len(r.attempts[j].ended[r.attempts[j].last]) > 0 }
}

func (r *rig) apply(actions ...sched.Action) {
	r.Helper()
	if err := r.d.Apply(r.ctx, sched.Plan{Actions: actions}); err != nil {
		r.Fatal(err)
	}
}

// cut ends the wait of Next over and over, as a host does where users want something: what happens meanwhile is
// reported all the same, once.
func (r *rig) cut() {
	r.start(1, 1)
	for end := r.now.Add(10 * r.Long); !r.endedOf(1)(); {
		ctx, cancel := context.WithTimeout(r.ctx, time.Millisecond)
		events, err := r.d.Next(ctx, r.now.Add(r.Short))
		cancel()
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			continue
		case err != nil:
			r.Fatal(err)
		case r.now >= end:
			r.Fatalf("at %v job 1 has not ended", r.now)
		}
		for i := range events {
			r.note(&events[i], events[0].Time, r.now.Add(r.Short))
		}
		r.now = r.d.Now()
	}
	if n := r.attempts[1].started[1]; n != 1 {
		r.Fatalf("the start was reported %d times, want once", n)
	}
}

// action returns the order to start or stop attempt n of job j. Job j runs on GPU j mod 2.
func (r *rig) action(kind sched.ActionKind, j sched.JobID, n int32) sched.Action {
	r.attempts[j].last = max(r.attempts[j].last, n)
	return sched.Action{Kind: kind, Job: j, Attempt: n, GPUs: []sched.GPUID{sched.GPUID(j % 2)}, Why: sched.Preempted}
}

func (r *rig) start(j sched.JobID, n int32) { r.Helper(); r.apply(r.action(sched.Start, j, n)) }
func (r *rig) stop(j sched.JobID)           { r.Helper(); r.apply(r.action(sched.Stop, j, 1)) }

func (r *rig) outcome(j sched.JobID, want sched.Outcome) {
	r.Helper()
	if ends := r.attempts[j].ended[r.attempts[j].last]; len(ends) != 1 || ends[0].Outcome != want {
		r.Fatalf("the attempt of job %d ended as %+v, want %v once", j, ends, want)
	}
}

func (r *rig) ticks() {
	for i := range 3 {
		at := r.now.Add(r.Short + time.Duration(i))
		if e := r.next(at); e[0].Kind != sched.Ticked || r.now < at {
			r.Fatalf("%v at %v, want a tick at %v", e[0].Kind, r.now, at)
		}
	}
}

func (r *rig) endsByItself() {
	r.start(1, 1)
	r.until(r.endedOf(1))
	r.outcome(1, sched.Finished)
	if r.attempts[1].started[1] != 1 {
		r.Fatal("it ended and was never reported as started")
	}
	r.pass(2 * r.Short)
}

func (r *rig) stopped() {
	r.start(0, 1)
	r.until(r.startedOf(0))
	r.stop(0)
	r.until(r.endedOf(0))
	r.outcome(0, sched.Preempted)
	r.pass(r.Long)
}

// stoppedEarly: whether the start is still reported or not, the attempt ends once.
func (r *rig) stoppedEarly() {
	r.start(0, 1)
	r.stop(0)
	r.until(r.endedOf(0))
	r.pass(r.Long)
}

// race stops the short job at moments around its end: it ends once, as finished or as preempted.
func (r *rig) race() {
	r.start(1, 1)
	r.until(r.startedOf(1))
	r.next(r.now.Add(r.Short))
	if !r.endedOf(1)() {
		r.stop(1)
		r.until(r.endedOf(1))
	} else {
		r.stop(1)
	}
	r.pass(r.Long)
	if o := r.attempts[1].ended[1][0].Outcome; o != sched.Finished && o != sched.Preempted {
		r.Fatalf("ended as %v", o)
	}
}

// twice says everything twice: in one plan, and in the next.
func (r *rig) twice() {
	start, stop := r.action(sched.Start, 0, 1), r.action(sched.Stop, 0, 1)
	r.apply(start, start)
	r.until(r.startedOf(0))
	r.apply(start)
	r.pass(r.Short)
	r.apply(stop, stop)
	r.apply(stop)
	r.until(r.endedOf(0))
	r.apply(stop, start)
	r.pass(r.Long)
	r.outcome(0, sched.Preempted)
}

// again ensures that a stopped job loses no work it reported as saved, and that its GPU is free after its end alone.
func (r *rig) again() {
	r.start(0, 1)
	r.until(r.startedOf(0))
	r.pass(r.Short)
	r.stop(0)
	r.until(r.endedOf(0))
	saved := r.attempts[0].ended[1][0].Work
	r.start(2, 1) // on the same GPU
	r.until(r.startedOf(2))
	r.stop(2)
	r.until(r.endedOf(2))
	r.start(0, 2)
	r.until(r.startedOf(0))
	if got := r.attempts[0].work; got != saved {
		r.Fatalf("goes on from work %v, stopped with %v", got, saved)
	}
}

// past says about attempts that are over, next to one that runs.
func (r *rig) past() {
	r.start(0, 1)
	r.until(r.startedOf(0))
	r.stop(0)
	r.until(r.endedOf(0))
	r.start(0, 2)
	r.until(r.startedOf(0))
	r.stop(0)
	r.start(0, 1)
	r.pass(r.Short)
	if r.endedOf(0)() {
		r.Fatal("the second attempt ended for an order about the first")
	}
}

func (r *rig) eof() {
	if r.Endless { // nothing to ask of it
		return
	}
	for j := range sched.JobID(3) {
		r.start(j, 1)
		r.until(r.endedOf(j))
	}
	for range 10 {
		if _, err := r.d.Next(r.ctx, sched.Never); err != nil {
			if !errors.Is(err, io.EOF) {
				r.Fatalf("%v, want io.EOF", err)
			}
			return
		}
	}
	r.Fatal("all jobs are done and io.EOF does not come")
}
