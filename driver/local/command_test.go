package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/sched"
)

// waiter is a job that runs until a file is there, and takes a moment to stop.
const waiter = `trap 'sleep 0.2; exit 1' TERM; while [ ! -e GO ]; do sleep 0.05; done; exit 0`

// touch makes a file.
func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// subject is the job of these tests that users make requests about; job 0 keeps the run from ending and, in the state
// waiting, the slot from being free.
const subject = 1

// A moment is the first event at which the subject is in a state of its attempt.
var moments = map[string]func(e *sched.Event) bool{
	"waiting":  func(e *sched.Event) bool { return e.Kind == sched.JobArrived },
	"starting": func(e *sched.Event) bool { return e.Kind == sched.Ordered && e.Code == int32(sched.Start) },
	"running":  func(e *sched.Event) bool { return e.Kind == sched.AttemptStarted },
	"stopping": func(e *sched.Event) bool { return e.Kind == sched.Ordered && e.Code == int32(sched.Stop) },
}

// Ensure that a user's request is granted whatever the attempt does: each attempt ends once, and the job as it should.
func TestCommands(t *testing.T) {
	t.Parallel()
	for state, moment := range moments {
		for name, c := range map[string]sched.Command{"cancel": sched.CancelJob, "pause": sched.PauseJob,
			"requeue": sched.RequeueJob} {
			t.Run(name+" "+state, func(t *testing.T) {
				t.Parallel()
				commandAt(t, state, moment, c)
			})
		}
	}
}

func commandAt(t *testing.T, state string, moment func(*sched.Event) bool, c sched.Command) {
	dir := t.TempDir()
	keep, goOn := filepath.Join(dir, "keep"), filepath.Join(dir, "go")
	list, _ := jobs(t, 10*time.Second, strings.Replace(waiter, "GO", keep, 1), strings.Replace(waiter, "GO", goOn, 1))
	slots := 2
	if state == "waiting" {
		slots = 1
	}
	var w *world
	said, ready := false, make(chan struct{})
	w = newWorld(t, fifo(t), slots, list, func(_ *sched.View, e *sched.Event) {
		<-ready
		if e.Job != subject {
			return
		}
		if state == "stopping" && e.Kind == sched.AttemptStarted && e.Attempt == 1 {
			w.box.Command(subject, sched.RequeueJob)
		}
		if !said && moment(e) {
			said = true
			w.box.Command(subject, c)
		}
	})
	close(ready)
	w.await(sched.JobCommanded, subject, map[bool]int{true: 2, false: 1}[state == "stopping"])
	if state != "waiting" {
		w.await(sched.AttemptEnded, subject, 1)
	}
	if c == sched.PauseJob {
		w.rests()
		w.box.Command(subject, sched.ResumeJob)
	}
	touch(t, goOn)
	touch(t, keep)
	w.finish()
	w.check(state, c)
}

// rests looks for a while whether the paused subject stays where it is.
func (w *world) rests() {
	w.Helper()
	starts := func() (n int) {
		for _, e := range w.all(sched.Ordered, subject) {
			if e.Code == int32(sched.Start) {
				n++
			}
		}
		return n
	}
	before := starts()
	time.Sleep(50 * time.Millisecond) // nothing happens: there is nothing to wait for
	if starts() != before || before != len(w.all(sched.AttemptEnded, subject)) {
		w.Errorf("%d starts, then %d, of a paused job; ends %v", before, starts(), w.all(sched.AttemptEnded, subject))
	}
}

// check compares what happened with what should.
func (w *world) check(state string, c sched.Command) {
	w.Helper()
	j := &w.state.View().Jobs[subject]
	want, attempts := sched.Finished, int32(2)
	if state == "waiting" {
		attempts = 1
	}
	if c == sched.CancelJob {
		want, attempts = sched.Cancelled, attempts-1
	}
	if j.State != sched.Done || j.Outcome != want || j.Attempts != attempts {
		w.Errorf("the job is %v, %v after %d attempts, want %v after %d: %v", j.State, j.Outcome, j.Attempts, want,
			attempts, w.events())
	}
	ends := w.all(sched.AttemptEnded, subject)
	for i, e := range ends {
		last := i == len(ends)-1
		ok := e.Outcome == sched.Preempted || last && e.Outcome == want
		if e.Attempt != int32(i+1) || !ok {
			w.Errorf("end %d is %+v", i, e)
		}
	}
	if len(ends) != int(attempts) {
		w.Errorf("%d ends, want %d", len(ends), attempts)
	}
	noOverlap(w.T, w.dir)
}

// errCrash is the end of a manager between the log and the orders.
var errCrash = errors.New("crash")

// crasher is a driver whose manager dies instead of giving an order of a kind.
type crasher struct {
	*Driver
	at   sched.ActionKind
	skip sched.ActionKind // orders that it keeps to itself before
}

func (c crasher) Apply(ctx context.Context, p sched.Plan) error {
	kept := p.Actions[:0:0]
	for _, a := range p.Actions {
		switch a.Kind {
		case c.at:
			return errCrash
		case c.skip:
		default:
			kept = append(kept, a)
		}
	}
	return c.Driver.Apply(ctx, sched.Plan{Actions: kept})
}

// Ensure that a job whose start was ordered, but that no one has started, can be cancelled by the next manager, and
// that a stop that was ordered is carried out by it without the job ever having run.
func TestCancelBetweenOrderedAndBegun(t *testing.T) {
	t.Parallel()
	for name, crash := range map[string]crasher{
		"start": {at: sched.Start},
		"stop":  {at: sched.Stop, skip: sched.Start},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list, _ := jobs(t, 10*time.Second, `echo ran; exec sleep MARK`)
			dec := fifo(t)
			w := crashed(t, dec, list, crash)
			if crash.at == sched.Start {
				w.box.Command(0, sched.CancelJob)
			}
			w.start(dec, w.d)
			w.finish()
			if j := &w.state.View().Jobs[0]; j.Outcome != sched.Cancelled || j.Attempts != 1 {
				t.Errorf("%v after %d attempts, want cancelled after 1", j.Outcome, j.Attempts)
			}
			ends := w.all(sched.AttemptEnded, 0)
			if len(ends) != 1 || ends[0].Outcome != sched.Cancelled {
				t.Errorf("ends %+v, want one as cancelled", ends)
			}
			_, err := shim.State(w.dir).RunDir(0, 1).Alive()
			if crash.at == sched.Stop && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%v: it ran", err)
			}
		})
	}
}

// crashed returns a world whose first manager has died, with the driver of the second not yet at work.
func crashed(t *testing.T, dec sched.Decider, list []Arrival, crash crasher) *world {
	t.Helper()
	w := newIdle(t, folder(t))
	first := open(t, w.dir, 1, 1, list...)
	crash.Driver = first
	w.hooks = append(w.hooks, func(_ *sched.View, e *sched.Event) {
		if crash.at == sched.Stop && e.Kind == sched.Ordered && e.Code == int32(sched.Start) {
			w.box.Command(0, sched.CancelJob)
		}
	})
	w.run(dec, first, crash)
	select {
	case err := <-w.over:
		if !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
	case <-time.After(patience):
		t.Fatal("no crash")
	}
	first.Close()
	w.hooks = nil
	w.d = open(t, w.dir, 2, 1, list...)
	return w
}
