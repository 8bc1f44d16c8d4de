package host

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/internal/failpoint"
	"github.com/trainyard/trainyard/sched"
)

// Desk is the driver that the engine sees: that of a world, with the mailbox in front of it. Its methods belong to the
// engine's goroutine.
//
// While it waits the world's driver is inside Next, in a goroutine of its own. For a visit, and for requests once they
// had a moment to gather, the driver's wait is cut short, by which it loses nothing: nothing is at work while someone
// looks.
type Desk struct {
	sched.Driver

	box    *Mailbox
	origin time.Time         // the instant that is time 0
	due    func() sched.Time // when a batch is wanted though nothing happens
	first  func()            // called after the first decision; nil: nothing is

	view     *sched.View
	base     time.Time // with a monotonic reading: the clock was at at
	at       sched.Time
	answered []*request // part of the last answer
	version  uint64     // of the View that those were answered from
	alone    int        // answers in a row that the driver had no part in
}

var _ sched.Driver = (*Desk)(nil)

const (
	// gather is how long a request waits for company, so that what happens together is decided, and made durable,
	// together.
	gather = 5 * time.Millisecond
	// atOnce is how many visits are received in a row before the engine goes on.
	atOnce = 16
	// mostAlone is how many answers in a row may be those of the mailbox alone: else a flood of requests would keep the
	// driver from reporting.
	mostAlone = 16
)

// NewDesk puts a mailbox in front of a driver whose time 0 was at origin.
func NewDesk(box *Mailbox, d sched.Driver, origin time.Time) *Desk {
	return &Desk{Driver: d, box: box, origin: origin, due: func() sched.Time { return sched.Never }}
}

// Sync is that of the driver.
func (d *Desk) Sync(ctx context.Context, v *sched.View) ([]sched.Event, error) {
	d.view, d.base = v, time.Now()
	d.at = max(sched.Time(d.base.Sub(d.origin)), v.Now)
	events, err := d.Driver.Sync(ctx, v)
	return bounded(events), err
}

// bounded cuts what events say: it may come from anyone, and must fit the log.
func bounded(events []sched.Event) []sched.Event {
	for i := range events {
		events[i].Text = eventlog.CutText(events[i].Text)
	}
	return events
}

// clock returns the present. It never falls, whatever is done to the clock of the machine.
func (d *Desk) clock() sched.Time { return max(d.at.Add(time.Since(d.base)), d.view.Now) }

// Next waits for a request or for the driver's answer, whichever comes first; together the requests stand before the
// answer.
func (d *Desk) Next(ctx context.Context, until sched.Time) ([]sched.Event, error) {
	if d.first != nil {
		d.first()
		d.first = nil
	}
	d.confirm()
	d.receive()
	until = min(until, d.due())
	for {
		if events := d.mail(ctx, until); len(events) > 0 {
			d.alone++
			return events, nil
		}
		d.alone = 0
		events, err := d.ask(ctx, until)
		switch {
		case errors.Is(err, errCut):
			continue
		case errors.Is(err, io.EOF) && d.box.any() && ctx.Err() == nil:
			continue // of what was asked for something may come
		case err != nil || len(events) == 0 || events[0].Kind == sched.Ticked:
			return events, err
		case !d.box.any():
			return events, nil
		}
		return append(d.collect(events[0].Time), events...), nil
	}
}

// mail returns the events of the mailbox, if these may be an answer alone.
func (d *Desk) mail(ctx context.Context, until sched.Time) []sched.Event {
	now := d.clock()
	inTime := until <= d.view.Now || now < until // else the tick comes before what was asked for after it
	if !inTime || d.alone >= mostAlone || ctx.Err() != nil {
		return nil
	}
	return d.collect(now)
}

// any reports whether something waits.
func (m *Mailbox) any() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.waiting) > 0
}

// confirm closes the channels of requests that were part of the last answer: it is durable by now, as the engine asks
// for the next.
func (d *Desk) confirm() {
	if len(d.answered) > 0 {
		failpoint.Here("mailbox.durable")
	}
	for _, r := range d.answered {
		close(r.durable)
	}
	d.answered = d.answered[:0]
}

// receive calls the visits that wait, so that they are called however seldom the engine has to wait.
func (d *Desk) receive() {
	for range atOnce {
		select {
		case visit := <-d.box.visits:
			visit(d.clock())
		default:
			return
		}
	}
}

// collect empties the mailbox and returns the events of the instant now.
func (d *Desk) collect(now sched.Time) (events []sched.Event) {
	requests := d.box.take()
	next := sched.JobID(len(d.view.Jobs))
	for _, r := range requests {
		for _, e := range r.events(d.view, events, next, now) {
			switch e.Kind {
			case sched.JobArrived:
				next++
			case sched.NodeChanged:
				older := func(x sched.Event) bool { return x.Kind == e.Kind && x.Node == e.Node }
				if events = slices.DeleteFunc(events, older); d.isSo(&e) {
					continue
				}
			}
			e.Time = now
			events = append(events, e)
		}
	}
	events = bounded(events)
	if len(requests) > 0 {
		failpoint.Here("mailbox.taken")
	}
	d.answered, d.version = append(d.answered, requests...), d.view.Version
	if len(events) == 0 { // there is nothing to wait for
		d.confirm()
	}
	return events
}

// isSo reports whether the node of e is in its state already, or is none that is there.
func (d *Desk) isSo(e *sched.Event) bool {
	if e.Node < 0 || int(e.Node) >= len(d.view.Nodes) {
		return true
	}
	return d.view.Nodes[e.Node].State == sched.NodeState(e.Code)
}

// errCut says that the driver's wait was cut short for a request.
var errCut = errors.New("cut short")

// answer is what the driver's Next returned.
type answer struct {
	events []sched.Event
	err    error
}

// ask waits for the driver's answer, or until a request has waited for company.
func (d *Desk) ask(ctx context.Context, until sched.Time) ([]sched.Event, error) {
	inner, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	answers := make(chan answer, 1)
	go func() {
		events, err := d.Driver.Next(inner, until)
		answers <- answer{bounded(events), err}
	}()
	var company <-chan time.Time
	knock := d.box.knock
	for {
		select {
		case a := <-answers:
			return a.unless(inner, ctx)
		case visit := <-d.box.visits:
			cut(errCut)
			a := <-answers
			visit(d.clock())
			return a.unless(inner, ctx)
		case <-knock:
			company, knock = time.After(gather), nil
		case <-company:
			cut(errCut)
		}
	}
}

// unless returns the answer, or errCut where it says only that the inner of two contexts was cut.
func (a *answer) unless(inner, outer context.Context) ([]sched.Event, error) {
	if outer.Err() == nil && errors.Is(context.Cause(inner), errCut) && errors.Is(a.err, context.Canceled) {
		return nil, errCut
	}
	return a.events, a.err
}

// unconfirmed returns the requests of an answer of which it is not known whether it became durable.
func (d *Desk) unconfirmed() []*request {
	list := d.answered
	d.answered = nil
	return list
}
