package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/internal/inputfile"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// Driver simulates a cluster under a trace. Its jobs are numbered by arrival, as the engine numbers them.
type Driver struct {
	jobs    []trace.Job
	cluster *cluster.Cluster
	view    *sched.View // of the engine: who has which number
	runtime Runtime
	now     sched.Time
	broken  error // the truth makes no sense

	// What is to come.
	arrived int           // jobs of the trace so far
	inject  []sched.Event // from outside
	queue   agenda
	fails   failures
	disturb disturbances
	soon    []sched.Event // of this very instant, caused by the last plan

	// How things are.
	attempts attempts
	machines machines
	tenants  tenants // kept only where jobs interfere

	out       []sched.Event
	placement []int         // scratch
	struck    []sched.JobID // scratch
}

// Options are what a simulation may be given in addition to trace and cluster.
type Options struct {
	Runtime Runtime
	// Inject are events from outside (commands, prices, node changes) in time order.
	Inject []sched.Event
	// Jobs limits the trace to its first jobs; 0 = all.
	Jobs int
}

// New returns a simulation of t on c. The trace is shared and not changed.
func New(t *trace.Trace, c *cluster.Cluster, o Options) (*Driver, error) {
	if err := o.Runtime.validate(); err != nil {
		return nil, err
	}
	jobs := t.Jobs
	if o.Jobs > 0 && o.Jobs < len(jobs) {
		jobs = jobs[:o.Jobs]
	}
	for i := range o.Inject {
		e := &o.Inject[i]
		if (e.Kind == sched.JobCommanded || e.Kind == sched.JobChanged) &&
			(e.Job < 0 || int(e.Job) >= len(jobs) || e.Time < jobs[e.Job].Spec.Submit) {
			return nil, fmt.Errorf("sim: injected event %d: job %d at %v, want a job that has arrived", i, e.Job,
				e.Time)
		}
	}
	d := &Driver{jobs: jobs, cluster: c, runtime: o.Runtime, inject: o.Inject,
		fails:    failures{outages: cluster.NewOutages(c.Failures, len(c.Nodes))},
		disturb:  disturbances{ahead: o.Runtime.Changes},
		attempts: attempts{state: make([]jobState, len(jobs))},
		machines: machines{nodes: make([]nodeState, len(c.Nodes))}}
	for _, n := range c.Nodes {
		d.machines.widest = max(d.machines.widest, n.GPUs)
	}
	d.fails.next()
	return d, nil
}

var _ sched.Driver = (*Driver)(nil)

// Now returns the simulated time.
func (d *Driver) Now() sched.Time { return d.now }

// Sync reports all nodes of the cluster as up at time 0; nodes of pools are rented later. If v shows that a run is
// under way, Sync takes it over instead, and the simulation goes on from that instant: the first jobs of the trace must
// be those of v, with durations that count from the start. A boot under way starts again.
func (d *Driver) Sync(_ context.Context, v *sched.View) ([]sched.Event, error) {
	d.view = v
	if v.Version > 0 {
		return d.adopt()
	}
	events := make([]sched.Event, len(d.cluster.Nodes))
	for i := range events {
		events[i] = sched.Event{Kind: sched.NodeJoined, NodeSpec: &d.cluster.Nodes[i]}
	}
	return events, nil
}

// Next advances the clock to the next instant at which something happens.
func (d *Driver) Next(ctx context.Context, until sched.Time) ([]sched.Event, error) {
	if len(d.soon) > 0 && d.broken == nil {
		d.out, d.soon = d.soon, d.out[:0]
		return d.out, nil
	}
	if err := errors.Join(ctx.Err(), d.broken); err != nil {
		return nil, err
	}
	for {
		at := d.nextTime(until)
		if len(d.queue.heap) > 0 && d.queue.heap[0].at > horizon {
			return nil, inputfile.WrongFile(fmt.Errorf("sim: job %d would end after %v, want %w",
				d.queue.heap[0].job, horizon, ErrTooLong))
		}
		if d.machines.down == 0 { // else what is away may come back
			if err := d.attempts.circles(d.arrived); err != nil {
				return nil, err
			}
		}
		if at == sched.Never && until == sched.Never {
			return nil, io.EOF
		}
		if until < at {
			d.now = max(until, d.now)
			return append(d.out[:0], sched.Event{Time: d.now, Kind: sched.Ticked}), nil
		}
		d.now = at
		if d.collect(); len(d.out) > 0 {
			return d.out, nil
		}
	}
}

