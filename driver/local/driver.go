package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/driver/local/ports"
	"github.com/trainyard/trainyard/driver/local/procs"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/internal/failpoint"
	"github.com/trainyard/trainyard/sched"
)

// Options say what a Driver runs, on what, and how.
type Options struct {
	State  shim.State // folder of run directories, locks and checkpoints; absolute
	Epoch  int64      // of the manager: higher than that of any before it on this State
	Origin time.Time  // the instant that is time 0
	Node   string     // name of this machine
	// Restored is when the backup was made that State was restored from: what ran then has no trace here. Zero = it was
	// not restored.
	Restored time.Time
	Devices  device.Backend
	Known    []device.Device // by GPUID, as far as the log knows them: for a folder whose list is gone or unreadable
	Types    []string        // of GPUs, by the TypeID that the log's header gives them; nil = in order of the devices
	// Jobs are submitted by themselves, in order of At. As many as the View of Sync has are known already.
	Jobs []Arrival
	// Endless has Next wait for more where all is done. Jobs arrive from elsewhere then, and Jobs must be empty.
	Endless bool
	// Shim is the command to which a run directory is appended: it must end in shim.Main.
	Shim []string
	// Offer makes the machine one to rent from: its devices are there one by one, as long as they are rented. The log's
	// header must have their Pools.
	Offer bool
	// Report is how often progress is reported, at most; speeds are measured from readings half as far apart. 0 = every
	// 10 s. Jobs of seconds need it shorter, and then the log grows faster.
	Report time.Duration
	// Look is how often the devices are looked at; what they do is reported half as often. 0 = every 15 s.
	Look time.Duration
	// Hold says why no job may be started at present; "" = they may. It is called by the engine's goroutine, and by the
	// one inside Next. nil: they may always.
	Hold func() string
	// Peak returns the most memory, in GB, that a job was measured to have on one GPU; 0 = it was not. It is called
	// as Hold is. nil: no one knows.
	Peak func(sched.JobID) float32
	// Ports is where the processes of an attempt meet: each has a lease of its own; zero = ports.Default
	Ports ports.Range
	// Machine is what jobs share apart from devices; zero = it is not counted
	Machine device.Machine
	Log     *slog.Logger // what users should hear of; nil = no one does
}

// Arrival is a job and when it is submitted.
type Arrival struct {
	At   time.Duration // after Origin
	Spec sched.JobSpec // its Task is an encoded task.Task
}

// Driver runs attempts as processes of this machine. Its methods belong to one goroutine, that of the engine, but for
// those that say otherwise.
type Driver struct {
	o       Options
	cgroup  string     // under which groups of processes are made; "" = none
	now     sched.Time // of the last answer
	base    time.Time  // with a monotonic reading: the clock was at at
	at      sched.Time
	dev     *deviceWatch
	gauge   gauge
	lending lending
	runs    *attemptBook
	ports   *ports.Pool
	view    *sched.View    // the engine's, from Sync on
	later   []sched.Event  // to be reported by the next answer
	reports chan report    // of attempts
	quit    chan struct{}  // closed by Close
	work    sync.WaitGroup // goroutines of attempts

	doubtEvery time.Duration // the constant, but for tests
	wakeEvery  time.Duration // likewise
	forceAfter time.Duration // likewise
}

var _ sched.Driver = (*Driver)(nil)

// gather is how long an answer waits for company, so that what happens together is decided, and made durable, together.
const gather = 5 * time.Millisecond

// New returns the driver of this machine. Nothing runs before Sync.
func New(o Options) (*Driver, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Endless && len(o.Jobs) > 0 {
		return nil, fmt.Errorf("local: %d jobs for a driver without end, want none: submit them", len(o.Jobs))
	}
	if err := o.State.SetEpoch(o.Epoch); err != nil {
		return nil, fmt.Errorf("local: %w", err)
	}
	if o.Hold == nil {
		o.Hold = func() string { return "" }
	}
	d := &Driver{o: o, cgroup: procs.Root(), gauge: gauge{every: 2 * cmp.Or(o.Look, lookEvery)},
		lending: lending{on: o.Offer}, runs: newAttemptBook(),
		ports:   ports.NewPool(cmp.Or(o.Ports, ports.Default), rand.Int()),
		reports: make(chan report), quit: make(chan struct{})}
	var err error
	if d.dev, err = watchDevices(&d.o, &d.work, d.quit); err != nil {
		return nil, err
	}
	return d, nil
}

