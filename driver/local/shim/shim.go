package shim

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/procs"
	"github.com/trainyard/trainyard/internal/failpoint"
)

// Exit codes of a shim that has nothing to report in over.json.
const (
	exitBegun  = 3 // the attempt was started before, or the job has another one alive
	exitFenced = 4 // a later manager gives orders now
	exitBroken = 5 // the folder cannot be used
)

// killPatience is how long a shim tries to kill what will not die before it says so and goes on trying.
const killPatience = 30 * time.Second

// Main runs the attempt whose run directory is given and returns the exit code of the shim.
func Main(dir RunDir) int {
	KeepFiles()
	catchSignals()
	o, err := dir.Order()
	if err != nil {
		slog.Error("no order", "error", err)
		return exitBroken
	}
	// An old manager's order leaves no trace. But once the attempt counts as started it is started: whoever took over
	// in between has the order in its log, and finds this shim.
	if err = o.State.Fenced(o.Epoch); err != nil {
		return notBegun(err)
	}
	held, err := beginOrder(o)
	if err != nil {
		return notBegun(err)
	}
	failpoint.Here("shim.claimed")
	s := &shim{order: o, dir: dir, locks: []*os.File{held}, changed: make(chan struct{}), stop: make(chan struct{}),
		epoch: o.Epoch, times: o.Times}
	if s.record, err = openRecord(dir); err != nil {
		return s.broken(err)
	}
	if err = s.listen(); err != nil {
		return s.broken(err)
	}
	over, err := s.attempt()
	if err != nil {
		return s.broken(err)
	}
	over.Ended, over.EndedBoot = time.Now(), SinceBoot()
	failpoint.Here("shim.over.before")
	if err := s.record.end(over); err != nil {
		return s.broken(err)
	}
	failpoint.Here("shim.over.after")
	s.unlock()
	s.announce(func() { s.over = true })
	_ = s.listener.Close()
	s.clients.Wait()
	return 0
}

// notBegun says why the attempt was not started, or not by this shim.
func notBegun(err error) int {
	switch {
	case errors.Is(err, ErrFenced):
		slog.Warn("not started", "why", err)
		return exitFenced
	case errors.Is(err, ErrBegun), errors.Is(err, ErrHeld):
		slog.Info("not started", "why", err)
		return exitBegun
	}
	slog.Error("cannot start", "error", err)
	return exitBroken
}

// inherited is how long a lock may be held by no one: a process that a manager has just forked has it until it has
// become another program.
const inherited = time.Second

// beginOrder is State.Start, which waits a moment for a lock that is held.
func beginOrder(o *Order) (*os.File, error) {
	for end := time.Now().Add(inherited); ; time.Sleep(5 * time.Millisecond) {
		held, err := o.State.Begin(o.Job, o.Attempt)
		if !errors.Is(err, ErrHeld) || time.Now().After(end) {
			return held, err
		}
	}
}

// shim is the process at work.
type shim struct {
	order    *Order
	dir      RunDir
	record   *record
	locks    []*os.File // of the job, then of the devices
	listener net.Listener
	clients  sync.WaitGroup
	outputs  *outputs // nil before they are open

	mu      sync.Mutex
	epoch   int64         // of the manager that gives orders, as the file last had it
	times   task.Times    // of this attempt, counted from its start
	open    []*client     // connected, the longest silent first
	alive   *Alive        // once the job's process runs
	ready   bool          // a manager passed on that all is saved
	over    bool          // once over.json is there
	changed chan struct{} // closed when one of these changes
	stop    chan struct{} // closed when the attempt is to end

	requeued bool // the attempt is to end as its job was requeued; set before stop is closed

	terminal *terminal // nil = the job has none
}

func (s *shim) broken(err error) int {
	slog.Error("cannot go on", "error", err)
	return exitBroken
}

// attempt locks the devices, runs the job to its end and leaves no process behind.
func (s *shim) attempt() (*Over, error) {
	if busy := s.lockDevices(); busy != nil {
		return busy, nil
	}
	if err := procs.Subreap(); err != nil {
		return nil, err
	}
	group, err := newGroup(s.order)
	if err != nil {
		return &Over{Failed: err.Error()}, nil //nolint:nilerr // it is reported in the record
	}
	failpoint.Here("shim.grouped")
	over := s.order.limit(group)
	if over == nil {
		over = s.run(group)
	}
	err = sweep(group)
	if s.outputs != nil { // what was left may have written until now
		s.outputs.close()
	}
	if err != nil {
		return nil, err
	}
	if err := group.Close(); err != nil { // nothing is left in it: how the job ended is not to be lost for that
		slog.Warn("the group of processes stays", "error", err)
	}
	return over, nil
}

// newGroup makes the group of processes of an attempt. If there is one of its name, a shim made it and died, in a
// folder that is no more: what it left is ended first.
func newGroup(o *Order) (*procs.Group, error) {
	group, err := procs.New(o.Cgroup, o.GroupName(), o.Cookie())
	if !errors.Is(err, fs.ErrExist) {
		return group, err
	}
	left := procs.Open(o.Cgroup, o.GroupName(), o.Cookie())
	if err := errors.Join(sweep(left), left.Close()); err != nil {
		return nil, err
	}
	return procs.New(o.Cgroup, o.GroupName(), o.Cookie())
}

// lockDevices takes the devices, for as long as the shim lives, or says which one is not to be had.
func (s *shim) lockDevices() *Over {
	for i, name := range s.order.Devices {
		locks, err := s.order.deviceLock(i).Take(s.order.Shared)
		s.locks = append(s.locks, locks...)
		if err != nil {
			return &Over{Failed: strings.TrimSuffix(err.Error(), ": "+ErrHeld.Error()), Suspects: []string{name}}
		}
	}
	return nil
}

