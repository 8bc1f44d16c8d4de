package local

import (
	"cmp"
	"context"
	"strings"
	"syscall"
	"time"

	"github.com/trainyard/trainyard/driver/local/procs"
)

// A job may stop its own shim by SIGSTOP, or take away the socket at which that hears of orders. Then the shim does not
// end the attempt when it is to: the driver does.
const (
	// wakeEvery is how often it is looked whether the shim of an attempt that is to end is stopped.
	wakeEvery = 2 * time.Second
	// forceAfter is how long after its grace an attempt that was asked to end is left to its shim; and how long after
	// its last process a shim that stays stopped is left alive.
	forceAfter = 10 * time.Second
)

// forcedText says of an attempt that not its shim ended it.
const forcedText = "killed by the manager: its shim was stopped or not to be reached"

// insist sees to it that the attempt ends once it is asked to: it wakes the shim whenever that is stopped, and ends the
// attempt in its place some time after the grace. It returns when the attempt is over.
func (a *attempt) insist(over <-chan struct{}) {
	select {
	case <-a.stopped:
	case <-over:
		return
	case <-a.d.quit:
		return
	}
	tick := time.NewTicker(cmp.Or(a.d.wakeEvery, wakeEvery))
	defer tick.Stop()
	after := cmp.Or(a.d.forceAfter, forceAfter)
	began := time.Now()
	var empty time.Time // since when none of its processes is left; zero = some are
	for {
		select {
		case <-tick.C:
		case <-over:
			return
		case <-a.d.quit:
			return
		}
		if time.Since(began) < a.timing.Load().grace(a.order)+after {
			wake(a.knownShims())
			continue
		}
		shims := a.shims()
		switch {
		case !a.force(shims):
			empty = time.Time{}
		case empty.IsZero():
			empty = time.Now()
		case time.Since(empty) >= after:
			endStopped(shims)
		}
		wake(shims)
	}
}

// knownShims returns the shim of the attempt as the driver knows it or the run directory names it. The job may have
// named another in its place, of no more than its own processes.
func (a *attempt) knownShims() []procs.Member {
	pids := []int{a.spawned}
	if alive, err := a.dir.Alive(); err == nil {
		pids = append(pids, alive.PID)
	}
	return a.shims(pids...)
}

// shims returns the processes that run as a shim of the attempt: of those with the given pids, or of all where none is
// given.
func (a *attempt) shims(pids ...int) []procs.Member {
	words := a.d.o.Shim[1:]
	return procs.WithLastArgument(strings.Join(append(words[:len(words):len(words)], string(a.dir)), "\x00"), pids...)
}

// endShims ends the shims of an attempt that is over by what is in the folder, with what descends from them: a job may
// have removed their lock and their records, and stopped them. They would hold its devices for good. It does not give
// up before none is left.
func (a *attempt) endShims() {
	for pause := firstPause; !isClosed(a.d.quit); pause = min(2*pause, lastPause) {
		shims := a.shims()
		if len(shims) == 0 {
			return
		}
		group := a.group()
		group.Below(shims)
		ctx, cancel := context.WithTimeout(context.Background(), forceAfter)
		if err := group.Kill(ctx); err == nil {
			for i := range shims {
				_, _ = shims[i].Signal(syscall.SIGKILL) // if it lives on, it is found again
			}
		}
		cancel()
		time.Sleep(pause)
	}
}

// wake has the shims among some processes that are stopped go on.
func wake(shims []procs.Member) {
	for i := range shims {
		if shims[i].Stopped {
			_, _ = shims[i].Signal(syscall.SIGCONT) // if that may not be, the driver ends the attempt later
		}
	}
}

// endStopped kills the shims that are stopped still although none of their processes is left.
func endStopped(shims []procs.Member) {
	for i := range shims {
		if shims[i].Stopped {
			_, _ = shims[i].Signal(syscall.SIGKILL) // if that may not be, it is tried again
		}
	}
}

// force kills the processes of the attempt, those that descend from its shims among them, and reports whether none is
// left.
func (a *attempt) force(shims []procs.Member) (gone bool) {
	if !a.forced.Swap(true) {
		a.d.o.Log.Warn("the shim of a job does not end it, so that the manager does", "job", a.job,
			"attempt", a.number)
	}
	group := a.group()
	group.Below(shims)
	ctx, cancel := context.WithTimeout(context.Background(), forceAfter)
	defer cancel()
	if err := group.Kill(ctx); err != nil {
		a.d.o.Log.Error("processes do not die", "job", a.job, "attempt", a.number, "error", err)
		return false
	}
	return true
}