// ErrTooLong is of a simulation that would go on for longer than simulated time does.
var ErrTooLong = errors.New("a trace of less than a century")

// horizon is how far simulated time goes: about 146 years, so that sums of times stay inside 64 bits.
const horizon = sched.Never / 2

// nextTime returns the time of the next arrival, end, delayed event or outage. Outages alone keep nothing going, but
// happen while the engine waits until a time.
func (d *Driver) nextTime(until sched.Time) sched.Time {
	at := d.queue.next()
	if d.arrived < len(d.jobs) {
		at = min(at, d.jobs[d.arrived].Spec.Submit)
	}
	if len(d.inject) > 0 {
		at = min(at, d.inject[0].Time)
	}
	if len(d.attempts.live) > 0 {
		at = min(at, max(d.disturb.next(), d.now))
	}
	if at != sched.Never || until != sched.Never || d.mayHelp() {
		at = min(at, d.fails.at)
	}
	return at
}

// patience is how many nodes may fail since the last start, per node of the cluster, before a simulation in which
// nothing else goes on is given up.
const patience = 1000

// mayHelp reports whether the return of a node may yet let a waiting job start: some node is away. Where many fail some
// is always away, and a job that cannot start at all would keep the simulation going for ever: hence the patience.
func (d *Driver) mayHelp() bool {
	return d.machines.down > 0 && d.attempts.over < len(d.jobs) && d.machines.failed <= patience*len(d.machines.nodes)
}

// collect gathers the events of d.now into d.out. What they cause at this very instant, such as the end of a job of no
// duration that starts, is left for the next call.
func (d *Driver) collect() {
	d.out, d.machines.joining = d.out[:0], d.machines.joining[:0]
	for last := d.queue.pushed; d.queue.next() == d.now && d.queue.heap[0].order <= last; {
		d.due(d.queue.heap.pop())
	}
	for d.disturb.next() <= d.now {
		d.disrupt()
	}
	for d.fails.at == d.now {
		d.fail()
	}
	for len(d.inject) > 0 && d.inject[0].Time <= d.now {
		e := d.inject[0]
		e.Time = d.now
		d.out = append(d.out, e)
		d.inject = d.inject[1:]
	}
	for d.arrived < len(d.jobs) && d.jobs[d.arrived].Spec.Submit == d.now {
		d.out = append(d.out, sched.Event{Time: d.now, Kind: sched.JobArrived, Spec: &d.jobs[d.arrived].Spec})
		d.arrived++
		d.attempts.vain = 0
	}
}

// due turns a delayed occurrence into its event, unless the boot or the attempt it belongs to is over.
func (d *Driver) due(t timed) {
	switch t.kind {
	case nodeReady:
		d.wake(sched.NodeID(t.job), t.attempt)
	case rented:
		d.join(sched.PoolID(t.job), t.attempt)
	default:
		if j := &d.attempts.state[t.job]; t.attempt == j.attempt {
			d.dueIn(j, t)
		}
	}
}

// dueIn is due for what belongs to the present attempt of the job with state j.
func (d *Driver) dueIn(j *jobState, t timed) {
	switch {
	case t.kind == up && j.phase == starting:
		d.out = d.begin(t.job, d.out)
	case t.kind == gone && j.phase == stopping:
		d.out = d.end(t.job, j.stopping, j.done, d.out)
	case j.phase != running:
	case t.kind == workDone && t.number == j.pace:
		d.out = d.end(t.job, sched.Finished, d.jobs[t.job].Duration, d.out)
	case t.kind == paceEnd && t.number == j.pace:
		d.out = d.repace(t.job, d.out)
	case t.kind == report:
		d.out = d.report(t.job, d.out)
	case t.kind == epochEnd && j.watched && t.number == j.epoch:
		d.out = append(d.out, sched.Event{Time: d.now, Kind: sched.EpochEnded, Job: t.job, Attempt: j.attempt,
			Value: float64(t.number)})
		d.queueEpoch(t.job)
	}
}

// Apply starts to carry out a plan.
func (d *Driver) Apply(_ context.Context, p sched.Plan) error {
	for i := range p.Actions {
		a := &p.Actions[i]
		switch a.Kind {
		case sched.Start:
			d.start(a)
		case sched.Stop:
			d.stop(a)
		case sched.WatchEpochs:
			d.watch(a)
		case sched.SetNode:
			d.setNode(a)
		case sched.Rent:
			d.rent(a)
		case sched.Adjust:
			d.cap(a)
		default:
			return fmt.Errorf("sim: action %d is not known here", a.Kind)
		}
	}
	return nil
}

