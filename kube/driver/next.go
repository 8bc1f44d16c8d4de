package driver

import (
	"context"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// gather is how long an answer waits for company, so that what happens together is decided, and made durable, together.
const gather = 20 * time.Millisecond

// Next waits for something to happen, and a moment longer for what comes with it.
func (d *Driver) Next(ctx context.Context, until sched.Time) ([]sched.Event, error) {
	d.catchUp()
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := d.writers.Err(); err != nil {
			return nil, err
		}
		now := d.clock.read()
		if until <= d.clock.now || now < until { // else the tick comes before what happened after it
			if events := d.collect(ctx, now); len(events) > 0 {
				return events, nil
			}
		}
		switch {
		case until <= now:
			d.clock.now = max(until, d.clock.now)
			return []sched.Event{{Time: d.clock.now, Kind: sched.Ticked}}, nil
		case d.observer.Waits(): // and nothing was reported
			continue
		}
		due, late := d.attempts.UntilDue(d.view, gather)
		d.o.Queue.Push(late...)
		d.wait(ctx, min(time.Duration(until-now), due))
	}
}

// wait returns after a time, or a moment after something happened.
func (d *Driver) wait(ctx context.Context, atMost time.Duration) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	for ready := d.o.Queue.Ready(); ; {
		select {
		case <-ctx.Done():
			return
		case <-d.writers.Lost():
			return
		case <-timer.C:
			return
		case <-ready:
			ready = nil
			timer.Reset(min(gather, atMost))
		}
	}
}

// collect looks at everything that changed and returns the events of the instant now.
func (d *Driver) collect(ctx context.Context, now sched.Time) []sched.Event {
	keys := d.observer.Take()
	if len(keys) == 0 {
		return nil
	}
	was := d.clock.now
	d.clock.now = now
	events := d.look(ctx, keys)
	if len(events) == 0 {
		d.clock.now = was
	}
	return events
}
