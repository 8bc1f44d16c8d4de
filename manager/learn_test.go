package manager_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/memory"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/trace"
)

// machine is a simulated machine of four slots, which a system of real jobs decides about.
type machine struct {
	system  string
	jobs    []trace.Job
	changes []sim.Change
	more    []eventlog.Sink
}

// header starts its log.
func (m *machine) header() eventlog.Header {
	return eventlog.Header{Origin: "2026-01-01T00:00:00Z", System: m.system, GPUs: 4, NodeGPUs: 4}
}

// run plays the jobs, which report every minute; a restart takes 30 s. It returns the jobs and the log.
func (m *machine) run(t *testing.T) ([]metrics.Job, []byte) {
	t.Helper()
	h := m.header()
	sys, err := manager.System(&h, system.Knowledge{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Load("1x4")
	if err != nil {
		t.Fatal(err)
	}
	d, err := sim.New(&trace.Trace{Jobs: m.jobs}, c,
		sim.Options{Runtime: sim.Runtime{Restart: 30 * time.Second, RestartAtFirst: true,
			Changes: m.changes, Report: time.Minute, Noise: .02, Seed: 1}})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	rec, log := metrics.NewRecorder(len(m.jobs)), eventlog.NewWriter(&b, h)
	if err := engine.Run(context.Background(), engine.NewState(h), d, sys.Decider,
		engine.Options{Sinks: append(m.more, rec, log)}); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return rec.Jobs, b.Bytes()
}

// replayed decides a log again, by a new system before every batch that is given the memory of the last.
func replayed(t *testing.T, log []byte) error {
	t.Helper()
	r, err := eventlog.NewReader(bytes.NewReader(log), "log")
	if err != nil {
		t.Fatal(err)
	}
	h := r.Header()
	if !manager.Wrote(&h) {
		t.Error("the log is not taken for one of real jobs")
	}
	fresh := func() sched.Decider {
		sys, faulty := manager.System(&h, system.Knowledge{})
		if faulty != nil {
			t.Fatal(faulty)
		}
		return sys.Decider
	}
	o := engine.ReplayOptions{Swap: func(_ uint64, v *sched.View, dec sched.Decider) (sched.Decider, error) {
		next := fresh()
		return next, memory.Save(v, dec).Load(v, next)
	}}
	return engine.Replay(context.Background(), h, r.Records(), fresh(), o)
}

func trainOn(gpus int, submit, run time.Duration) trace.Job {
	return trace.Job{Spec: sched.JobSpec{Name: fmt.Sprint(submit), Model: "m", GPUs: sched.Rigid(gpus),
		Stops:  sched.Stops{Saves: true},
		Submit: sched.Time(submit)}, Duration: run}
}

// Ensure that a job of PAL and of PM-First leaves a slot that starts to run at half speed, although nothing was known
// of the slots, that one which comes soon after does not go there while others are free, and that no one moves where
// nothing is slow.
func TestSlowSlotIsLeft(t *testing.T) {
	for _, name := range []string{"pal", "pm-first"} {
		for _, slow := range []float64{1, 2} {
			// The second comes when the first has left, and what was found has not faded yet.
			m := &machine{system: name,
				jobs: []trace.Job{trainOn(1, 0, 10*time.Hour), trainOn(1, 130*time.Minute, time.Hour)}}
			m.changes = []sim.Change{{At: sched.Time(2 * time.Hour), GPUs: []sched.GPUID{0}, Factor: slow}}
			var on [2][]sched.GPUID
			m.more = []eventlog.Sink{sinkFunc(func(v *sched.View, e *sched.Event) {
				if e.Kind == sched.AttemptStarted {
					on[e.Job] = append(on[e.Job], v.Jobs[e.Job].GPUs...)
				}
			})}
			jobs, log := m.run(t)
			if on[0][0] != 0 {
				t.Fatalf("%s: the first job starts on slot %d, want 0", name, on[0][0])
			}
			switch {
			case slow == 1 && (len(on[0]) > 1 || len(on[1]) > 1):
				t.Errorf("%s: jobs run on %v although no slot is slow", name, on)
			case slow > 1 && (len(on[0]) != 2 || len(on[1]) != 1 || on[1][0] == 0 ||
				jobs[0].Run > 10*time.Hour+15*time.Minute):
				t.Errorf("%s: jobs run on %v, the first for %v, want it to leave slot 0 within a quarter of an hour",
					name, on, jobs[0].Run)
			}
			if err := replayed(t, log); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Ensure that srtf has a short job take the place of a long one by what it has learned of their models, and that all of
// it can be decided again.
func TestShortestFirstByWhatIsLearned(t *testing.T) {
	m := &machine{system: "srtf"}
	for i := range 12 {
		j := trainOn(4, time.Duration(i)*5*time.Hour, 4*time.Hour)
		if j.Spec.Model = "long"; i%2 == 1 {
			j.Duration, j.Spec.Model = 10*time.Minute, "short"
		}
		m.jobs = append(m.jobs, j)
	}
	// Both models are known now: a short one comes while a long one runs.
	last := trainOn(4, 61*time.Hour, 10*time.Minute)
	last.Spec.Model = "short"
	long := trainOn(4, 60*time.Hour, 4*time.Hour)
	long.Spec.Model = "long"
	m.jobs = append(m.jobs, long, last)
	jobs, log := m.run(t)
	if got := jobs[13].JCT(); got > 12*time.Minute || jobs[12].Preemptions != 1 {
		t.Errorf("the short job takes %v, the long one is preempted %d times; want 12 minutes and once", got,
			jobs[12].Preemptions)
	}
	if err := replayed(t, log); err != nil {
		t.Error(err)
	}
}
