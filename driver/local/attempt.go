package local

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/trainyard/trainyard/attempt/progress"
	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/driver/local/ports"
	"github.com/trainyard/trainyard/driver/local/procs"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/internal/failpoint"
	"github.com/trainyard/trainyard/sched"
)

// attempt is the driver's end of one attempt. A goroutine of its own follows the shim and reports.
type attempt struct {
	d       *Driver
	job     sched.JobID
	number  int32
	dir     shim.RunDir
	order   *shim.Order            // what was ordered, as far as the log says: what is in dir the job may have written
	since   time.Time              // nothing of it happened before
	mark    procs.Mark             // all its processes started later; no moment = that is not known
	why     sched.Outcome          // why it is stopped; set before stopped is closed
	again   bool                   // it is stopped as its job was requeued; set as well
	stopped chan struct{}          // closed once it is to be stopped
	readied chan struct{}          // closed once it posted, after that, that all is saved
	spec    *sched.JobSpec         // of its job, as it was when timing was set; of the engine's goroutine
	timing  atomic.Pointer[timing] // how long it may take

	odo     *progress.Odometer // of its job
	tenants atomic.Int32       // see Odometer.Share
	up      bool               // its start was reported; of the goroutine, once it runs
	epoch   int64              // of the job, the last known when the attempt was started or adopted
	adopted bool               // it was up before this driver was there
	lease   *ports.Lease       // of the ports where its processes meet, until its shim has it; nil = none is held here
	meter   *tail              // reads what the job writes, once it runs
	cost    loss               // of its end, once that is known
	spawned int                // pid of the shim that this driver started; 0 = none
	noShim  error              // why this driver could not start one; of the goroutine
	forced  atomic.Bool        // the driver killed its processes, as its shim did not
}

// report is what an attempt has to report.
type report struct {
	job    sched.JobID
	number int32
	event  sched.Event               // as far as the attempt knows it
	at     stamp                     // when that happened
	unfree map[string]device.Verdict // at its end: devices that may not be given on, by name
	others neighbours                // at its end
	fatal  error                     // the driver must not go on
}

