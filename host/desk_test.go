package host_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/drivertest"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/host/hosttest"
	"github.com/trainyard/trainyard/sched"
)

// counter is a desk whose engine is a test.
type counter struct {
	*testing.T
	*host.Desk
	box    *host.Mailbox
	driver *hosttest.Driver
	v      sched.View
}

func newCounter(t *testing.T) *counter {
	t.Helper()
	c := &counter{T: t, box: host.NewMailbox(),
		driver: hosttest.NewDriver(hosttest.Nodes(1, 4), time.Now().Add(-time.Minute))}
	c.Desk = host.NewDesk(c.box, c.driver, c.driver.Origin)
	events, err := c.Sync(t.Context(), &c.v)
	if err != nil {
		t.Fatal(err)
	}
	for i := range events {
		c.v.Now = events[i].Time
		drivertest.Join(&c.v, &events[i])
	}
	return c
}

// answer returns the next answer, which must be one instant not before the last.
func (c *counter) answer(until sched.Time) (kinds []sched.EventKind) {
	c.Helper()
	events, err := c.Next(c.Context(), until)
	if err != nil {
		c.Fatal(err)
	}
	for i := range events {
		if e := &events[i]; e.Time < c.v.Now || e.Time != events[0].Time {
			c.Fatalf("%v at %v, of an answer at %v after %v", e.Kind, e.Time, events[0].Time, c.v.Now)
		}
		kinds = append(kinds, events[i].Kind)
	}
	c.v.Now = events[0].Time
	return kinds
}

func one(e sched.Event) host.Request {
	return func(*sched.View, sched.JobID, sched.Time) []sched.Event { return []sched.Event{e} }
}

// Ensure that requests which never end do not keep what the driver reports from being heard.
func TestRequestsWithoutEnd(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	var again host.Request
	again = func(*sched.View, sched.JobID, sched.Time) []sched.Event {
		c.box.Post(again)
		return []sched.Event{{Kind: sched.JobCommanded}}
	}
	c.box.Post(again)
	if err := c.Apply(t.Context(), sched.Plan{Actions: []sched.Action{{Kind: sched.Start, Attempt: 1}}}); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		for _, k := range c.answer(sched.Never) {
			if k == sched.AttemptStarted {
				return
			}
		}
	}
	t.Error("in 100 answers the driver is not heard")
}

// Ensure that a request is confirmed once the engine asks for the next answer, not before, and at once where nothing
// comes of it.
func TestConfirmedByTheNextAnswer(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	closed := func(durable <-chan struct{}) bool {
		select {
		case <-durable:
			return true
		default:
			return false
		}
	}
	first := c.box.Post(one(sched.Event{Kind: sched.JobCommanded}))
	if got := c.answer(sched.Never); len(got) != 1 || closed(first) {
		t.Errorf("answer %v, confirmed %v; want one event, not durable yet", got, closed(first))
	}
	// it is up, and 7 is none
	nothing := c.box.Drain(func(*sched.View) []sched.NodeID { return []sched.NodeID{0, 7} }, false)
	if got := c.answer(c.v.Now.Add(50 * time.Millisecond)); len(got) != 1 || got[0] != sched.Ticked || !closed(first) ||
		!closed(nothing) {
		t.Errorf("answer %v, confirmed %v and %v; want a tick, and both", got, closed(first), closed(nothing))
	}
}

// Ensure that of requests about a node the last counts, that they stand before what the driver reports of the same
// instant, in their order, and that a wake-up comes at its very time, before what was asked for after it.
func TestOrderOfAnAnswer(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	node := func(*sched.View) []sched.NodeID { return []sched.NodeID{0} }
	c.box.Drain(node, true)
	c.box.Post(one(sched.Event{Kind: sched.JobCommanded}))
	c.box.Drain(node, false)
	c.box.Drain(node, true)
	if got := c.answer(sched.Never); len(got) != 2 || got[0] != sched.JobCommanded || got[1] != sched.NodeChanged {
		t.Errorf("answer %v, want the command and the last of three drains", got)
	}
	until := c.v.Now.Add(time.Millisecond)
	time.Sleep(5 * time.Millisecond)
	c.box.Post(one(sched.Event{Kind: sched.JobCommanded}))
	if got := c.answer(until); len(got) != 1 || got[0] != sched.Ticked || c.v.Now != until {
		t.Errorf("answer %v at %v, want a tick at %v", got, c.v.Now, until)
	}
	if got := c.answer(sched.Never); len(got) != 1 || got[0] != sched.JobCommanded {
		t.Errorf("answer %v, want the command", got)
	}
}

// Ensure that the end of the run ends a wait, whatever waits in the mailbox, and that a look which comes too late is
// not taken.
func TestEndOfARun(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	durable := c.box.Post(one(sched.Event{Kind: sched.JobCommanded}))
	if events, err := c.Next(ctx, sched.Never); !errors.Is(err, context.Canceled) || len(events) > 0 {
		t.Errorf("%v, %v, want that it is cancelled", events, err)
	}
	select {
	case <-durable:
		t.Error("confirmed by the end")
	default:
	}
	over := make(chan struct{})
	close(over)
	if err := c.box.Do(t.Context(), over, func(sched.Time) { t.Error("called") }); !errors.Is(err, host.ErrClosed) {
		t.Errorf("%v, want ErrClosed", err)
	}
}
