package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/sched"
)

// endless returns a driver without end of n slots.
func endless(t *testing.T, folder string, epoch int64, n int) *Driver {
	t.Helper()
	return openWith(t, Options{State: shim.State(folder), Epoch: epoch, Devices: device.Slots(n), Endless: true})
}

// served returns a world whose driver has no end, and no jobs yet.
func served(t *testing.T, n int, hooks ...func(v *sched.View, e *sched.Event)) *world {
	t.Helper()
	w := newIdle(t, folder(t))
	w.hooks = hooks
	w.start(fifo(t), endless(t, w.dir, 1, n))
	return w
}

// again has the next manager of the folder go on.
func (w *world) again(epoch int64, n int) {
	w.Helper()
	if err := w.leave(); !errors.Is(err, context.Canceled) {
		w.Fatalf("the run ended: %v", err)
	}
	w.start(fifo(w.T), endless(w.T, w.dir, epoch, n))
}

func (w *world) submit(script string) *sched.JobSpec {
	w.Helper()
	spec := arrival(w.T, 0, 1, script).Spec
	w.box.Post(func(_ *sched.View, _ sched.JobID, now sched.Time) []sched.Event {
		spec.Submit = now
		return []sched.Event{{Kind: sched.JobArrived, Spec: &spec}}
	})
	return &spec
}

// withhold has the driver leave GPUs alone, or lifts that, and waits until that is durable.
func (w *world) withhold(on bool, gpus ...sched.GPUID) (err error) {
	<-w.box.Post(func(*sched.View, sched.JobID, sched.Time) (events []sched.Event) {
		events, err = w.d.Withhold(gpus, on)
		return events
	})
	return err
}

// drain does the same with node 0.
func (w *world) drain(on bool) error {
	<-w.box.Drain(func(*sched.View) []sched.NodeID { return []sched.NodeID{0} }, on)
	return nil
}

// Ensure that jobs submitted by many at once all arrive, each once, as the very specs given and those of one submitter
// in their order; that the run does not end when all are done, and goes on with more, after a restart as well.
func TestSubmit(t *testing.T) {
	t.Parallel()
	const submitters, each = 4, 3
	ids := make(map[*sched.JobSpec]sched.JobID) // of the loop until it is over
	w := served(t, 2, func(_ *sched.View, e *sched.Event) {
		if e.Kind == sched.JobArrived {
			ids[e.Spec] = e.Job
		}
	})
	specs := make([][]*sched.JobSpec, submitters)
	var all sync.WaitGroup
	for i := range specs {
		all.Go(func() {
			for range each {
				specs[i] = append(specs[i], w.submit("exit 0"))
			}
		})
	}
	all.Wait()
	for i := range submitters * each {
		w.await(sched.AttemptEnded, sched.JobID(i), 1)
	}
	w.submit("exit 0")
	w.await(sched.AttemptEnded, submitters*each, 1)
	w.again(2, 2)
	w.submit("exit 3")
	if e := w.await(sched.AttemptEnded, submitters*each+1, 1); e.Code != 3 {
		t.Errorf("ended %+v, want code 3", e)
	}
	if err := w.leave(); !errors.Is(err, context.Canceled) {
		t.Errorf("the run ended: %v", err)
	}
	for i, list := range specs {
		got := make([]sched.JobID, 0, each)
		for _, spec := range list {
			id, known := ids[spec]
			if !known || w.state.View().Jobs[id].Spec != spec {
				t.Fatalf("the event of a job of submitter %d points elsewhere", i)
			}
			got = append(got, id)
		}
		if !slices.IsSorted(got) {
			t.Errorf("jobs of submitter %d arrived as %v", i, got)
		}
	}
	if n := len(ids); n != submitters*each+2 {
		t.Errorf("%d arrivals, want %d", n, submitters*each+2)
	}
	noOverlap(t, w.dir)
}

