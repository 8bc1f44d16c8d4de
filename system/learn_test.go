package system_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/memory"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/model/remaining"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
	"github.com/trainyard/trainyard/trace"
)

// listener is an estimator that counts what it hears.
type listener struct {
	remaining.Estimator
	heard int
}

func (l *listener) Observe(*sched.View, *sched.Event) { l.heard++ }

// Ensure that an estimator of work hears of every event, once, in every system.
func TestWorkIsHeardOnce(t *testing.T) {
	for _, info := range system.Table() {
		l := &listener{}
		sys, err := info.Build(system.Knowledge{Work: l, Scores: scores(), PerNode: 4, MostGPUs: 8, Budget: 6},
			key.NewSettings(nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		sys.Decider.Observe(&sched.View{ShareLimit: 1}, &sched.Event{Kind: sched.Ticked})
		if l.heard != 1 {
			t.Errorf("%s: an event is heard %d times", info.Name, l.heard)
		}
	}
}

// learningSystem returns a system that learns the work of jobs.
func learningSystem(t *testing.T, name string) system.System {
	t.Helper()
	return knowing(t, name, remaining.New())
}

func knowing(t *testing.T, name string, work sched.Remainer) system.System {
	t.Helper()
	info, err := system.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	sys, err := info.Build(system.Knowledge{Work: work, Scores: scores(), PerNode: 4, MostGPUs: 8},
		key.NewSettings(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	return sys
}

// simulate simulates a system on two nodes of four GPUs, and returns its figures and its log.
func simulate(t *testing.T, name string, sys system.System, tr *trace.Trace) (metrics.Result, []byte) {
	t.Helper()
	c, err := cluster.Load("2x4")
	if err != nil {
		t.Fatal(err)
	}
	d, err := sim.New(tr, c, sim.Options{Runtime: sim.Runtime{Restart: 62 * time.Second, Report: 5 * time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	h := eventlog.Header{System: name, ShareLimit: sys.ShareLimit}
	rec, w := metrics.NewRecorder(len(tr.Jobs)), eventlog.NewWriter(&b, h)
	if err := engine.Run(context.Background(), engine.NewState(h), d, sys.Decider,
		engine.Options{Sinks: []eventlog.Sink{rec, w}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return rec.Result(name), b.Bytes()
}

// Ensure that systems which need the work of jobs run on what they learn of it, that a new one decides the same again,
// and also if it is saved and loaded into another between any two instants.
func TestLearnedWorkIsRemembered(t *testing.T) {
	for _, name := range []string{"fifo-easy", "sjf", "srtf", "srsf", "pal", "eaco", "afs-l", "optimus"} {
		result, log := simulate(t, name, learningSystem(t, name), small())
		if result.Finished != 60 {
			t.Errorf("%s: %d jobs finish, want 60", name, result.Finished)
		}
		r, err := eventlog.NewReader(bytes.NewReader(log), name)
		if err != nil {
			t.Fatal(err)
		}
		o := engine.ReplayOptions{Swap: func(_ uint64, v *sched.View, dec sched.Decider) (sched.Decider, error) {
			next := learningSystem(t, name).Decider
			return next, memory.Save(v, dec).Load(v, next)
		}}
		if err := engine.Replay(context.Background(), r.Header(), r.Records(), learningSystem(t, name).Decider,
			o); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Ensure that what is learned is worth something where models separate long jobs from short ones: shortest first by it
// saves at least half of what it would save by an oracle, over arrival.
func TestLearnedWorkPays(t *testing.T) {
	tr := small()
	for i := range tr.Jobs {
		tr.Jobs[i].Spec.Model = "quick"
		if tr.Jobs[i].Duration > 1000*time.Second {
			tr.Jobs[i].Spec.Model = "slow"
		}
	}
	fifo, _ := simulate(t, "fifo-skip", learningSystem(t, "fifo-skip"), tr)
	learned, _ := simulate(t, "srtf", learningSystem(t, "srtf"), tr)
	oracle, _ := simulate(t, "srtf", knowing(t, "srtf", tr.Oracle()), tr)
	if fifo.AvgJCT-learned.AvgJCT < (fifo.AvgJCT-oracle.AvgJCT)/2 {
		t.Errorf("srtf: %v s on average by what it learns, %v by an oracle, fifo-skip %v", learned.AvgJCT,
			oracle.AvgJCT, fifo.AvgJCT)
	}
}
