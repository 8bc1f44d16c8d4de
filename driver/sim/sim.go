package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// Driver simulates a cluster under a trace. Its jobs are numbered by arrival, as the engine numbers them.
type Driver struct {
	jobs    []trace.Job
	cluster *cluster.Cluster
	view    *sched.View // of the engine: who has which number
	runtime Runtime
	inject  []sched.Event
	outages *cluster.Outages

	now       sched.Time
	state     []jobState
	arrived   int
	nodes     []nodeState // by NodeID
	pools     []poolState // by PoolID
	widest    int
	live      []sched.JobID   // with an attempt, in no particular order
	tenants   [][]sched.JobID // by GPU: attempts that work there; kept only where jobs interfere
	changes   []Change        // of Runtime.Changes, those to come
	factor    []float64       // by GPU: of the last change; GPUs beyond its end have 1
	placement []int           // scratch
	crowd     []*trace.Job    // scratch
	struck    []sched.JobID   // scratch
	done      int             // jobs that finished or were cancelled while they ran
	down      int             // nodes that are away and will come back
	failed    int             // nodes that went away since an attempt last started
	idle      int             // attempts in a row that ended before they did any work
	outage    timed           // the next outage or repair
	queue     timedHeap
	soon      []sched.Event // of this very instant, caused by the last plan
	out       []sched.Event
	specs     []sched.NodeSpec // of the nodes that join by out
	name      []byte           // scratch
	orderly   uint64
	broken    error // the truth makes no sense
}

// jobState is the truth about one job.
type jobState struct {
	done     time.Duration // work done up to from
	before   time.Duration // of it when the attempt began
	told     time.Duration // of it in the last report
	toldAt   sched.Time
	began    sched.Time // the attempt does work from here
	from     sched.Time // work goes on from here at rate
	rate     float64
	starts   int32
	attempt  int32
	phase    phase
	watched  bool
	epoch    int32 // whose end is to be reported next; ends queued before a watch was renewed are not
	pace     int32 // raised whenever rate changes: what was queued at another pace is void
	reports  int32 // made so far
	liveAt   int32 // index in Driver.live
	gpus     []sched.GPUID
	config   sched.Config
	stopping sched.Outcome
}

type phase uint8

const (
	idle phase = iota
	starting
	running
	stopping
)

type nodeState struct {
	state      sched.NodeState
	generation int32 // of the machine that state is about
	boot       int32 // number of the boot under way; 0 = none
	boots      int32
}

// Options are what a simulation may be given beside trace and cluster.
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
		outages: cluster.NewOutages(c.Failures, len(c.Nodes)), nodes: make([]nodeState, len(c.Nodes)),
		changes: o.Runtime.Changes}
	d.state = make([]jobState, len(jobs))
	for _, n := range c.Nodes {
		d.widest = max(d.widest, n.GPUs)
	}
	d.nextOutage()
	return d, nil
}

var _ sched.Driver = (*Driver)(nil)

// Now returns the simulated time.
func (d *Driver) Now() sched.Time { return d.now }

