package local

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
)

// world is an engine at work on a driver.
type world struct {
	*testing.T
	dir   string
	d     *Driver
	state *engine.State
	over  chan error
	box   *host.Mailbox
	done  chan struct{} // closed when the engine is no longer at work

	mu     sync.Mutex
	log    []sched.Event
	news   chan struct{}                         // closed at the next event
	hooks  []func(v *sched.View, e *sched.Event) // called by the loop after each fold
	cancel context.CancelFunc
}

// newWorld has an engine drive a driver of n slots by the decisions of dec. Hooks see every event as it is logged.
func newWorld(t *testing.T, dec sched.Decider, n int, jobs []Arrival,
	hooks ...func(v *sched.View, e *sched.Event)) *world {
	t.Helper()
	return newWorldIn(t, folder(t), dec, n, jobs, hooks...)
}

func newWorldIn(t *testing.T, dir string, dec sched.Decider, n int, jobs []Arrival,
	hooks ...func(v *sched.View, e *sched.Event)) *world {
	t.Helper()
	w := newIdle(t, dir)
	w.hooks = hooks
	w.start(dec, open(t, dir, 1, n, jobs...))
	return w
}

// newIdle returns a world in which no one is at work yet.
func newIdle(t *testing.T, dir string) *world {
	return &world{T: t, dir: dir, state: engine.NewState(eventlog.Header{}), box: host.NewMailbox(),
		news: make(chan struct{})}
}

// run has the engine go on with the state there is. Its driver is d, or what is wrapped around it.
func (w *world) run(dec sched.Decider, d *Driver, wrapped sched.Driver) {
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	w.d, w.cancel, w.over = d, cancel, over
	if wrapped == nil {
		wrapped = d
	}
	done := make(chan struct{})
	w.done = done
	desk := host.NewDesk(w.box, wrapped, d.o.Origin)
	go func() {
		defer close(done)
		over <- engine.Run(ctx, w.state, desk, dec, engine.Options{Sinks: []eventlog.Sink{w}})
	}()
}

// start runs to the end of the test at most.
func (w *world) start(dec sched.Decider, d *Driver) {
	w.run(dec, d, nil)
	w.Cleanup(func() { _ = w.leave() })
}

// leave ends the run, if it has not ended, as the end of a manager does, and returns why it did. To leave twice is to
// leave once.
func (w *world) leave() error {
	if w.d == nil {
		return nil
	}
	w.cancel()
	err := <-w.over
	w.d.Close()
	w.d = nil
	return err
}

// finish waits until all is done.
func (w *world) finish() {
	w.Helper()
	select {
	case err := <-w.over:
		w.over <- err
		if err != nil {
			w.Fatal(err)
		}
	case <-time.After(2 * patience):
		w.Fatalf("not done in time: %v", w.events())
	}
}

// Log keeps an event.
func (w *world) Log(v *sched.View, e *sched.Event) {
	kept := *e
	kept.GPUs, kept.Target, kept.Spec = slices.Clone(e.GPUs), nil, nil
	w.mu.Lock()
	w.log = append(w.log, kept)
	close(w.news)
	w.news = make(chan struct{})
	w.mu.Unlock()
	for _, hook := range w.hooks {
		hook(v, e)
	}
}

func (w *world) events() []sched.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.log)
}

// all returns the events of a kind about a job so far.
func (w *world) all(k sched.EventKind, j sched.JobID) (list []sched.Event) {
	for _, e := range w.events() {
		if e.Kind == k && e.Job == j {
			list = append(list, e)
		}
	}
	return list
}

// await returns the n-th event of a kind about a job, from 1, once it is logged.
func (w *world) await(k sched.EventKind, j sched.JobID, n int) sched.Event {
	w.Helper()
	timeout := time.After(patience)
	for {
		w.mu.Lock()
		news := w.news
		w.mu.Unlock()
		if list := w.all(k, j); len(list) >= n {
			return list[n-1]
		}
		select {
		case <-news:
		case <-timeout:
			w.Fatalf("%v of job %d does not come: %v", k, j, w.events())
		}
	}
}

// jobs are shell scripts of one slot each.
func jobs(t *testing.T, grace time.Duration, scripts ...string) (list []Arrival, marks []string) {
	t.Helper()
	for _, s := range scripts {
		a, mark := jobOf(t, s, grace)
		list, marks = append(list, a), append(marks, mark)
	}
	return list, marks
}

// fifo gives jobs the slots in order of arrival.
func fifo(t *testing.T) sched.Decider {
	t.Helper()
	info, err := system.Named("fifo")
	if err != nil {
		t.Fatal(err)
	}
	sys, err := info.Build(system.Knowledge{}, key.NewSettings(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	return sys.Decider
}

// decide is a Decider without a memory.
type decide func(v *sched.View, d *sched.Desired)

var _ sched.Decider = decide(nil)

func (decide) Observe(*sched.View, *sched.Event)        {}
func (f decide) Decide(v *sched.View, d *sched.Desired) { f(v, d) }
func (decide) SaveJob(_ sched.JobID, b []byte) []byte   { return b }
func (decide) Format() string                           { return "decide/1" }
func (decide) SaveRest(b []byte) []byte                 { return b }
func (decide) LoadJob(sched.JobID, []byte) error        { return nil }
func (decide) LoadRest([]byte) error                    { return nil }

// reign is what a shim wrote about an attempt on a device.
type reign struct {
	attempt    string
	from, till time.Time
}

// noOverlap reads what the shims of a folder wrote and fails the test if a device or a job was ever held twice.
func noOverlap(t *testing.T, dir string) {
	t.Helper()
	orders, err := filepath.Glob(filepath.Join(dir, "jobs", "*", "*", "order.json"))
	if err != nil {
		t.Error(err)
	}
	held := make(map[string][]reign)
	for _, path := range orders {
		run := shim.RunDir(filepath.Dir(path))
		o, err := run.Order()
		if err != nil {
			t.Error(err)
			continue
		}
		alive, err := run.Alive()
		if errors.Is(err, os.ErrNotExist) {
			continue // it never ran
		}
		over, err2 := run.Over()
		if err = errors.Join(err, err2); err != nil {
			t.Errorf("%s: %v", run, err)
			continue
		}
		for _, name := range append(o.Devices, filepath.Dir(string(run))) {
			held[name] = append(held[name], reign{string(run), alive.At, over.Ended})
		}
	}
	for name, list := range held {
		slices.SortFunc(list, func(a, b reign) int { return a.from.Compare(b.from) })
		for i := range list[1:] {
			if list[i+1].from.Before(list[i].till) {
				t.Errorf("%s: %v and %v at once", name, list[i], list[i+1])
			}
		}
	}
}

// devicesOf returns what an attempt was given.
func devicesOf(t *testing.T, dir string, j, n int32) []string {
	t.Helper()
	o, err := shim.State(dir).RunDir(j, n).Order()
	if err != nil {
		t.Fatal(err)
	}
	return o.Devices
}

// spoil replaces a JSON file of a run directory.
func spoil(t *testing.T, path string, x any) {
	t.Helper()
	b, err := json.Marshal(x)
	if err == nil {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
