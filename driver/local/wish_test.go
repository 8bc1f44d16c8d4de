package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/sched"
)

// endless returns a driver without end of n slots.
func endless(t *testing.T, folder string, epoch int64, n int) *Driver {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(Options{State: shim.State(folder), Epoch: epoch, Origin: time.Now(), Node: "here", Devices: device.Slots(n),
		Endless: true, Shim: []string{exe, "shim"}})
	if err != nil {
		t.Fatal(err)
	}
	return d
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
	w.d.Submit(func(sched.JobID, sched.Time) []*sched.JobSpec { return []*sched.JobSpec{&spec} })
	return &spec
}

func (w *world) tell(e sched.Event) {
	w.Helper()
	if _, err := w.d.Tell(e); err != nil {
		w.Fatal(err)
	}
}

// Ensure that jobs submitted by many at once all arrive, each once, as the very specs given and those of one submitter in
// their order; that the run does not end when all are done, and goes on with more, after a restart as well.
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
	_, err := New(Options{State: shim.State(t.TempDir()), Devices: device.Slots(1), Endless: true, Jobs: make([]Arrival, 2)})
	if want := "local: 2 jobs for a driver without end, want none: submit them"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// Ensure that what is asked reads the state between answers while jobs come and go, that no event comes of it, and that
// whoever gives up, or whose driver closes, is told.
func TestDo(t *testing.T) {
	t.Parallel()
	w := served(t, 2)
	stop := make(chan struct{})
	var asking sync.WaitGroup
	for range 2 {
		asking.Go(func() {
			for !isClosed(stop) {
				running, holders := 0, 0
				if err := w.d.Do(t.Context(), func() { running, holders = census(w.state.View()) }); err != nil || running != holders {
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
	d := w.d
	if err := w.leave(); !errors.Is(err, context.Canceled) {
		t.Errorf("the run ended: %v", err)
	}
	never := func() { t.Error("called") }
	if err := d.Do(t.Context(), never); !errors.Is(err, ErrClosed) {
		t.Errorf("%v of a closed driver, want ErrClosed", err)
	}
	idle := endless(t, w.dir, 2, 2) // nobody runs it
	defer idle.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := idle.Do(ctx, never); !errors.Is(err, context.DeadlineExceeded) {
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
	if err := w.d.Do(w.Context(), func() { n = w.state.View().Version }); err != nil {
		w.Error(err)
	}
	return n
}

// Ensure that a GPU withheld, or a node that drains, is given to no new job, while the one on it goes on; that this holds
// after a restart until it is lifted; and that saying it twice is saying it once.
func TestTell(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ off, on sched.Event }{
		"gpu": {sched.Event{Kind: sched.GPUChanged, Value: 0, Code: int32(sched.GPUWithheld)},
			sched.Event{Kind: sched.GPUChanged, Value: 0, Code: int32(sched.GPUInUse)}},
		"node": {sched.Event{Kind: sched.NodeChanged, Node: 0, Code: int32(sched.NodeDraining)},
			sched.Event{Kind: sched.NodeChanged, Node: 0, Code: int32(sched.NodeUp)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := served(t, 1)
			goOn := t.TempDir() + "/go"
			w.submit(strings.Replace(waiter, "GO", goOn, 1))
			w.await(sched.AttemptStarted, 0, 1)
			w.tell(c.off)
			w.tell(c.off)
			w.await(c.off.Kind, 0, 1)
			w.submit("exit 0")
			w.await(sched.JobArrived, 1, 1)
			w.again(2, 1)
			touch(t, goOn)
			if e := w.await(sched.AttemptEnded, 0, 1); e.Outcome != sched.Finished {
				t.Errorf("the job there ended as %v, want finished", e.Outcome)
			}
			w.version() // what follows from the end is decided
			if w.kinds(c.off.Kind) != 1 || len(w.all(sched.Decided, 1)) > 0 {
				t.Errorf("want one %v and no target for job 1: %v", c.off.Kind, w.events())
			}
			w.tell(c.on)
			w.tell(c.on)
			if e := w.await(sched.AttemptEnded, 1, 1); e.Outcome != sched.Finished {
				t.Errorf("the next job ended as %v, want finished", e.Outcome)
			}
			if n := w.kinds(c.off.Kind); n != 2 {
				t.Errorf("%v told %d times, want twice", c.off.Kind, n)
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

func TestTellErrors(t *testing.T) {
	t.Parallel()
	d := endless(t, t.TempDir(), 1, 2)
	defer d.Close()
	for want, e := range map[string]sched.Event{
		"local: state 3 of a node, want draining or up":               {Kind: sched.NodeChanged, Code: int32(sched.NodeDown)},
		"local: state 2 of a GPU, want withheld or in use":            {Kind: sched.GPUChanged, Code: int32(sched.GPUMissing)},
		"local: GPU 2, want one of 2":                                 {Kind: sched.GPUChanged, Value: 2},
		"local: GPU -1, want one of 2":                                {Kind: sched.GPUChanged, Value: -1},
		"local: an event \"ended\", want one about a node or a GPU":   {Kind: sched.AttemptEnded},
		"local: an event \"ordered\", want one about a node or a GPU": {Kind: sched.Ordered},
	} {
		if _, err := d.Tell(e); fmt.Sprint(err) != want {
			t.Errorf("%+v: %v, want %s", e, err, want)
		}
	}
}