// Close lets go of all attempts, which go on, and returns once nothing of the driver is at work.
func (d *Driver) Close() {
	close(d.quit)
	d.dev.eye.Close()
	d.work.Wait()
}

// Now returns the instant of the last answer.
func (d *Driver) Now() sched.Time { return d.now }

// clock returns the time. It never falls, whatever is done to the clock of the machine.
func (d *Driver) clock() sched.Time { return max(d.at.Add(time.Since(d.base)), d.now) }

// Next waits for something to happen, and a moment longer for what comes with it.
func (d *Driver) Next(ctx context.Context, until sched.Time) ([]sched.Event, error) {
	d.now = max(d.now, d.view.Now) // others may have been first
	d.countTenants()
	d.runs.retime(d.view.Jobs)
	d.runs.forget(d.isDone)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		now := d.clock()
		if until <= d.now || now < until { // else the tick comes before what happened after it
			if events := d.collect(now); len(events) > 0 {
				return events, nil
			}
		}
		switch {
		case until <= now:
			d.now = max(until, d.now)
			return []sched.Event{{Time: d.now, Kind: sched.Ticked}}, nil
		case !d.o.Endless && d.idle(until):
			return nil, io.EOF
		}
		if err := d.wait(ctx, min(until, d.nextArrival(), now.Add(d.dev.pause())).Sub(now)); err != nil {
			return nil, err
		}
	}
}

// idle reports whether nothing can come any more that anybody waits for: no one arrives, nothing runs, and all jobs are
// done, or wait for nothing, neither for a time nor for a device that is not free.
func (d *Driver) idle(until sched.Time) bool {
	if len(d.o.Jobs) > 0 || len(d.runs.live) > 0 {
		return false
	}
	waits := slices.ContainsFunc(d.view.Jobs, func(j sched.Job) bool { return j.State != sched.Done })
	return !waits && len(d.view.Jobs) > 0 || until == sched.Never && !(waits && d.away())
}

// away reports whether a device is not used for now and may come back.
func (d *Driver) away() bool {
	drains := func(n sched.Node) bool { return n.State == sched.NodeDraining }
	return slices.Contains(d.dev.state, sched.GPUForeign) || slices.Contains(d.dev.state, sched.GPUStuck) ||
		slices.Contains(d.dev.state, sched.GPUWithheld) || slices.ContainsFunc(d.view.Nodes, drains)
}

func (d *Driver) nextArrival() sched.Time {
	if len(d.o.Jobs) == 0 {
		return sched.Never
	}
	return sched.Time(d.o.Jobs[0].At)
}

// wait returns after a time, or a moment after something happened.
func (d *Driver) wait(ctx context.Context, atMost time.Duration) error {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	for company := false; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			return nil
		case s := <-d.dev.seen:
			d.later = append(d.later, d.judge(s)...)
		case r := <-d.reports:
			if err := d.take(r); err != nil {
				return err
			}
		}
		if !company {
			company = true
			timer.Reset(gather)
		}
	}
}

// take turns the report of an attempt into an event of the next answer.
func (d *Driver) take(r report) error {
	failpoint.Here("report")
	if r.fatal != nil {
		return fmt.Errorf("local: job %d attempt %d: %w", r.job, r.number, r.fatal)
	}
	a := d.runs.live[r.job]
	if a == nil || a.number != r.number {
		return nil
	}
	r.event.Job, r.event.Attempt, r.event.At = r.job, r.number, trueTime(d, r.at)
	switch r.event.Kind {
	case sched.AttemptEnded, sched.StartFailed:
		a.requeued(&d.view.Jobs[r.job], &r.event)
		if last, ok := a.lastWork(&r.event); ok {
			last.Job, last.Attempt = r.job, r.number
			d.later = append(d.later, last)
		}
		starved(d, &r)
		d.runs.over(r.job, r.number)
		ran := time.Duration(0)
		if j := &d.view.Jobs[r.job]; j.Up {
			ran = d.clock().Sub(j.LastStart)
		}
		d.runs.rest(&r.event, d.backoff(&r.event), ran)
		d.later = append(d.later, r.event)
		d.withhold(&r)
		return nil
	case sched.EpochEnded:
		d.runs.epochs[r.job] = int64(r.event.Value)
		if !d.runs.watched[r.job] {
			return nil
		}
	}
	d.later = append(d.later, r.event)
	return nil
}

