package hosttest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Driver has attempts run on pretended nodes until they are asked to end. It knows no job by itself.
type Driver struct {
	Nodes  []sched.NodeSpec
	Origin time.Time

	mu    sync.Mutex
	later []sched.Event
	knock chan struct{}
	view  *sched.View
	now   sched.Time
	open  map[sched.JobID]int32 // attempts that run
	cut   int                   // waits that were cut short
	count int                   // attempts that were started
}

var _ sched.Driver = (*Driver)(nil)

// Nodes returns alike nodes of so many GPUs.
func Nodes(n, gpus int) []sched.NodeSpec {
	list := make([]sched.NodeSpec, n)
	for i := range list {
		list[i] = sched.NodeSpec{Name: fmt.Sprintf("node-%d", i), GPUs: gpus, Pool: sched.None}
	}
	return list
}

// NewDriver returns a driver of nodes, which are there from the start.
func NewDriver(nodes []sched.NodeSpec, origin time.Time) *Driver {
	return &Driver{Nodes: nodes, Origin: origin, knock: make(chan struct{}, 1), open: make(map[sched.JobID]int32)}
}

// Sync reports nodes that v does not show, and takes over the attempts that it does.
func (d *Driver) Sync(_ context.Context, v *sched.View) (events []sched.Event, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.view, d.now = v, v.Now
	d.now = max(d.now, sched.Time(time.Since(d.Origin)))
	if len(v.Nodes) == 0 {
		for i := range d.Nodes {
			spec := d.Nodes[i]
			events = append(events, sched.Event{Time: d.now, Kind: sched.NodeJoined, NodeSpec: &spec})
		}
	}
	for id := range v.Jobs {
		if j := &v.Jobs[id]; j.HoldsDevices() && j.Up {
			d.open[sched.JobID(id)] = j.Attempts
		}
	}
	return events, nil
}

// Next returns what is to be reported, once there is something.
func (d *Driver) Next(ctx context.Context, until sched.Time) ([]sched.Event, error) {
	d.mu.Lock()
	d.now = max(d.now, d.view.Now)
	d.mu.Unlock()
	for {
		if err := ctx.Err(); err != nil {
			d.mu.Lock()
			d.cut++
			d.mu.Unlock()
			return nil, err
		}
		if events := d.take(until); len(events) > 0 {
			return events, nil
		}
		wait := time.Hour
		if until != sched.Never {
			wait = until.Sub(d.clock())
		}
		select {
		case <-ctx.Done():
		case <-d.knock:
		case <-time.After(wait):
		}
	}
}

func (d *Driver) clock() sched.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return max(d.now, sched.Time(time.Since(d.Origin)))
}

func (d *Driver) take(until sched.Time) (events []sched.Event) {
	now := d.clock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if until <= now && until > d.now || len(d.later) == 0 {
		if until > now {
			return nil
		}
		d.now = max(until, d.now)
		return []sched.Event{{Time: d.now, Kind: sched.Ticked}}
	}
	d.now = now
	started := make(map[sched.JobID]bool)
	var rest []sched.Event
	for _, e := range d.later {
		if started[e.Job] {
			rest = append(rest, e)
			continue
		}
		started[e.Job] = e.Kind == sched.AttemptStarted
		if e.Time = now; started[e.Job] {
			e.WorkFrom = now
		}
		events = append(events, e)
	}
	d.later = rest
	return events
}

// Apply has attempts run and end.
func (d *Driver) Apply(_ context.Context, p sched.Plan) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range p.Actions {
		a := &p.Actions[i]
		switch {
		case a.Kind == sched.Start && d.open[a.Job] != a.Attempt:
			d.open[a.Job] = a.Attempt
			d.count++
			d.report(sched.Event{Kind: sched.AttemptStarted, Job: a.Job, Attempt: a.Attempt, Rate: 1})
		case a.Kind == sched.Stop && d.open[a.Job] == a.Attempt:
			delete(d.open, a.Job)
			d.report(sched.Event{Kind: sched.AttemptEnded, Job: a.Job, Attempt: a.Attempt, Outcome: a.Why})
		}
	}
	return nil
}

// Finish has the attempt of a job that runs end by itself.
func (d *Driver) Finish(job sched.JobID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n, runs := d.open[job]; runs {
		delete(d.open, job)
		d.report(sched.Event{Kind: sched.AttemptEnded, Job: job, Attempt: n, Outcome: sched.Finished})
	}
}

func (d *Driver) report(e sched.Event) {
	d.later = append(d.later, e)
	select {
	case d.knock <- struct{}{}:
	default:
	}
}

// Now returns the instant of the last answer.
func (d *Driver) Now() sched.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

// Starts returns how many attempts were started.
func (d *Driver) Starts() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.count
}

// Cut returns how many waits were cut short.
func (d *Driver) Cut() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cut
}

// Close does nothing.
func (d *Driver) Close() {}