func (d *Driver) start(a *sched.Action) {
	j := &d.attempts.state[a.Job]
	if a.Attempt <= j.attempt {
		return // ordered before
	}
	d.machines.failed = 0
	j.attempt, j.phase, j.gpus, j.config = a.Attempt, starting, a.GPUs, a.Config
	d.attempts.add(a.Job)
	if d.runtime.StartDelay > 0 {
		d.queue.push(timed{at: d.now.Add(d.runtime.StartDelay), kind: up, job: a.Job, attempt: a.Attempt})
		return
	}
	d.soon = d.begin(a.Job, d.soon)
}

// begin lets the attempt of job id run from now on and appends its event.
func (d *Driver) begin(id sched.JobID, dst []sched.Event) []sched.Event {
	j := &d.attempts.state[id]
	j.phase, j.from, j.before = running, d.now, j.done
	again := j.starts > 0
	if j.starts > 0 || d.runtime.RestartAtFirst {
		j.from = d.now.Add(d.runtime.restart(&d.jobs[id]))
	}
	j.starts++
	j.began, j.reported, j.reportedAt = j.from, j.done, j.from
	dst = d.enter(id, dst)
	d.setPace(id)
	if j.watched {
		d.queueEpoch(id)
	}
	e := sched.Event{Time: d.now, Kind: sched.AttemptStarted, Job: id, Attempt: j.attempt, Work: j.done,
		WorkFrom: j.from, Rate: j.rate}
	if d.runtime.Report > 0 {
		e.Rate = 0
		d.queueReport(id)
	}
	dst = append(dst, e)
	if again && j.done > 0 && d.jobs[id].Saves == trace.SavesWork {
		dst = append(dst, sched.Event{Time: d.now, Kind: sched.Saved, Job: id, Attempt: j.attempt, Code: sched.WentOn,
			Work: j.done})
	}
	return dst
}

// end closes the attempt of job id with the given work done and appends its event.
func (d *Driver) end(id sched.JobID, o sched.Outcome, work time.Duration, dst []sched.Event) []sched.Event {
	j := &d.attempts.state[id]
	if d.attempts.idle++; work > j.before {
		d.attempts.idle = 0
		if d.attempts.vain++; d.attempts.vain == 1 {
			d.attempts.since = d.now
		}
	}
	dst = d.leave(id, dst)
	if d.jobs[id].Saves == trace.LosesWork && o != sched.Finished {
		if work = 0; o == sched.Preempted {
			dst = append(dst, sched.Event{Time: d.now, Kind: sched.Saved, Job: id, Attempt: j.attempt,
				Code: sched.SavedNothing})
		}
	}
	if work > j.before || o != sched.Preempted {
		d.attempts.vain = 0
	}
	j.done, j.phase, j.gpus = work, idle, nil
	if o == sched.Finished || o == sched.Cancelled {
		d.attempts.over++
	}
	d.attempts.remove(id)
	return append(dst, sched.Event{Time: d.now, Kind: sched.AttemptEnded, Job: id, Attempt: j.attempt, Outcome: o,
		Work: work})
}

// stop ends an attempt: the job saves what it has done and goes.
func (d *Driver) stop(a *sched.Action) {
	j := &d.attempts.state[a.Job]
	if a.Attempt != j.attempt || j.phase == idle || j.phase == stopping {
		return // ordered before, or over already
	}
	if j.phase == running {
		j.done = j.workAt(d.now)
		d.soon = d.leave(a.Job, d.soon)
	}
	if d.runtime.Penalty != nil && a.Why == sched.Preempted {
		j.done -= d.runtime.Penalty(len(j.gpus))
	}
	j.phase, j.stopping = stopping, a.Why
	if d.runtime.StopDelay > 0 {
		d.queue.push(timed{at: d.now.Add(d.runtime.StopDelay), kind: gone, job: a.Job, attempt: a.Attempt})
		return
	}
	d.soon = d.end(a.Job, a.Why, j.done, d.soon)
}

func (d *Driver) watch(a *sched.Action) {
	j := &d.attempts.state[a.Job]
	if j.watched == a.On {
		return
	}
	j.watched = a.On
	if a.On && j.phase == running {
		d.queueEpoch(a.Job)
	}
}