// withhold takes the devices that an end speaks of out of use: those that did not become free, and those that a failed
// start blames, because someone else has their locks.
func (d *Driver) withhold(r *report) {
	for i := range d.dev.list {
		if v, found := r.unfree[d.dev.list[i].Name]; found {
			d.dev.watch.Set(i, v)
		}
	}
	if r.event.Kind == sched.StartFailed {
		for _, g := range r.event.GPUs {
			if name := d.dev.list[g].Name; !slices.Contains(d.dev.barred, name) {
				d.dev.barred = append(d.dev.barred, name)
			}
		}
	}
	d.later = append(d.later, d.dev.changes()...)
}

// backoff returns how long a job wants to rest after an end; sched.Never: after this one it wants to be tried no more.
func (d *Driver) backoff(e *sched.Event) sched.Time {
	if e.Kind != sched.AttemptEnded || e.Outcome != sched.Failed {
		return 0
	}
	t, err := task.DecodeTask(d.view.Jobs[e.Job].Spec.Task)
	switch {
	case err != nil: // then it is not started again
		return 0
	case strings.HasPrefix(e.Text, task.Timeout) && !t.RetriesTimeout():
		return sched.Never
	case d.view.Jobs[e.Job].Spec.Retries > 0 && !strings.HasPrefix(e.Text, task.Timeout) && !t.Retries(int(e.Code)):
		return sched.Never
	}
	return sched.Time(t.Backoff)
}

// collect returns what is to be reported at the instant now: what was reported, who arrives, who uses the devices. What
// else happened to an attempt whose start is reported waits for the next answer, as does the end of one whose progress
// is, which would be folded after it; and so do the devices that it left behind.
func (d *Driver) collect(now sched.Time) []sched.Event {
	d.dev.look()
	if why := d.o.Hold(); why != d.dev.held {
		d.dev.held = why
		d.later = append(d.later, d.dev.changes()...)
	}
	d.later = append(d.later, d.offer()...)
	for d.nextArrival() <= now {
		d.later = append(d.later, sched.Event{Kind: sched.JobArrived, Spec: &d.o.Jobs[0].Spec})
		d.o.Jobs = d.o.Jobs[1:]
	}
	if len(d.later) == 0 {
		return nil
	}
	d.now = now
	var out, rest []sched.Event
	started, moved := make(map[sched.JobID]bool), make(map[sched.JobID]bool)
	for _, e := range d.later {
		after := len(rest) > 0 && e.Kind == sched.GPUChanged // of an attempt whose end waits
		if after || started[e.Job] && e.Kind.Form().Attempt || moved[e.Job] && e.Kind == sched.AttemptEnded {
			rest = append(rest, e)
			continue
		}
		started[e.Job] = started[e.Job] || e.Kind == sched.AttemptStarted
		moved[e.Job] = moved[e.Job] || e.Kind == sched.Progressed
		out = append(out, d.dated(e))
	}
	d.later = rest
	return out
}

// dated gives an event of this instant its time.
func (d *Driver) dated(e sched.Event) sched.Event {
	e.Time = d.now
	if e.At >= e.Time {
		e.At = 0
	}
	switch e.Kind {
	case sched.JobArrived:
		e.Spec.Submit = d.now
	case sched.AttemptStarted:
		e.WorkFrom = e.Happened()
	case sched.Progressed:
		e.WorkFrom = workedTo(&d.view.Jobs[e.Job], d.now)
	case sched.StartFailed:
		e.At = 0
	case sched.AttemptEnded:
		if e.WorkFrom > 0 { // so far the length of a rest
			e.WorkFrom = d.now.Add(time.Duration(e.WorkFrom))
		}
	}
	return e
}

// workedTo is to when the attempt of j had done the work that is reported now: of one that was ordered to stop, to the
// order, from when on its work counts no more.
func workedTo(j *sched.Job, now sched.Time) sched.Time {
	if j.Attempt == sched.Stopping {
		return j.WorkFrom
	}
	return now
}

