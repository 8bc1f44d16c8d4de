package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// Options are what a run may be given in addition to its driver and its Decider.
type Options struct {
	Sinks []eventlog.Sink
	// Clock, in nanoseconds, and Decided measure how long each Decide that changes something takes; both nil or both
	// set.
	Clock   func() int64
	Decided func(nanoseconds int64)
	// Dropped hears of events of the driver that say nothing new, or speak of what is not there, and are not folded;
	// nil = no one is.
	Dropped func(e *sched.Event, why string)
}

// Run is the loop: it drives s with events of d and decisions of dec until nothing can happen any more (nil), the
// context ends, the driver fails or the log cannot be kept. s and dec may be new, or those of an earlier run, see
// Recover.
func Run(ctx context.Context, s *State, d sched.Driver, dec sched.Decider, o Options) error {
	r := &run{s: s, dec: dec, o: o, batchers: batchers(o.Sinks)}
	events, err := d.Sync(ctx, &s.view)
	if err != nil {
		return fmt.Errorf("engine: sync: %w", err)
	}
	for first := true; ; first = false {
		before := s.view.Version
		// 1. Fold all events of the instant: ends, then nodes, then arrivals; then release those whose time has come,
		//    jobs and GPUs.
		r.beginBatch()
		r.watches = r.watches[:0]
		r.instant.begin()
		r.foldAll(events)
		if first {
			r.open = unanswered(&s.view)
		}
		r.releaseDue(r.s.view.Now) // not d.Now(), which the log does not say
		r.endRests(r.s.view.Now)
		// 2. Ask the system once for this instant, unless it has been asked and nothing has happened since.
		if !first || s.view.Version != before || !r.goesOnWaiting() {
			r.decide()
			// 3. Check what it wants and exchange targets; each accepted or refused change is an event of the log. If
			// it changed what may be used, ask once more: nothing else may happen for long.
			if r.exchange() {
				r.decide()
				r.exchange()
			}
		}
		// 4. Compare targets with what is observed and log what is to be done now.
		r.s.Reconcile(&r.plan)
		r.watch()
		r.order()
		if invariants {
			r.verify()
		}
		// 5. Make the log of this instant durable, then have it done.
		if err = r.endBatch(); err != nil {
			return fmt.Errorf("engine: log: %w", err)
		}
		if len(r.plan.Actions) > 0 {
			if err = d.Apply(ctx, r.plan); err != nil {
				return fmt.Errorf("engine: apply: %w", err)
			}
		}
		if stuck := r.instant.end(&r.s.view); stuck != nil {
			return stuck
		}
		// 6. Wait for the next instant, at most until someone asked to be woken.
		events, err = d.Next(ctx, r.wake())
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("engine: next: %w", err)
		}
	}
}

// run is one Run's working memory.
type run struct {
	s         *State
	dec       sched.Decider
	o         Options
	batchers  []eventlog.Batcher // of o.Sinks
	desired   sched.Desired
	watches   []sched.Watch // requested in this batch
	plan      sched.Plan
	open      []sched.Action // ordered by an earlier run and not answered
	verdicts  []verdict      // by index in desired.Jobs
	stamps    []uint32       // by job: the exchange that last named it
	exchanges uint32
	claims    claims // of the exchange under way
	own       sched.Event
	instant   instant
}

// emit folds one event, notifies the sinks, then the system.
func (r *run) emit(e *sched.Event) {
	r.s.Apply(e)
	for _, k := range r.o.Sinks {
		k.Log(&r.s.view, e)
	}
	r.dec.Observe(&r.s.view, e)
}

// batchers returns those of the sinks that hear of batches.
func batchers(sinks []eventlog.Sink) (list []eventlog.Batcher) {
	for _, k := range sinks {
		if b, ok := k.(eventlog.Batcher); ok {
			list = append(list, b)
		}
	}
	return list
}

func (r *run) beginBatch() {
	for _, b := range r.batchers {
		b.BeginBatch()
	}
}

func (r *run) endBatch() error {
	for _, b := range r.batchers {
		if err := b.EndBatch(); err != nil {
			return err
		}
	}
	return nil
}

// foldAll folds an answer of the driver: those of an instant in the order of their kinds. Only Sync reports more than
// one instant.
func (r *run) foldAll(events []sched.Event) {
	sortEvents(events)
	for i := range events {
		e := &events[i]
		if why := r.s.stale(e); why != "" {
			if r.o.Dropped != nil {
				r.o.Dropped(e, why)
			}
			continue
		}
		r.emit(e)
		switch e.Kind {
		case sched.EpochEnded:
			r.exchangeAtEpochEnd(e.Job)
		case sched.StartFailed:
			if r.s.view.Jobs[e.Job].StartFailures <= mostBlamed {
				r.restSuspects(e.GPUs)
			}
			r.quarantineSuspects(e.GPUs)
		}
	}
}