// stop has the attempt ended, once.
func (a *attempt) stop(why sched.Outcome) {
	if !isClosed(a.stopped) {
		a.why = why
		a.again = int(a.job) < len(a.d.view.Jobs) && a.d.view.Jobs[a.job].Requeued
		close(a.stopped)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (a *attempt) report(e sched.Event) { a.send(report{event: e}) }

func (a *attempt) send(r report) {
	r.job, r.number = a.job, a.number
	select {
	case a.d.reports <- r:
	case <-a.d.quit:
	}
}

// How long the driver waits for a shim that is coming up, or that has hung up but not gone yet, before it tries again.
const (
	firstPause = time.Millisecond
	lastPause  = 100 * time.Millisecond
)

// run follows the attempt to its end, from wherever it stands: from nothing, with the order o to start it, or from
// where an earlier driver left it. It returns when the end is reported or the driver closes.
func (a *attempt) run(o *shim.Order) {
	coming := a.launch(o)
	over := make(chan struct{})
	defer close(over)
	a.d.work.Go(func() { a.insist(over) })
	for pause := firstPause; !isClosed(a.d.quit); pause = min(2*pause, lastPause) {
		if conn, err := shim.Dial(a.dir, a.d.o.Epoch); err == nil {
			failpoint.Here("attached")
			began := time.Now()
			coming = nil // who listens has started it
			if err := a.follow(conn); errors.Is(err, shim.ErrFenced) {
				// whether that is so the managers' own file says, below: the job may listen there itself
				a.d.o.Log.Warn("orders are refused", "job", a.job, "attempt", a.number, "error", err)
			}
			if time.Since(began) > lastPause {
				pause = firstPause
			}
		}
		if coming == nil && a.d.o.State.Served() { // no shim of ours that could start it yet
			if err := a.d.o.State.Fenced(a.d.o.Epoch); errors.Is(err, shim.ErrFenced) {
				a.send(report{fatal: err})
				return
			}
			if end := a.howEnded(); end != nil {
				a.finish(end)
				return
			}
		}
		select {
		case <-coming:
			coming = nil
		case <-a.d.quit:
		case <-time.After(pause):
		}
	}
}

// errGone says that there is nowhere to leave an order.
var errGone = errors.New("the state folder is gone")

// launch leaves the order in the run directory and starts a shim, unless one has started the attempt or none is to. The
// channel is closed when that shim has gone; nil if there is none.
func (a *attempt) launch(o *shim.Order) <-chan struct{} {
	if a.lease != nil {
		defer a.lease.Close() // its shim has it from then on
	}
	if o == nil || isClosed(a.stopped) {
		return nil
	}
	if a.d.o.State.Begun(int32(a.job), a.number) { // by an earlier driver's order
		a.since = a.d.o.Origin
		return nil
	}
	failpoint.Here("launch.before")
	err := errGone
	if a.d.o.State.Served() { // else a new folder would be made in its place
		err = shim.WriteOrder(o)
	}
	failpoint.Here("launch.ordered")
	var gone chan struct{}
	if err == nil {
		gone, err = a.spawn()
	}
	failpoint.Here("launch.spawned")
	if a.noShim = err; err != nil {
		a.d.o.Log.Error("no shim", "job", a.job, "attempt", a.number, "error", err)
	}
	return gone
}

// spawn starts a shim in a session of its own. The channel is closed when it has gone.
func (a *attempt) spawn() (chan struct{}, error) {
	out, err := a.dir.Log()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	command := a.d.o.Shim
	cmd := exec.Command(command[0], append(command[1:len(command):len(command)], string(a.dir))...)
	if cmd.Path == "/proc/self/exe" { // says little in a list of processes
		cmd.Args[0] = "trainyard"
	}
	cmd.Dir, cmd.Stdout, cmd.Stderr = string(a.dir), out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if a.lease != nil { // open in the shim, and in no process of the job: see shim.KeepFiles
		cmd.ExtraFiles = []*os.File{a.lease.Lock()}
	}
	shim.KeepFiles()
	a.mark = procs.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	a.spawned = cmd.Process.Pid
	gone := make(chan struct{})
	go func() { // for as long as the shim lives, which may be longer than the driver
		_ = cmd.Wait()
		close(gone)
	}()
	return gone, nil
}

// follow listens to the shim until it hangs up.
func (a *attempt) follow(conn *shim.Conn) error {
	over := make(chan struct{})
	defer close(over)
	a.d.work.Go(func() { a.direct(conn, over) })
	return conn.Watch(func(x *shim.Alive) { a.started(stamp{x.At, x.AtBoot, x.BootID}) })
}

// doubtEvery is how often it is asked whether who listens is a shim: a job may have killed its own, and listen itself.
const doubtEvery = 5 * time.Second

// direct passes on the order to stop and what times hold, and hangs up when the driver closes, the attempt is over or
// no shim of it lives.
func (a *attempt) direct(conn *shim.Conn, over <-chan struct{}) {
	defer conn.Close()
	doubt := time.NewTicker(cmp.Or(a.d.doubtEvery, doubtEvery))
	defer doubt.Stop()
	var readied chan struct{} // waited for once it is to stop
	timing := a.timing.Load()
	timing.pass(conn)
	for stopped := a.stopped; ; {
		select {
		case <-timing.over:
			timing = a.timing.Load()
			timing.pass(conn)
		case <-stopped:
			stopped, readied = nil, a.readied
			failpoint.Here("stop.before")
			stop := conn.Stop
			if a.again {
				stop = conn.Requeue
			}
			_ = stop() // if the shim is gone, the attempt is over
			failpoint.Here("stop.after")
		case <-readied:
			readied = nil
			_ = conn.Ready() // what it writes the shim sees by itself
		case <-doubt.C:
			if !a.d.o.State.Held(int32(a.job)) {
				return
			}
		case <-over:
			return
		case <-a.d.quit:
			return
		}
	}
}

// started says that the attempt is up, since when, once.
func (a *attempt) started(at stamp) {
	if !a.up {
		a.up = true
		e := sched.Event{Kind: sched.AttemptStarted, Work: a.odo.Work(), Rate: a.odo.Rate(),
			Value: float64(a.odo.Steps())}
		if !a.odo.Measured() {
			e.Code = sched.GuessedRate
		}
		a.send(report{event: e, at: at})
	}
	if a.meter == nil {
		a.meter = newTail(a, readerOf(a.order), a.report)
		a.meter.save(a.order)
		a.d.work.Go(a.meter.run)
	}
}

// end is how an attempt ended. Without a record no shim ever started it, or its shim died.
type end struct {
	over    *shim.Over
	never   bool // and never will
	ran     bool // its shim died, but not before the job ran
	perhaps bool // or perhaps before
	boot    bool // the machine was booted since
	// its folder has no trace of it, though the log says that it ran: it ran elsewhere, before a restore
	traceless bool
}

// past reports whether something says when the attempt ended, at least about.
func (x *end) past() bool { return x.over != nil || x.boot || x.traceless }

// howEnded returns how the attempt ended, nil if a shim of it lives. Asking makes sure that none starts it any more.
// What the run directory says may be the job's own word: it is believed as far as it can be so, and nothing is given on
// before finish has seen that no process is left.
func (a *attempt) howEnded() *end {
	lock, err := a.d.o.State.Begin(int32(a.job), a.number)
	alive, unknown := a.dir.Alive()
	lives := unknown == nil && alive.Lives() && a.isShim(alive.PID) // by boot id, pid, start time and what it runs
	lost := err == nil || errors.Is(err, shim.ErrTorn)              // the file of the lock, if there was one
	switch {
	case err == nil:
		_ = lock.Close()
		if !a.up && !lives {
			return &end{never: true}
		}
	case errors.Is(err, shim.ErrHeld):
		return nil
	case !errors.Is(err, shim.ErrBegun) && !lost:
		a.d.o.Log.Error("no lock", "job", a.job, "error", err)
		return nil
	}
	if lost && lives { // it will write the end
		return nil
	}
	over, known := a.record()
	switch {
	case !known:
		return nil
	case over != nil:
		return &end{over: over}
	case lives:
		return nil
	}
	return a.unrecorded(alive, unknown)
}

// record returns the record of the end as far as it is believed, nil if there is none that a shim can have written.
// known is false where one is there that cannot be read now: that does not mean that the shim died.
func (a *attempt) record() (over *shim.Over, known bool) {
	over, err := a.dir.Over()
	switch {
	case err == nil && !a.refutes(over):
		return a.believed(over), true
	case errors.Is(err, fs.ErrNotExist):
		return nil, true
	case err != nil && !errors.Is(err, shim.ErrTorn):
		a.d.o.Log.Error("the record of an end cannot be read", "job", a.job, "attempt", a.number, "error", err)
		return nil, false
	}
	a.d.o.Log.Warn("the record of an end is not what a shim writes", "job", a.job, "attempt", a.number,
		"error", err)
	return nil, true
}

// unrecorded is the end of an attempt whose shim died without a record. alive says who ran it, unless unknown is why
// that cannot be read.
func (a *attempt) unrecorded(alive *shim.Alive, unknown error) *end {
	x := &end{ran: a.up || unknown == nil}
	if unknown != nil {
		alive, unknown = a.dir.Starting()
		x.perhaps = unknown == nil
	}
	x.boot = unknown == nil && !alive.SameBoot()
	_, missing := os.Lstat(string(a.dir))
	x.traceless = a.up && errors.Is(missing, fs.ErrNotExist)
	return x
}

// isShim reports whether a process runs with the run directory as an argument, as a shim does. It is asked of one that
// the job may have named.
func (a *attempt) isShim(pid int) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && bytes.Contains(line, []byte(a.dir))
}

// refutes reports whether a record says what cannot be so: that the machine could not start what ran.
func (a *attempt) refutes(over *shim.Over) bool {
	return over.Failed != "" && (a.up || !over.Started.IsZero())
}

// believed returns what of a record can be so: its times lie between the order and now, and a failure speaks of the
// devices of the attempt alone.
func (a *attempt) believed(over *shim.Over) *shim.Over {
	o, now := *over, time.Now()
	for _, t := range []*time.Time{&o.Started, &o.StopAsked, &o.Ready, &o.Ended} {
		switch {
		case t.IsZero() && t != &o.Ended:
		case t.Before(a.since):
			*t = a.since
		case t.After(now):
			*t = now
		}
	}
	o.Suspects = slices.DeleteFunc(o.Suspects, func(name string) bool {
		return !slices.Contains(a.order.Devices, name)
	})
	return &o
}

// finish kills what is left of the attempt, whatever its record says, waits until the devices are seen free, and
// reports the end. With it goes which of them do not become so. Where there is a record, the shim has seen the group
// empty, unless the job forged it: two looks have to agree. Else the sweep, which takes more, has to find none. A shim
// that lives although its lock is free lost that to its job.
func (a *attempt) finish(x *end) {
	if x.over == nil || len(a.knownShims()) > 0 {
		a.endShims()
	}
	if x.over == nil || !a.gone() || !a.gone() {
		a.sweep()
	}
	unfree, others := a.d.release(a, a.order.Devices)
	if x.over != nil && !x.over.Started.IsZero() {
		a.started(startOf(x.over))
	}
	if a.meter != nil {
		a.meter.stop()
	}
	failpoint.Here("over")
	e := a.ending(x, a.order)
	if proof, ok := a.proof(&e, x.over); ok {
		a.report(proof)
	}
	if a.meter != nil {
		a.meter.keep()
	}
	a.send(report{event: e, at: endOf(x.over), unfree: unfree, others: others})
}

// group is the processes of the attempt.
func (a *attempt) group() *procs.Group {
	return procs.Open(a.order.Cgroup, a.order.GroupName(), a.order.Cookie()).After(a.mark)
}

// gone reports whether one look finds no process of the attempt.
func (a *attempt) gone() bool {
	left, err := a.group().Members()
	return err == nil && len(left) == 0
}

// sweep kills the processes of an attempt that is over: most have gone, and a shim that died, or a record that lies,
// has left some. It does not give up before none is left.
func (a *attempt) sweep() {
	group := a.group()
	for !isClosed(a.d.quit) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		err := group.Kill(ctx)
		cancel()
		if err == nil {
			_ = group.Close()
			if a.order.Limits != nil {
				group.Unlimit()
			}
			return
		}
		a.d.o.Log.Error("processes do not die", "job", a.job, "attempt", a.number, "error", err)
	}
}

