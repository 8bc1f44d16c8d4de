package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/trainyard/trainyard/attempt/progress"
	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/internal/failpoint"
	"github.com/trainyard/trainyard/sched"
)

// Sync says what the log does not know yet: the machine, if it is new, and what became of the attempts that an earlier
// driver started. Those that are alive are followed from now on.
func (d *Driver) Sync(_ context.Context, v *sched.View) ([]sched.Event, error) {
	d.view, d.base = v, time.Now()
	d.now = v.Now
	d.at = max(sched.Time(d.base.Sub(d.o.Origin)), d.now)
	d.dev.held = d.o.Hold()
	if !d.o.Endless {
		if len(d.o.Jobs) < len(v.Jobs) {
			return nil, fmt.Errorf("local: the log has %d jobs, want at most the %d that are to be run", len(v.Jobs),
				len(d.o.Jobs))
		}
		d.o.Jobs = d.o.Jobs[len(v.Jobs):]
	}
	if err := d.unknown(v); err != nil {
		return nil, err
	}
	events, err := d.machine(v)
	if err != nil {
		return nil, err
	}
	for i := range v.Jobs {
		events = append(events, d.adopt(sched.JobID(i), &v.Jobs[i])...)
	}
	failpoint.Here("synced")
	events = append(events, d.firstLook()...)
	d.now = d.clock()
	return dated(events, d.now), nil
}

// dated gives events without a time that of now. What follows from events of the past is decided now, not then: a tick
// says so.
func dated(events []sched.Event, now sched.Time) []sched.Event {
	latest := sched.Time(0)
	for i := range events {
		if events[i].Time == 0 {
			events[i].Time = now
		}
		latest = max(latest, events[i].Time)
	}
	if len(events) > 0 && latest < now {
		events = append(events, sched.Event{Time: now, Kind: sched.Ticked})
	}
	return events
}

// machine returns the machine as nodes, as far as v does not know it. The states of its GPUs were reported as v has
// them.
func (d *Driver) machine(v *sched.View) (events []sched.Event, err error) {
	d.lending.resume(v, len(d.dev.list))
	if len(v.Nodes) == 0 {
		events, err = d.dev.nodes(0)
		if d.lending.on {
			events = d.lending.introduce(events, max(d.at, 1))
		}
		return events, err
	}
	if len(d.dev.list) < len(v.GPUs) {
		return nil, fmt.Errorf("local: %s lists %d devices, and the log knows %d: remove it, and it is made again",
			inventoryName, len(d.dev.list), len(v.GPUs))
	}
	for i := range v.GPUs {
		d.dev.state[i] = v.GPUs[i].State
		d.dev.withheld[i] = d.dev.state[i] == sched.GPUWithheld
		d.dev.retired[i] = d.dev.state[i] == sched.GPUForgotten
	}
	return d.dev.nodes(len(v.GPUs))
}

// firstLook returns how the devices are. Of attempts that ended while no driver was there no one has checked what they
// left: as long as devices cannot be looked at, those that no attempt holds are given to no one.
func (d *Driver) firstLook() []sched.Event {
	s := d.dev.ask(nil, d.dev.names())
	events := d.judge(s)
	if s.err == nil {
		return events
	}
	o := d.owners(nil)
	for i := range d.dev.list {
		if st := d.dev.watch.Of(i); st.State == sched.GPUInUse && !o.holds(st.Name) {
			d.dev.watch.Set(i, device.Verdict{State: sched.GPUStuck, Why: s.err.Error()})
		}
	}
	return d.dev.changes()
}

// adopt takes over the attempt that a job has, and reports what happened to it meanwhile. An attempt that was ordered
// but that no one has started waits for the order to be given again.
func (d *Driver) adopt(id sched.JobID, j *sched.Job) []sched.Event {
	if j.State == sched.Done {
		return nil
	}
	if j.Watched {
		d.runs.watched[id] = true
	}
	if j.State == sched.Held {
		d.runs.envLost(id, inherits(d.o.State, j.Spec))
	}
	if j.Attempts == 0 { // nothing else is known of it
		return nil
	}
	d.runs.resting = append(d.runs.resting, id)
	d.runs.ended[id], d.runs.epochs[id] = j.Attempts, int64(j.Epoch)
	if j.Attempt != sched.Stopping { // then it is a guess
		d.odometer(id, j.Work)
	}
	if !j.HoldsDevices() {
		return nil
	}
	d.runs.ended[id]--
	if !j.Up && !d.o.State.Begun(int32(id), j.Attempts) {
		return nil
	}
	a := d.begin(id, d.recall(id, j.Attempts), len(j.GPUs), int(j.Live.Batch))
	a.up, a.adopted, a.since = j.Up, j.Up, d.o.Origin
	a.retime() // what was changed last its shim may not have heard
	if j.Attempt == sched.Stopping {
		why := sched.Preempted
		if j.Cancel {
			why = sched.Cancelled
		}
		a.stop(why)
	}
	if end := a.howEnded(); end != nil && end.past() && a.gone() { // else it is swept first
		return d.missed(a, end)
	}
	d.work.Go(func() { a.run(nil) })
	return nil
}