// Apply has the orders of a plan carried out. It waits for none of them.
func (d *Driver) Apply(_ context.Context, p sched.Plan) error {
	failpoint.Here("apply")
	for i := range p.Actions {
		a := &p.Actions[i]
		if d.isOld(a) {
			continue // nothing is remembered of it
		}
		switch a.Kind {
		case sched.Start:
			if d.runs.isNew(a) {
				d.start(a)
			}
		case sched.Stop:
			d.stop(a)
		case sched.WatchEpochs:
			d.runs.watched[a.Job] = a.On
		case sched.Rent:
			if d.lending.on {
				d.lending.wanted[a.Pool] = a.Count // the next answer says so
			}
		case sched.SetNode:
			if !d.lending.on || a.State == sched.NodeAsleep {
				d.o.Log.Warn("this machine does not sleep", "state", a.State)
				break
			}
			d.setNode(a)
		case sched.Adjust:
			d.o.Log.Debug("power caps are not set here", "job", a.Job, "watts", a.Cap)
		default:
			return fmt.Errorf("local: action %d is not known here", a.Kind)
		}
	}
	return nil
}

// stop ends the attempt of an order. An attempt that is not known may be that of a start that was ordered, but perhaps
// not carried out: it is started without an order, and so ended.
func (d *Driver) stop(a *sched.Action) {
	if d.runs.isNew(a) {
		at := d.begin(a.Job, d.recall(a.Job, a.Attempt), 1, 0)
		at.since = d.o.Origin // who started it, if anybody did, is not known
		at.stop(a.Why)
		d.work.Go(func() { at.run(nil) })
		return
	}
	if at := d.runs.live[a.Job]; at != nil && at.number == a.Attempt {
		at.stop(a.Why)
	}
}

// begin makes the attempt of an order, on so many GPUs and with a batch size, the live one of its job.
func (d *Driver) begin(job sched.JobID, order *shim.Order, width, batch int) *attempt {
	o := d.odometer(job, 0)
	_, err := d.o.State.RunDir(int32(job), order.Attempt).Starting()
	o.Number(order.Attempt, err == nil)
	o.Begin(width, batch)
	a := &attempt{d: d, job: job, number: order.Attempt, order: order, since: time.Now(), odo: o,
		epoch: d.runs.epochs[job], dir: d.o.State.RunDir(int32(job), order.Attempt), stopped: make(chan struct{}),
		readied: make(chan struct{})}
	a.timing.Store(&timing{over: make(chan struct{})})
	if int(job) < len(d.view.Jobs) {
		a.spec = d.view.Jobs[job].Spec
	}
	d.runs.begin(a)
	return a
}

// recall returns the order of an attempt that an earlier driver gave, or a later one would have, as far as the log and
// this machine say: what the run directory has of it the job may have written. Only where its processes are kept is
// read there, as that is how they were started, and only if such a group is there.
func (d *Driver) recall(job sched.JobID, number int32) *shim.Order {
	o := &shim.Order{State: d.o.State, Job: int32(job), Attempt: number, Cgroup: d.cgroup}
	if old, err := d.o.State.RunDir(o.Job, number).Order(); err == nil && old.Cgroup != d.cgroup {
		if group := filepath.Join(old.Cgroup, o.GroupName()); procs.IsCgroup(group) {
			o.Cgroup = old.Cgroup
		}
	}
	if int(job) >= len(d.view.Jobs) {
		return o
	}
	j := &d.view.Jobs[job]
	for _, g := range j.GPUs {
		o.Devices = append(o.Devices, d.dev.list[g].Name)
	}
	if t, err := task.DecodeTask(j.Spec.Task); err == nil {
		o.Grace, o.Save, o.Progress, o.Pattern = t.Grace, t.Checkpoint, t.Progress, t.Pattern
	}
	return o
}

// isOld reports whether an order is about a job that is done.
func (d *Driver) isOld(a *sched.Action) bool {
	ofJob := a.Kind == sched.Start || a.Kind == sched.Stop || a.Kind == sched.WatchEpochs
	return ofJob && d.isDone(a.Job)
}

// isDone reports whether nothing can come of a job any more.
func (d *Driver) isDone(job sched.JobID) bool {
	return int(job) < len(d.view.Jobs) && d.view.Jobs[job].State == sched.Done
}