// sortEvents sorts by time and turn what nearly always is in that order.
func sortEvents(events []sched.Event) {
	inOrder := func(a, b *sched.Event) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Kind.Form().Turn, b.Kind.Form().Turn))
	}
	for i := 1; i < len(events); i++ {
		if inOrder(&events[i-1], &events[i]) > 0 {
			slices.SortStableFunc(events, func(a, b sched.Event) int { return inOrder(&a, &b) })
			return
		}
	}
}

// releaseDue makes held jobs eligible whose dependencies are met and whose time has come, and rejects those whose
// dependencies can no longer be met.
func (r *run) releaseDue(now sched.Time) {
	for len(r.s.alarms) > 0 && r.s.alarms[0].At <= now {
		id := r.s.alarms.Pop().Job
		j := &r.s.view.Jobs[id]
		if j.State != sched.Held {
			continue
		}
		if other := j.Spec.Unmeetable(&r.s.view); other != sched.None {
			r.emit(&sched.Event{Time: now, Kind: sched.Rejected, Job: id,
				Why: sched.Reason{Code: sched.WhyAfter, Job: other}})
			continue
		}
		if j.BlockedBy() == 0 && !j.Paused && j.NotBefore <= now {
			r.emit(&sched.Event{Time: now, Kind: sched.Released, Job: id})
		}
	}
}

func (r *run) decide() {
	r.desired.Reset()
	if r.o.Clock == nil {
		r.dec.Decide(&r.s.view, &r.desired)
		return
	}
	t0 := r.o.Clock()
	r.dec.Decide(&r.s.view, &r.desired)
	if t := r.o.Clock() - t0; !r.desired.Empty() {
		r.o.Decided(t)
	}
}

// goesOnWaiting reports whether the system has been asked about this very state, and knows until when it waits.
func (r *run) goesOnWaiting() bool {
	w, ok := r.dec.(sched.Waker)
	if !ok {
		return false
	}
	until, known := w.Waits()
	r.desired.Wake = until
	return known
}

// wake returns the earliest time anybody asked for, or at which GPUs have rested.
func (r *run) wake() sched.Time {
	at := r.s.rests.next(&r.s.view)
	if r.desired.Wake != 0 {
		at = min(at, r.desired.Wake)
	}
	if len(r.s.alarms) > 0 {
		at = min(at, r.s.alarms[0].At)
	}
	return at
}

// order logs the actions of the plan before the driver hears of them.
func (r *run) order() {
	for i := range r.plan.Actions {
		a := &r.plan.Actions[i]
		r.own = sched.Event{Time: r.s.view.Now, Kind: sched.Ordered, Job: a.Job, Attempt: a.Attempt,
			Code: int32(a.Kind),
			Node: a.Node, Pool: a.Pool, Outcome: a.Why, Value: orderValue(a)}
		r.emit(&r.own)
		if a.Kind == sched.Start {
			a.GPUs = r.s.view.Jobs[a.Job].GPUs
		}
	}
	if len(r.open) > 0 { // logged when they were first given; an order of now replaces an older one, so it comes after
		r.plan.Actions = slices.Concat(r.open, r.plan.Actions)
		slices.SortStableFunc(r.plan.Actions, func(a, b sched.Action) int { return cmp.Compare(a.Kind, b.Kind) })
		r.open = nil
	}
}

// orderValue is the one number of an action that Ordered carries in Value: on or off, the state, the count or the cap
// wanted.
func orderValue(a *sched.Action) float64 {
	switch {
	case a.Kind == sched.WatchEpochs && a.On:
		return 1
	case a.Kind == sched.SetNode:
		return float64(a.State)
	case a.Kind == sched.Rent:
		return float64(a.Count)
	case a.Kind == sched.Adjust:
		return float64(a.Cap)
	}
	return 0
}

// watch adds to the plan the epochs that the system asked for, or no longer needs. Of several requests about a job the
// last counts.
func (r *run) watch() {
	a := &r.plan.Actions
	if len(r.watches) == 0 {
		return
	}
	slices.SortStableFunc(r.watches, func(a, b sched.Watch) int { return cmp.Compare(a.Job, b.Job) })
	for i, w := range r.watches {
		if w.Job < 0 || int(w.Job) >= len(r.s.view.Jobs) || i+1 < len(r.watches) && r.watches[i+1].Job == w.Job {
			continue
		}
		if j := r.s.view.Job(w.Job); j.Watched != w.On && j.State != sched.Done && (w.On || j.Later() == nil) {
			*a = append(*a, sched.Action{Kind: sched.WatchEpochs, Job: w.Job, Attempt: j.Attempts, On: w.On})
		}
	}
}
