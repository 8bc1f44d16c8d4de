package local

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/sched"
)

// patience is how long a test waits for what must come, on however busy a machine.
const patience = 60 * time.Second

// hand plays the engine's part by hand: it drives a driver and keeps what that reports.
type hand struct {
	*testing.T
	d      *Driver
	box    *host.Mailbox
	desk   *host.Desk
	view   sched.View
	events []sched.Event
}

// take syncs a driver with what the log knows and lets go of it at the end of the test.
func take(t *testing.T, d *Driver, v sched.View) *hand {
	t.Helper()
	h := &hand{T: t, d: d, box: host.NewMailbox(), view: v}
	h.desk = host.NewDesk(h.box, d, d.o.Origin)
	events, err := h.desk.Sync(t.Context(), &h.view)
	if err != nil {
		d.Close()
		t.Fatal(err)
	}
	h.keep(events)
	return h
}

// keep keeps what is reported, and has the View show when it is and which jobs there are.
func (h *hand) keep(events []sched.Event) {
	for _, e := range events {
		h.view.Now = max(h.view.Now, e.Time)
		if e.Kind == sched.JobArrived {
			h.view.Jobs = append(h.view.Jobs, sched.Job{Spec: e.Spec, State: sched.Waiting})
		}
		if e.Kind == sched.Ticked {
			continue
		}
		e.GPUs = append([]sched.GPUID(nil), e.GPUs...)
		h.events = append(h.events, e)
	}
}

// apply gives orders.
func (h *hand) apply(actions ...sched.Action) {
	h.Helper()
	if err := h.d.Apply(h.Context(), sched.Plan{Actions: actions}); err != nil {
		h.Fatal(err)
	}
}

// start is the order to start attempt n of job j on gpus.
func start(j sched.JobID, n int32, gpus ...sched.GPUID) sched.Action {
	return sched.Action{Kind: sched.Start, Job: j, Attempt: n, GPUs: gpus}
}

// stop is the order to stop it.
func stop(j sched.JobID, n int32) sched.Action {
	return sched.Action{Kind: sched.Stop, Job: j, Attempt: n, Why: sched.Preempted}
}

// find returns the first report of a kind about a job, nil if none came yet.
func (h *hand) find(k sched.EventKind, j sched.JobID) *sched.Event {
	for i := range h.events {
		if e := &h.events[i]; e.Kind == k && e.Job == j {
			return e
		}
	}
	return nil
}

// await returns that report once it comes.
func (h *hand) await(k sched.EventKind, j sched.JobID) sched.Event {
	h.Helper()
	h.until(fmt.Sprintf("%v of job %d", k, j), func() bool { return h.find(k, j) != nil })
	return *h.find(k, j)
}

// end returns how the attempt of a job ended, once it has.
func (h *hand) end(j sched.JobID, want sched.Outcome) sched.Event {
	h.Helper()
	e := h.await(sched.AttemptEnded, j)
	if e.Outcome != want {
		h.Fatalf("job %d ended as %v, code %d, %q, want %v", j, e.Outcome, e.Code, e.Text, want)
	}
	return e
}

// until asks for events until done holds.
func (h *hand) until(what string, done func() bool) {
	h.Helper()
	for deadline := time.Now().Add(patience); !done(); {
		if time.Now().After(deadline) {
			h.Fatalf("%s does not come; had %v", what, h.events)
		}
		events, err := h.desk.Next(h.Context(), h.view.Now.Add(100*time.Millisecond))
		if err != nil {
			h.Fatalf("%s: %v", what, err)
		}
		h.keep(events)
	}
}

// arrivals waits until n jobs have arrived.
func (h *hand) arrivals(n int) {
	h.Helper()
	h.until("arrival", func() bool { return len(h.view.Jobs) >= n })
}

// outputHas waits for a job to write text, whatever the driver hears meanwhile.
func (h *hand) outputHas(j int32, n int32, text string) {
	h.Helper()
	h.until(fmt.Sprintf("job %d writing %q", j, text), func() bool { return strings.Contains(h.output(j, n), text) })
}

func (h *hand) output(j, n int32) string {
	b, _ := os.ReadFile(h.d.o.State.RunDir(j, n).Output())
	return string(b)
}

// waitFor waits for something that no one reports.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s does not come", what)
		}
	}
}

// marks numbers the processes of tests.
var marks atomic.Int64

// newMark returns a time to sleep that no other job on the machine asks for: its processes are known by it.
func newMark() string { return fmt.Sprintf("300.%07d%05d", os.Getpid(), marks.Add(1)) }

// survivors returns the processes that have a mark in their command, zombies not counted.
func survivors(t *testing.T, mark string) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Error(err)
	}
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil && bytes.Contains(b, []byte(mark)) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// none fails the test if processes of a mark are left.
func none(t *testing.T, mark string) {
	t.Helper()
	if pids := survivors(t, mark); len(pids) > 0 {
		t.Errorf("processes %v survived", pids)
	}
}

// overOf reads how an attempt ended.
func overOf(t *testing.T, dir string, j, n int32) *shim.Over {
	t.Helper()
	over, err := shim.State(dir).RunDir(j, n).Over()
	if err != nil {
		t.Fatal(err)
	}
	return over
}
