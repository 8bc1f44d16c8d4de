package host

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/trainyard/trainyard/internal/failpoint"
	"github.com/trainyard/trainyard/sched"
)

// Mailbox takes what users want: jobs submitted, commands, changes, drains. Each becomes events in front of the
// driver's next answer, in the order in which they came. Those that come together are one instant and one batch. Its
// methods may be called by anyone at any time.
type Mailbox struct {
	mu      sync.Mutex
	waiting []*request
	knock   chan struct{} // something waits
	visits  chan func(now sched.Time)
}

// request is what one user wants.
type request struct {
	events  followUp
	durable chan struct{} // closed once what came of it is durable
}

// followUp is a Request that sees what those before it in the same batch have made, which v does not show yet.
type followUp func(v *sched.View, earlier []sched.Event, next sched.JobID, now sched.Time) []sched.Event

// Request makes the events that a user wants of the instant now. The engine's goroutine calls it once as the batch is
// made; v shows what is durable by then, and next is the number of the next job to arrive. It must be short. No events:
// nothing comes of it.
type Request func(v *sched.View, next sched.JobID, now sched.Time) []sched.Event

// NewMailbox returns an empty one.
func NewMailbox() *Mailbox {
	return &Mailbox{knock: make(chan struct{}, 1), visits: make(chan func(sched.Time))}
}

// Post puts a request in. The channel is closed once what came of it is durable.
func (m *Mailbox) Post(events Request) (durable <-chan struct{}) {
	return m.follow(func(v *sched.View, _ []sched.Event, next sched.JobID, now sched.Time) []sched.Event {
		return events(v, next, now)
	})
}

// follow is Post for a followUp.
func (m *Mailbox) follow(events followUp) (durable <-chan struct{}) {
	r := &request{events, make(chan struct{})}
	m.mu.Lock()
	m.waiting = append(m.waiting, r)
	m.mu.Unlock()
	failpoint.Here("mailbox.posted")
	select {
	case m.knock <- struct{}{}:
	default:
	}
	return r.durable
}

// arrivals makes the events of jobs that arrive now, of which the first is to have the number first: each is paused
// from the start, or none is.
func arrivals(specs []*sched.JobSpec, first sched.JobID, now sched.Time, paused bool) (events []sched.Event) {
	for _, spec := range specs {
		spec.Submit = now
		events = append(events, sched.Event{Kind: sched.JobArrived, Spec: spec})
	}
	for i := range specs {
		if paused {
			events = append(events, commanded(first+sched.JobID(i), sched.PauseJob)...)
		}
	}
	return events
}

// Command passes on what a user wants done with a job that has arrived.
func (m *Mailbox) Command(job sched.JobID, c sched.Command) (durable <-chan struct{}) {
	return m.Post(func(*sched.View, sched.JobID, sched.Time) []sched.Event { return commanded(job, c) })
}

func commanded(job sched.JobID, c sched.Command) []sched.Event {
	return []sched.Event{{Kind: sched.JobCommanded, Job: job, Code: int32(c)}}
}

// Drain has nodes be given to no new job, or lifts that; attempts on them go on. Of several requests about a node in
// one batch the last counts, and what is so already makes no event.
func (m *Mailbox) Drain(nodes func(v *sched.View) []sched.NodeID, on bool) (durable <-chan struct{}) {
	state := sched.NodeUp
	if on {
		state = sched.NodeDraining
	}
	return m.Post(func(v *sched.View, _ sched.JobID, _ sched.Time) (events []sched.Event) {
		for _, n := range nodes(v) {
			events = append(events, sched.Event{Kind: sched.NodeChanged, Node: n, Code: int32(state)})
		}
		return events
	})
}

// ErrClosed says that the mailbox was closed, or its driver, before it did what it was asked.
var ErrClosed = errors.New("closed")

// Do has f called by the engine's goroutine while that waits for the driver, and returns when f has returned: f may
// read the View and what the Decider remembers, all of which is durable then; now is the present. No event comes of it,
// and no decision. Nothing is decided meanwhile: f must be short, and must not call Do. The error is that of ctx, or
// ErrClosed once over is closed, and f was not called then.
func (m *Mailbox) Do(ctx context.Context, over <-chan struct{}, f func(now sched.Time)) error {
	done := make(chan struct{})
	select {
	case m.visits <- func(now sched.Time) { defer close(done); f(now) }:
		<-done
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-over:
		return ErrClosed
	}
}

// take empties the mailbox.
func (m *Mailbox) take() []*request {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.waiting
	m.waiting = nil
	select {
	case <-m.knock:
	default:
	}
	return list
}

// putBack has requests come again, before those that came since.
func (m *Mailbox) putBack(list []*request) {
	if len(list) == 0 {
		return
	}
	m.mu.Lock()
	m.waiting = slices.Concat(list, m.waiting)
	m.mu.Unlock()
	select {
	case m.knock <- struct{}{}:
	default:
	}
}
