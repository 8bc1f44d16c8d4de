package slurm

import (
	"errors"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// patience is how long tasks, and what they started, have to end once another has failed, or where no grace is known.
const patience = 30 * time.Second

// grace is how long what tasks started has to save once a signal was passed on.
func grace() time.Duration {
	if n, err := strconv.Atoi(os.Getenv("TRAINYARD_GRACE_SECONDS")); err == nil {
		return time.Duration(max(n, 1)) * time.Second
	}
	return patience
}

// pass passes a signal on that was heard, and returns by when what hears it is to have ended.
func (s *step) pass(sig os.Signal) time.Time {
	s.signal(sig.(syscall.Signal))
	return time.Now().Add(grace())
}

// signal passes a signal on to the tasks that live, and to what tasks started and left in their groups.
func (s *step) signal(sig syscall.Signal) {
	for _, c := range s.tasks {
		pid := c.Process.Pid
		switch {
		case !s.grouped:
			_ = c.Process.Signal(sig) // of one that has ended it is an error
		case owns(pid, c.Process):
			_ = syscall.Kill(-pid, sig) // that no one is left is an error
		}
	}
}

// owns reports whether the group that a task leads is its own still: once the task has ended, and all that it started,
// both may have got its number.
func owns(pid int, task *os.Process) bool {
	return task.Signal(syscall.Signal(0)) == nil || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// left reports whether something lives that tasks started.
func (s *step) left() bool {
	for _, c := range s.tasks {
		if pid := c.Process.Pid; owns(pid, c.Process) && syscall.Kill(-pid, 0) == nil {
			return true
		}
	}
	return false
}

// settle ends what tasks that have ended left behind, as Slurm does: at once, or by then if it got a signal. Signals
// reach it meanwhile.
func (s *step) settle(heard <-chan os.Signal, by time.Time) {
	defer s.lines.end()
	const look = 20 * time.Millisecond
	for s.grouped && s.left() {
		select {
		case sig := <-heard:
			by = s.pass(sig)
		case <-time.After(look):
			if time.Now().After(by) {
				s.signal(syscall.SIGKILL)
				return
			}
		}
	}
}

// lines are pipes whose lines get labels.
type lines struct {
	read  []*os.File
	all   sync.WaitGroup
	ended atomic.Bool // no task is left that writes
}

// silence is how long nothing comes, once all tasks have ended, from a pipe that others have kept.
const silence = time.Second

// label returns a pipe whose lines are written to a file, with a label before each.
func (l *lines) label(to *os.File, label string) (write *os.File, err error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	l.read = append(l.read, read)
	l.all.Go(func() {
		defer read.Close()
		out := labelled{to: to, label: label}
		defer out.flush()
		block := make([]byte, 64<<10)
		for {
			n, err := read.Read(block)
			if _, bad := out.Write(block[:n]); err != nil || bad != nil {
				return
			}
			if l.ended.Load() {
				_ = read.SetReadDeadline(time.Now().Add(silence))
			}
		}
	})
	return write, nil
}

// end waits until all that was written is.
func (l *lines) end() {
	l.ended.Store(true)
	for _, read := range l.read {
		_ = read.SetReadDeadline(time.Now().Add(silence)) // that it is closed is an error
	}
	l.all.Wait()
}