// ending turns the end of an attempt, which had an order, into an event.
func (a *attempt) ending(x *end, o *shim.Order) sched.Event {
	e := a.verdict(x)
	if e.Kind == sched.AttemptEnded {
		a.keep(&e, o, x.over)
	}
	return e
}

// verdict says how an attempt ended, and why.
func (a *attempt) verdict(x *end) sched.Event {
	if x.never || x.boot || x.over == nil {
		return a.unreported(x)
	}
	if x.over.Failed != "" {
		if isClosed(a.stopped) {
			return sched.Event{Kind: sched.AttemptEnded, Outcome: a.why, Text: x.over.Failed}
		}
		return sched.Event{Kind: sched.StartFailed, Text: x.over.Failed, GPUs: a.d.dev.numbers(x.over.Suspects)}
	}
	e := sched.Event{Kind: sched.AttemptEnded, Code: int32(x.over.Code), Outcome: a.outcome(x.over), Text: x.over.Text}
	switch {
	case x.over.TimedOut && e.Outcome == sched.Failed:
		e.Text = task.Timeout + cmp.Or(x.over.Text, "its time was over")
	case a.forced.Load() && !x.over.Killed && e.Outcome != sched.Finished:
		e.Text = forcedText
	case x.over.Killed && (e.Outcome == sched.Finished || !x.over.Ready.IsZero()):
		e.Text = "what it left running was killed"
	case x.over.Killed:
		e.Text = fmt.Sprintf("killed: it had not ended %v after it was asked to", x.over.Grace)
	}
	return e
}

