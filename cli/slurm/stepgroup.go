package slurm

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// patience is how long tasks, and what they started, have to end once they are asked to.
const patience = 30 * time.Second

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

// settle ends what tasks that have ended left behind, as Slurm does: at once, or if it was asked to end by then.
func (s *step) settle(by time.Time) {
	const look = 20 * time.Millisecond
	for s.grouped && s.left() {
		if time.Now().After(by) {
			s.signal(syscall.SIGKILL)
			break
		}
		time.Sleep(look)
	}
	s.lines.end()
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