func TestEndlessHasNoJobs(t *testing.T) {
	t.Parallel()
	_, err := New(Options{State: shim.State(t.TempDir()), Devices: device.Slots(1), Endless: true,
		Jobs: make([]Arrival, 2)})
	if want := "local: 2 jobs for a driver without end, want none: submit them"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// Ensure that what is asked reads the state between answers while jobs come and go, that no event comes of it, and that
// whoever gives up, or whose driver closes, gets an error.
func TestDo(t *testing.T) {
	t.Parallel()
	w := served(t, 2)
	stop := make(chan struct{})
	var asking sync.WaitGroup
	for range 2 {
		asking.Go(func() {
			for !isClosed(stop) {
				running, holders := 0, 0
				if err := w.box.Do(t.Context(), w.done,
					func(sched.Time) { running, holders = census(w.state.View()) }); err != nil || running != holders {
					t.Errorf("%v: %d GPUs of live attempts, %d holders", err, running, holders)
					return
				}
			}
		})
	}
	for range 6 {
		w.submit("exit 0")
	}
	for i := range 6 {
		w.await(sched.AttemptEnded, sched.JobID(i), 1)
	}
	close(stop)
	asking.Wait()
	before := w.version()
	for range 10 {
		if after := w.version(); after != before {
			t.Errorf("version %d, then %d: asking made events", before, after)
		}
	}
	if err := w.leave(); !errors.Is(err, context.Canceled) {
		t.Errorf("the run ended: %v", err)
	}
	never := func(sched.Time) { t.Error("called") }
	if err := w.box.Do(t.Context(), w.done, never); !errors.Is(err, host.ErrClosed) {
		t.Errorf("%v of a closed driver, want ErrClosed", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := host.NewMailbox().Do(ctx, nil, never); !errors.Is(err, context.DeadlineExceeded) { // no one reads it
		t.Errorf("%v, want the deadline", err)
	}
}

// census counts the GPUs of live attempts in two ways.
func census(v *sched.View) (live, holders int) {
	for i := range v.Jobs {
		if v.Jobs[i].HoldsDevices() {
			live += len(v.Jobs[i].GPUs)
		}
	}
	for i := range v.GPUs {
		holders += int(v.GPUs[i].Holders)
	}
	return live, holders
}

func (w *world) version() (n uint64) {
	w.Helper()
	if err := w.box.Do(w.Context(), w.done, func(sched.Time) { n = w.state.View().Version }); err != nil {
		w.Error(err)
	}
	return n
}

// Ensure that a GPU withheld, or a node that drains, is given to no new job, while the one on it goes on; that this
// holds after a restart until it is lifted; and that saying it twice is saying it once.
func TestTell(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind   sched.EventKind
		report func(w *world, off bool) error
	}{
		"gpu":  {sched.GPUChanged, func(w *world, off bool) error { return w.withhold(off, 0) }},
		"node": {sched.NodeChanged, (*world).drain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := served(t, 1)
			goOn := t.TempDir() + "/go"
			w.submit(strings.Replace(waiter, "GO", goOn, 1))
			w.await(sched.AttemptStarted, 0, 1)
			twice(t, w, c.report, true)
			w.await(c.kind, 0, 1)
			w.submit("exit 0")
			w.await(sched.JobArrived, 1, 1)
			w.again(2, 1)
			touch(t, goOn)
			if e := w.await(sched.AttemptEnded, 0, 1); e.Outcome != sched.Finished {
				t.Errorf("the job there ended as %v, want finished", e.Outcome)
			}
			w.version() // what follows from the end is decided
			if w.kinds(c.kind) != 1 || len(w.all(sched.Decided, 1)) > 0 {
				t.Errorf("want one %v and no target for job 1: %v", c.kind, w.events())
			}
			twice(t, w, c.report, false)
			if e := w.await(sched.AttemptEnded, 1, 1); e.Outcome != sched.Finished {
				t.Errorf("the next job ended as %v, want finished", e.Outcome)
			}
			if n := w.kinds(c.kind); n != 2 {
				t.Errorf("%v reported %d times, want twice", c.kind, n)
			}
		})
	}
}

// kinds counts the events of a kind.
func (w *world) kinds(k sched.EventKind) (n int) {
	for _, e := range w.events() {
		if e.Kind == k {
			n++
		}
	}
	return n
}

// twice says the same twice.
func twice(t *testing.T, w *world, report func(*world, bool) error, off bool) {
	t.Helper()
	for range 2 {
		if err := report(w, off); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTellErrors(t *testing.T) {
	t.Parallel()
	d := endless(t, t.TempDir(), 1, 2)
	defer d.Close()
	for want, g := range map[string]sched.GPUID{
		"local: GPU 2, want one of 2":  2,
		"local: GPU -1, want one of 2": -1,
	} {
		if _, err := d.Withhold([]sched.GPUID{g}, true); fmt.Sprint(err) != want {
			t.Errorf("GPU %d: %v, want %s", g, err, want)
		}
	}
}