// requeued makes the end of an attempt whose job was requeued while it ran that of one which was stopped so. Often the
// job itself asks, when it is to save or its time is nearly over, and ends before it is stopped, with any exit code.
// What said that it is done is done.
func (a *attempt) requeued(j *sched.Job, e *sched.Event) {
	done := e.Outcome == sched.Finished && a.meter != nil && a.meter.done
	if e.Kind != sched.AttemptEnded || !j.Requeued || j.Cancel || done {
		return
	}
	if e.Outcome == sched.Failed || e.Outcome == sched.Finished {
		e.Outcome, e.Text = sched.Preempted, ""
	}
}

// unreported is the verdict on an attempt whose end no shim reported.
func (a *attempt) unreported(x *end) sched.Event {
	stopped := isClosed(a.stopped)
	switch {
	case x.never && !stopped && a.noShim != nil:
		return sched.Event{Kind: sched.StartFailed, Text: a.noShim.Error()}
	case x.never && !stopped:
		return sched.Event{Kind: sched.StartFailed, Text: "no shim could be started: see " +
			filepath.Join(string(a.dir), "shim.log")}
	case x.never:
		return sched.Event{Kind: sched.AttemptEnded, Outcome: a.why, Text: "stopped before it started"}
	case x.boot:
		return sched.Event{Kind: sched.AttemptEnded, Outcome: sched.NodeLost, Text: "the machine went down"}
	case x.traceless && !stopped:
		return sched.Event{Kind: sched.AttemptEnded, Outcome: sched.NodeLost,
			Text: "the folder has no trace of it, as after a restore"}
	case a.forced.Load():
		return sched.Event{Kind: sched.AttemptEnded, Outcome: a.why, Text: forcedText}
	case x.ran:
		return sched.Event{Kind: sched.AttemptEnded, Outcome: sched.NodeLost, Text: "its shim died"}
	case x.perhaps:
		return sched.Event{Kind: sched.AttemptEnded, Outcome: sched.NodeLost, Text: "its shim died, perhaps before " +
			"the job ran"}
	case stopped:
		return sched.Event{Kind: sched.AttemptEnded, Outcome: a.why, Text: "its shim died before the job ran"}
	}
	// tried again after a rest: it may be for want of something
	return sched.Event{Kind: sched.StartFailed,
		Text: "its shim died before the job ran: see " + filepath.Join(string(a.dir), "shim.log")}
}

// outcome says what the end of a job's process means. The exit code alone does not say: of a job that was asked to stop
// it may be anything. It has finished all the same if it said so in its last words.
func (a *attempt) outcome(over *shim.Over) sched.Outcome {
	finished := over.Code == 0 && (!over.Stopped || a.meter != nil && a.meter.done)
	switch {
	case finished:
		return sched.Finished
	case over.TimedOut && !(isClosed(a.stopped) && a.why == sched.Cancelled):
		return sched.Failed
	case (over.Stopped || a.forced.Load()) && isClosed(a.stopped):
		return a.why
	case over.Stopped: // by a driver of whose reason nothing is known here
		return sched.Preempted
	}
	return sched.Failed
}