// start has the attempt of an order started, or says why it cannot be.
func (d *Driver) start(a *sched.Action) {
	lease, err := d.ports.Take()
	var o *shim.Order
	var unlink func() []string
	if err == nil {
		o, unlink, err = d.order(a, lease)
	}
	if why := d.o.Hold(); why != "" {
		err = errors.New(why)
	}
	if err != nil {
		if lease != nil {
			lease.Close()
		}
		d.runs.never(a.Job, a.Attempt)
		d.later = append(d.later, sched.Event{Kind: sched.StartFailed, Job: a.Job, Attempt: a.Attempt,
			Text: err.Error()})
		if d.runs.envLost(a.Job, err) { // to try again is in vain until someone puts it back
			d.later = append(d.later, sched.Event{Kind: sched.JobCommanded, Job: a.Job, Code: int32(sched.PauseJob)})
		}
		return
	}
	at := d.begin(a.Job, o, len(a.GPUs), int(a.Batch))
	at.lease = lease
	d.work.Go(func() { at.run(at.unlinked(o, unlink)) })
}

// memory returns how much memory of each GPU a job is given that states so much, in GB: what it was measured to have,
// by which it shares, where that is more.
func (o *Options) memory(id sched.JobID, stated float32) float32 {
	if stated == 0 {
		return 0
	}
	return max(stated, o.peak(id))
}

// peak returns the most memory that a job was measured to have on a GPU, in GB; 0 = unknown.
func (o *Options) peak(id sched.JobID) float32 {
	if o.Peak == nil {
		return 0
	}
	return o.Peak(id)
}

// order is what the driver orders of the shim of an attempt. In a copy of its tree, unlink returns the command with
// what links name, in place of that of the order: it waits for the user's file systems.
func (d *Driver) order(a *sched.Action, lease *ports.Lease) (o *shim.Order, unlink func() []string, err error) {
	t, err := task.DecodeTask(d.view.Jobs[a.Job].Spec.Task)
	if err != nil {
		return nil, nil, err
	}
	o = &shim.Order{State: d.o.State, Job: int32(a.Job), Attempt: a.Attempt, Epoch: d.o.Epoch, Command: t.Command,
		Dir: t.Dir, Shared: a.Share == sched.Shared, Locks: d.o.Devices.Locks(), Cgroup: d.cgroup,
		Save: t.Checkpoint, Progress: t.Progress, Pattern: t.Pattern, MaxOutput: t.MaxOutput,
		Terminal: t.Terminal}
	held := make([]device.Device, len(a.GPUs))
	for i, g := range a.GPUs {
		held[i] = d.dev.list[g]
		o.Devices = append(o.Devices, held[i].Name)
		o.Nodes = append(o.Nodes, d.o.Devices.Node(&held[i]))
		o.Parts = append(o.Parts, held[i].Slice != "")
	}
	reported := *a
	reported.LRScale = scale(a, t.LRScaling, int(d.view.Jobs[a.Job].Spec.Batch.Min))
	o.Ran = d.view.Jobs[a.Job].RunSince(d.view.Now)
	o.Times = t.Times().Of(o.Ran)
	spec := d.view.Jobs[a.Job].Spec
	o.Output, o.Limits = userOutput(&t, a, spec), resources(&t, spec, len(a.GPUs))
	o.Env, err = environment(o, &reported, t, held, &surrounding{d.o.Devices, lease, spec.CPUs,
		d.o.memory(a.Job, spec.GPUMemGB), spec.Ties.Array})
	if err == nil {
		t.Command, o.Modules, err = scripted(o.State, &t)
	}
	launched := func(command []string) []string {
		return t.Launched(replaced(command, o.Env), len(held), strconv.Itoa(lease.First))
	}
	if err == nil && t.Tree.Sum != "" {
		var root string
		if root, err = o.State.KeptTree(t.Tree.Sum); err == nil {
			o.Dir, t.Command, err = t.Moved(t.Command, root)
		}
		unlink = func() []string { return launched(unlinked(&t, t.Command, o.Dir, root)) }
	}
	o.Command = launched(t.Command)
	return o, unlink, err
}

// scripted returns the command of a task with the copy of its script, if it runs one, and in which folder Python is to
// look for what was next to that; "" = none.
func scripted(from shim.State, t *task.Task) (command []string, modules string, err error) {
	if t.Script.Sum == "" {
		return t.Command, "", nil
	}
	path := t.ScriptPath()
	if t.ScriptIsPython() {
		modules = filepath.Dir(path)
	}
	command = slices.Clone(t.Command)
	command[t.Script.At], err = from.KeptScript(t.Script.Sum, filepath.Base(path))
	return command, modules, err
}

// errNoDevices is returned where there is nothing to run jobs on.
var errNoDevices = errors.New("none found, want at least one")