// inherits returns why what a job was submitted with cannot be had, or nil.
func inherits(from shim.State, spec *sched.JobSpec) error {
	t, err := task.DecodeTask(spec.Task)
	if err != nil {
		return nil //nolint:nilerr // it is not started either way
	}
	if t.Inherit != "" {
		_, err = from.KeptEnv(t.Inherit)
	}
	_, _, lost := scripted(from, &t)
	return errors.Join(err, lost)
}

// missed reports an attempt that came to its end while no driver was there, at the times at which it happened. If no
// shim wrote down when, that is the last time at which it is known to have run.
func (d *Driver) missed(a *attempt, x *end) (events []sched.Event) {
	up, gone := trueTime(d, startOf(x.over)), trueTime(d, endOf(x.over))
	if x.over == nil {
		gone = max(lastSign(d, a, x), d.now) // when the log ends it ran
	}
	started := d.instant(up)
	if !a.up && x.over != nil && !x.over.Started.IsZero() {
		events = append(events, sched.Event{Time: started, At: before(up, started), Kind: sched.AttemptStarted,
			WorkFrom: started, Work: a.odo.Work(), Rate: a.odo.Rate(),
			Code: sched.GuessedRate}) // what it was is reported at its end
	}
	var shown []sched.Event
	a.meter = newTail(a, progress.NewReader(progress.Own), func(e sched.Event) { shown = append(shown, e) })
	a.meter.judgeHead()
	a.meter.sink = nil // how far it was on the way is reported at its end
	a.meter.skip()
	a.meter.finish()
	e := a.ending(x, a.order)
	e.Time = max(d.instant(gone), started+2) // its progress comes between the two
	e.At = before(gone, e.Time)
	e.Job = a.job
	a.requeued(&d.view.Jobs[a.job], &e)
	if rest := d.backoff(&e); rest > 0 {
		e.WorkFrom = e.Time.Add(time.Duration(rest))
	}
	if last, ok := a.lastWork(&e); ok {
		last.Time, last.WorkFrom = e.Time-1, workedTo(&d.view.Jobs[a.job], e.Time-1)
		events = append(events, last)
	}
	if proof, ok := a.proof(&e, x.over); ok {
		shown = append(shown, proof)
	}
	for i := range shown {
		shown[i].Time = e.Time
	}
	events = append(events, shown...)
	a.meter.keep()
	events = append(events, e)
	for i := range events {
		events[i].Job, events[i].Attempt = a.job, a.number
	}
	d.runs.over(a.job, a.number)
	return events
}

// lastSign returns when an attempt is last known to have run whose shim did not write down its end: when its machine
// wrote in its run directory, before it was booted again, or when the backup was made in which it ran. Before the log =
// not known.
func lastSign(d *Driver, a *attempt, x *end) (last sched.Time) {
	if x.traceless {
		return sched.Time(d.o.Restored.Sub(d.o.Origin))
	}
	entries, _ := os.ReadDir(string(a.dir)) // what cannot be read says nothing
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			last = max(last, sched.Time(info.ModTime().Sub(d.o.Origin)))
		}
	}
	return min(last, d.clock().Add(-shim.SinceBoot()))
}

// instant returns the time of something that happened at t: after the log ended, not after now.
func (d *Driver) instant(t sched.Time) sched.Time { return max(min(t, d.clock()), d.now) }

// before returns t if it is known and before another time, else 0.
func before(t, than sched.Time) sched.Time {
	if t >= than {
		return 0
	}
	return t
}

// unknown refuses a log that knows less than the folder: an attempt runs of which the log never heard. Who decides on
// such a log starts jobs twice.
func (d *Driver) unknown(v *sched.View) error {
	root := filepath.Join(string(d.o.State), "jobs")
	jobs, err := os.ReadDir(root)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("local: %w", err)
	}
	for _, entry := range jobs {
		id, err := strconv.ParseInt(entry.Name(), 10, 32)
		if err != nil {
			continue // not ours
		}
		known := int32(0)
		if int(id) < len(v.Jobs) {
			known = v.Jobs[id].Attempts
		}
		if d.o.State.Begun(int32(id), known+1) {
			return fmt.Errorf("local: %s has an attempt of job %d after number %d, the last one in the log: the log "+
				"is older than the folder; restore the log that belongs to it, or go on from the one there is by "+
				"`trainyard doctor --repair`",
				root, id, known)
		}
	}
	return nil
}
