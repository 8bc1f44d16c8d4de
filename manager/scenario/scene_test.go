package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/driver/local/shim/shimtest"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/sched"
)

// trainer is the path of the Go trainer.
var trainer string

// TestMain makes this binary a shim where the driver starts it as one; else it builds the trainer before the tests.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "shim" {
		os.Exit(shim.Main(shim.RunDir(os.Args[2])))
	}
	os.Exit(tests(m))
}

func tests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "scenario")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	trainer = filepath.Join(dir, "trainer")
	if out, err := exec.Command("go", "build", "-o", trainer, "../../examples/trainer").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// scene is a manager that runs, and what its log has said so far.
type scene struct {
	*testing.T
	dir     string
	options manager.Options
	m       *manager.Manager
	stop    func() // ends the run; what runs goes on

	mu   sync.Mutex
	log  []sched.Event
	news chan struct{} // closed when log grows
}

// newScene returns a manager of devices under a system, which does not run yet: its options may be changed.
func newScene(t *testing.T, system string, devices device.Backend, settings map[string]string) *scene {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	set := map[string]string{"loss_rail": "off"} // jobs here are moved for little
	if system == "eaco" {
		set = map[string]string{}
	}
	maps.Copy(set, settings)
	s := &scene{T: t, dir: t.TempDir(), news: make(chan struct{})}
	s.options = manager.Options{Dir: filepath.Join(s.dir, "state"), Devices: devices, Place: "slots", Unit: "slot",
		System: system, Settings: set,
		Shim: []string{exe, "shim"}, Report: 200 * time.Millisecond, Sinks: []eventlog.Sink{s}}
	return s
}

// run runs the manager until the test ends, or it is stopped. In the end no job runs any more.
func (s *scene) run() *scene {
	s.Helper()
	var err error
	if s.m, err = manager.Open(s.Context(), s.options); err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.m.Run(ctx) }()
	m := s.m
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-ended, m.Close()); !errors.Is(err, context.Canceled) {
			s.Errorf("the manager ended with %v", err)
		}
	})
	stop := s.stop
	s.Cleanup(func() {
		stop()
		shimtest.EndAll(s.T, shim.State(s.options.Dir))
		if s.Failed() {
			s.show()
		}
	})
	return s
}

// show prints what attempts wrote and what was decided.
func (s *scene) show() {
	log := s.events()
	for i := range log {
		e := &log[i]
		s.Logf("%v job %d attempt %d: %v code %d outcome %v gpus %v rate %.3f value %g %s", e.Time, e.Job, e.Attempt,
			e.Kind, e.Code, e.Outcome, e.GPUs, e.Rate, e.Value, e.Text)
	}
	outputs, _ := filepath.Glob(filepath.Join(s.options.Dir, "jobs", "*", "*", "output.log"))
	for _, path := range outputs {
		b, _ := os.ReadFile(path)
		s.Logf("%s:\n%s", path, b[max(0, len(b)-1500):])
	}
}

// Log takes in an event; it is the sink of the manager.
func (s *scene) Log(_ *sched.View, e *sched.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := *e
	c.GPUs = slices.Clone(e.GPUs) // events are the engine's
	if e.Target != nil {
		target := *e.Target
		c.Target = &target
	}
	s.log = append(s.log, c)
	close(s.news)
	s.news = make(chan struct{})
}

// events returns what the log has said so far.
func (s *scene) events() []sched.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log // what is there is not changed any more
}

// submit hands jobs in, in which TRAINER is the trainer. They may be stopped for others.
func (s *scene) submit(jobs string) sched.JobID {
	s.Helper()
	file, err := jobfile.Parse([]byte(strings.ReplaceAll(jobs, "TRAINER", strconv.Quote(trainer))),
		filepath.Join(s.dir, "jobs.yaml"))
	if err != nil {
		s.Fatal(err)
	}
	for i := range file.Jobs {
		file.Jobs[i].Spec.Preempt = sched.AlwaysPreempt
	}
	first, err := s.m.Submit(s.Context(), file.Jobs)
	if err != nil {
		s.Fatal(err)
	}
	return first
}

// patience bounds a wait: what takes longer is taken not to happen.
const patience = 3 * time.Minute

// await waits until the log has an event as wanted from number from on, and returns its number.
func (s *scene) await(from int, what string, wanted func(*sched.Event) bool) int {
	s.Helper()
	timeout := time.After(patience)
	for {
		s.mu.Lock()
		events, news := s.log, s.news
		s.mu.Unlock()
		for ; from < len(events); from++ {
			if wanted(&events[from]) {
				return from
			}
		}
		select {
		case <-news:
		case <-timeout:
			s.Fatalf("the log has nothing of this: %s", what)
		}
	}
}

// started waits for the start of an attempt and returns the number of that event.
func (s *scene) started(job sched.JobID, attempt int32) int {
	s.Helper()
	return s.await(0, fmt.Sprintf("job %d attempt %d started", job, attempt), func(e *sched.Event) bool {
		return e.Kind == sched.AttemptStarted && e.Job == job && e.Attempt == attempt
	})
}

// finished waits for the end of a job, which must be a good one.
func (s *scene) finished(job sched.JobID) int {
	s.Helper()
	at := s.await(0, fmt.Sprintf("job %d done", job), func(e *sched.Event) bool {
		return e.Kind == sched.AttemptEnded && e.Job == job && e.Outcome != sched.Preempted
	})
	e := s.events()[at]
	if e.Outcome != sched.Finished {
		s.Fatalf("job %d ended: %v, code %d, %s", job, e.Outcome, e.Code, e.Text)
	}
	return at
}

// slots returns the slots of an attempt, in order.
func (s *scene) slots(job sched.JobID, attempt int32) []string {
	s.Helper()
	o, err := shim.State(s.options.Dir).RunDir(int32(job), attempt).Order()
	if err != nil {
		s.Fatal(err)
	}
	return o.Devices
}

// output returns what an attempt wrote.
func (s *scene) output(job sched.JobID, attempt int32) string {
	s.Helper()
	b, err := os.ReadFile(shim.State(s.options.Dir).RunDir(int32(job), attempt).Output())
	if err != nil {
		s.Fatal(err)
	}
	return string(b)
}

// let makes a file in the folder in which jobs run: some wait for one.
func (s *scene) let(name string) {
	s.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), nil, 0o600); err != nil {
		s.Fatal(err)
	}
}

// until is a command that ends once there is a file of that name.
func until(name string) string { return "[sh, -c, 'until [ -e " + name + " ]; do sleep 0.05; done']" }