// unlock gives the devices and then the job back, before anybody hears that the attempt is over.
func (s *shim) unlock() {
	for _, lock := range slices.Backward(s.locks) {
		_ = lock.Close() // none if it was not to be had
	}
}

// run starts the job's process and waits until it has ended, by itself or because it was asked to.
func (s *shim) run(group *procs.Group) *Over {
	var err error
	s.outputs, err = s.order.open(s.dir, s.stop)
	switch {
	case errors.Is(err, errStopped):
		return &Over{Code: 128 + int(syscall.SIGTERM), Stopped: true, Text: err.Error()}
	case errors.Is(err, ErrOutput) && !lacking(err): // the machine lacks nothing: the job asks for the wrong file
		return &Over{Code: 126, Text: err.Error()}
	}
	if err == nil {
		err = s.order.inherited()
		s.order.findModules()
	}
	if err != nil {
		return &Over{Failed: err.Error()}
	}
	cmd := exec.Command(s.order.Command[0], s.order.Command[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.order.Dir, s.outputs.out, s.outputs.err
	var theirs *os.File
	if s.terminal, theirs, err = s.newTerminal(); err != nil {
		return &Over{Failed: err.Error()}
	}
	s.terminal.connect(cmd, theirs)
	cmd.Env = append([]string{}, s.order.Env...) // never nil, which would be our own
	cmd.Path, cmd.Err = lookPath(s.order.Command[0], s.order.Dir, s.order.Env)
	alive, err := self(s.order.Epoch)
	if err == nil {
		err = s.record.write("starting.json", alive)
	}
	if err != nil {
		return &Over{Failed: err.Error()}
	}
	over := &Over{Started: time.Now(), StartedBoot: SinceBoot(), BootID: alive.BootID}
	err = group.Start(cmd)
	if s.terminal != nil {
		_ = theirs.Close()
		s.terminal.start(s.outputs.out)
		defer s.terminal.close()
	}
	if err != nil {
		return neverRan(s.order, cmd.Path, err)
	}
	failpoint.Here("shim.started")
	alive.At, alive.AtBoot = time.Now(), SinceBoot()
	if err = s.record.write("alive.json", alive); err != nil { // no reason to end what runs
		slog.Error("the start is not on record", "error", err)
	}
	failpoint.Here("shim.alive")
	s.announce(func() { s.alive = alive })
	done := make(chan struct{})
	go reap(cmd.Process.Pid)
	go func() {
		_ = cmd.Wait() // its state says how it ended
		close(done)
	}()
	enough, capped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(capped)
		(&outputCap{file: s.outputs.kept, max: s.order.most()}).watch(enough)
	}()
	s.untilDone(group, cmd.Process.Pid, done, over)
	times, _ := s.timing()
	over.Grace = times.Grace
	close(enough)
	<-capped
	over.Code = exitCode(cmd.ProcessState)
	if over.reached && !over.Stopped && over.Code != 0 { // it ended by the warning
		over.TimedOut = true
	}
	over.Text = cmp.Or(s.order.outOfMemory(group), over.Text)
	return over
}

// untilDone waits for the end of the job's process: first for itself or an order to stop, then for the grace, then
// after SIGKILL.
func (s *shim) untilDone(group *procs.Group, main int, done <-chan struct{}, over *Over) {
	if s.wait(group, main, done, over) {
		return
	}
	over.Stopped, over.StopAsked = true, time.Now()
	s.outputs.copyNow() // what it has written before says nothing of its answer
	ask := newAsking(s, group, main, over)
	if over.TimedOut && !over.Warned.IsZero() && task.IsBatch(s.order.Env) { // as in Slurm, its signal comes once
		ask.sig = syscall.SIGTERM
	}
	if ask.untilGone(done) {
		return
	}
	over.Killed = true
	ask.left()
	if err := sweep(group); err != nil {
		slog.Error("SIGKILL", "error", err)
	}
	<-done
}

// sweep kills what is left of the group. It does not return before nothing is left, whatever it takes: the devices are
// not free until then.
func sweep(group *procs.Group) error {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), killPatience)
		err := group.Kill(ctx)
		cancel()
		if err == nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		slog.Error("processes do not die", "error", err)
	}
}

// self describes this process.
func self(epoch int64) (*Alive, error) {
	start, err := procs.StartTime(os.Getpid())
	if err != nil {
		return nil, err
	}
	boot, err := procs.BootID()
	return &Alive{PID: os.Getpid(), StartTime: start, BootID: boot, Epoch: epoch, At: time.Now()}, err
}

// SameBoot reports whether the machine has run ever since.
func (a *Alive) SameBoot() bool {
	boot, err := procs.BootID()
	return err == nil && boot == a.BootID
}

// Lives reports whether the process that a is about is still there.
func (a *Alive) Lives() bool {
	start, err := procs.StartTime(a.PID)
	return err == nil && start == a.StartTime && a.SameBoot()
}

// shortages are the errors of a start for which the job cannot be blamed.
var shortages = []error{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.ENOSPC, syscall.EBUSY,
	syscall.ENODEV, syscall.EIO}

// lacking reports whether the machine lacks something.
func lacking(err error) bool {
	return slices.ContainsFunc(shortages, func(e error) bool { return errors.Is(err, e) })
}

// neverRan is the end of an attempt whose command cannot be run. If the machine lacks nothing, that is the job's own
// fault: the codes are those of shells.
func neverRan(o *Order, path string, err error) *Over {
	if lacking(err) {
		return &Over{Failed: err.Error()}
	}
	over := &Over{Code: 126, Text: unrunnable(o, path, err)}
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		over.Code = 127
	}
	return over
}

func exitCode(p *os.ProcessState) int {
	if w, ok := p.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return p.ExitCode()
}