// Sync reports all nodes of the cluster as up at time 0; nodes of pools are rented later. If v shows that a run is
// under way, Sync takes it over instead, and the simulation goes on from that instant: the first jobs of the trace must
// be those of v, with durations that count from the beginning. A boot under way begins anew.
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
		if len(d.queue) > 0 && d.queue[0].at > horizon {
			return nil, fmt.Errorf("sim: job %d would end after %v, want a trace of less than a century",
				d.queue[0].job, horizon)
		}
		if d.idle > maxIdle {
			return nil, fmt.Errorf("sim: %d attempts in a row were stopped before they did any work: jobs preempt "+
				"each other faster than they restart; set min_run above restart_overhead", d.idle)
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

// maxIdle is how many attempts in a row may end without any work done before a simulation that goes in circles is given
// up.
const maxIdle = 100_000

// horizon is how far simulated time goes: about 146 years, so that sums of times stay inside 64 bits.
const horizon = sched.Never / 2

// nextTime returns the time of the next arrival, end, delayed event or outage. Outages alone keep nothing going, but
// happen while somebody waits until a time.
func (d *Driver) nextTime(until sched.Time) sched.Time {
	at := sched.Never
	if d.arrived < len(d.jobs) {
		at = d.jobs[d.arrived].Spec.Submit
	}
	if len(d.queue) > 0 {
		at = min(at, d.queue[0].at)
	}
	if len(d.inject) > 0 {
		at = min(at, d.inject[0].Time)
	}
	if len(d.changes) > 0 && len(d.live) > 0 {
		at = min(at, max(d.changes[0].At, d.now))
	}
	if at != sched.Never || until != sched.Never || d.mayHelp() {
		at = min(at, d.outage.at)
	}
	return at
}

// patience is how many nodes may fail since the last start, per node of the cluster, before a simulation in which
// nothing else goes on is given up.
const patience = 1000

// mayHelp reports whether the return of a node may yet let a waiting job start: some node is away. Where many fail some
// is always away, and a job that cannot start at all would keep the simulation going for ever: hence the patience.
func (d *Driver) mayHelp() bool {
	return d.down > 0 && d.done < len(d.jobs) && d.failed <= patience*len(d.nodes)
}

// collect gathers the events of d.now into d.out. What they cause at this very instant, such as the end of a job of no
// duration that starts, is left for the next call.
func (d *Driver) collect() {
	d.out, d.specs = d.out[:0], d.specs[:0]
	for last := d.orderly; len(d.queue) > 0 && d.queue[0].at == d.now && d.queue[0].order <= last; {
		d.due(d.queue.pop())
	}
	for len(d.changes) > 0 && d.changes[0].At <= d.now {
		d.change(d.changes[0])
		d.changes = d.changes[1:]
	}
	for d.outage.at == d.now {
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
	}
}

// due turns a delayed occurrence into its event, unless the attempt it belongs to is over.
func (d *Driver) due(t timed) {
	switch t.kind {
	case nodeReady:
		d.wake(sched.NodeID(t.job), t.attempt)
		return
	case rented:
		d.join(sched.PoolID(t.job), t.attempt)
		return
	}
	j := &d.state[t.job]
	if t.attempt != j.attempt {
		return
	}
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
		d.out = d.tell(t.job, d.out)
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
	j := &d.state[a.Job]
	if a.Attempt <= j.attempt {
		return // told before
	}
	d.failed = 0
	j.attempt, j.phase, j.gpus, j.config = a.Attempt, starting, a.GPUs, a.Config
	j.liveAt = int32(len(d.live))
	d.live = append(d.live, a.Job)
	if d.runtime.StartDelay > 0 {
		d.push(timed{at: d.now.Add(d.runtime.StartDelay), kind: up, job: a.Job, attempt: a.Attempt})
		return
	}
	d.soon = d.begin(a.Job, d.soon)
}

// begin lets the attempt of job id run from now on and appends its event.
func (d *Driver) begin(id sched.JobID, dst []sched.Event) []sched.Event {
	j := &d.state[id]
	j.phase, j.from, j.before = running, d.now, j.done
	if j.starts > 0 || d.runtime.RestartAtFirst {
		j.from = d.now.Add(d.runtime.restart(&d.jobs[id]))
	}
	j.starts++
	j.began, j.told, j.toldAt = j.from, j.done, j.from
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
	return append(dst, e)
}

// end closes the attempt of job id with the given work done and appends its event.
func (d *Driver) end(id sched.JobID, o sched.Outcome, work time.Duration, dst []sched.Event) []sched.Event {
	j := &d.state[id]
	if d.idle++; work > j.before {
		d.idle = 0
	}
	dst = d.leave(id, dst)
	j.done, j.phase, j.gpus = work, idle, nil
	if o == sched.Finished || o == sched.Cancelled {
		d.done++
	}
	last := d.live[len(d.live)-1]
	d.live[j.liveAt] = last
	d.state[last].liveAt = j.liveAt
	d.live = d.live[:len(d.live)-1]
	return append(dst, sched.Event{Time: d.now, Kind: sched.AttemptEnded, Job: id, Attempt: j.attempt, Outcome: o,
		Work: work})
}

// stop ends an attempt: the job saves what it has done and goes.
func (d *Driver) stop(a *sched.Action) {
	j := &d.state[a.Job]
	if a.Attempt != j.attempt || j.phase == idle || j.phase == stopping {
		return // told before, or over already
	}
	if j.phase == running {
		j.done = d.workOf(j, d.now)
		d.soon = d.leave(a.Job, d.soon)
	}
	if d.runtime.Penalty != nil && a.Why == sched.Preempted {
		j.done -= d.runtime.Penalty(len(j.gpus))
	}
	j.phase, j.stopping = stopping, a.Why
	if d.runtime.StopDelay > 0 {
		d.push(timed{at: d.now.Add(d.runtime.StopDelay), kind: gone, job: a.Job, attempt: a.Attempt})
		return
	}
	d.soon = d.end(a.Job, a.Why, j.done, d.soon)
}

func (d *Driver) watch(a *sched.Action) {
	j := &d.state[a.Job]
	if j.watched == a.On {
		return
	}
	j.watched = a.On
	if a.On && j.phase == running {
		d.queueEpoch(a.Job)
	}
}
