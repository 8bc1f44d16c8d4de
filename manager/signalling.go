package manager

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/procs"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/sched"
)

// sendable are the signals that a job may be sent, by name.
var sendable = map[string]syscall.Signal{"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT,
	"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "TERM": syscall.SIGTERM, "CONT": syscall.SIGCONT,
	"STOP": syscall.SIGSTOP, "KILL": syscall.SIGKILL}

// Signal sends a signal to processes of an attempt that runs.
func (s *Site) Signal(job sched.JobID, attempt int32, in api.Signal) error {
	sig, known := sendable[strings.TrimPrefix(strings.ToUpper(in.Name), "SIG")]
	if !known {
		return fmt.Errorf("%w: signal %q, want one of %s", api.ErrMalformed, in.Name,
			strings.Join(slices.Sorted(maps.Keys(sendable)), ", "))
	}
	dir := shim.State(s.m.Dir()).RunDir(int32(job), attempt)
	order, err := dir.Order()
	alive, down := dir.Alive()
	if err != nil || down != nil {
		return fmt.Errorf("%w: no process of it is up yet", api.ErrRefused)
	}
	all, err := procs.Open(order.Cgroup, order.GroupName(), order.Cookie()).Look(sig)
	if err != nil {
		return err
	}
	to, err := addressees(all, in.To, order.Env, alive.PID)
	if err != nil {
		return err
	}
	reached, err := send(to, sig)
	if reached && sig == order.SaveSignal() {
		if unnoted := dir.NoteSignal(); unnoted != nil { // the job may be asked once more as it requeues itself
			s.m.o.Log.Warn("that a job was asked to save is not noted", "job", job, "error", unnoted)
		}
	}
	return err
}

// send sends a signal to processes, and reports whether it reached one; that none lives is an error.
func send(to []procs.Member, sig syscall.Signal) (reached bool, err error) {
	alive := false
	for i := range to {
		ended, failed := to[i].Signal(sig)
		err = errors.Join(err, failed)
		alive = alive || !ended
		reached = reached || !ended && failed == nil
	}
	if !alive {
		err = fmt.Errorf("%w: no process to send it to", api.ErrRefused)
	}
	return reached, err
}

// addressees are those of a job's processes to which a signal goes, by api.Signal.To.
func addressees(all []procs.Member, to string, env []string, shimPID int) (list []procs.Member, err error) {
	byPID := make(map[int]*procs.Member)
	for i := range all {
		byPID[all[i].PID] = &all[i]
	}
	steps := slices.ContainsFunc(all, isStep)
	switch {
	case to != "" && to != "main" && to != "all":
		return nil, fmt.Errorf("%w: signal to %q, want main, all or nothing", api.ErrMalformed, to)
	case to == "" && !steps && task.IsBatch(env):
		return nil, fmt.Errorf("%w: no step of srun runs in it, to which a signal would go; want main, its script, or "+
			"all: scancel --batch or --full", api.ErrRefused)
	}
	for i := range all {
		m := &all[i]
		if to != "" || !steps || belowStep(byPID[m.Parent], byPID) {
			list = append(list, *m)
		}
	}
	if to == "main" {
		list = mainOf(all, shimPID)
	}
	return list, nil
}

// mainOf is the process that a shim started, if it lives: its first child. Those whose parent ended become its children
// too, which are younger.
func mainOf(all []procs.Member, shimPID int) (list []procs.Member) {
	for i := range all {
		if m := &all[i]; m.Parent == shimPID && (len(list) == 0 || m.Start < list[0].Start) {
			list = []procs.Member{*m}
		}
	}
	return list
}

// isStep reports whether a process runs a step, whose tasks are its children.
func isStep(m procs.Member) bool { return m.Name == "srun" }

// belowStep reports whether a process or one above it runs a step.
func belowStep(m *procs.Member, byPID map[int]*procs.Member) bool {
	for range byPID { // a process above may have ended, and its number may be used again
		if m == nil || isStep(*m) {
			return m != nil
		}
		m = byPID[m.Parent]
	}
	return false
}
