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
	"github.com/trainyard/trainyard/model/remaining"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/trace"
)

// Ensure that a round that is asked for is that of all parts of a system, whatever the round of its own: a job on an
// idle cluster starts at the next round, and a replay decides the same.
func TestRoundIsHeeded(t *testing.T) {
	for _, info := range system.Table() {
		if info.Stages == nil { // a system of one piece has no rounds
			continue
		}
		for _, round := range []time.Duration{7 * time.Second, 100 * time.Second} {
			tr := &trace.Trace{Jobs: []trace.Job{{Spec: sched.JobSpec{Name: "lone",
				Submit: sched.Time(3 * time.Second), GPUs: sched.Rigid(2)}, Duration: time.Hour}}}
			if started := lone(t, info.Name, tr, round); started > sched.Time(round) {
				t.Errorf("%s: a job starts at %v, want %v", info.Name, started, round)
			}
		}
	}
}

// lone returns when the only job of a trace starts under a system with a round.
func lone(t *testing.T, name string, tr *trace.Trace, round time.Duration) sched.Time {
	t.Helper()
	c, err := cluster.Load("2x4")
	if err != nil {
		t.Fatal(err)
	}
	d, err := sim.New(tr, c, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	knows := func() system.Knowledge { return system.Knowledge{Work: remaining.New(), Scores: scores()} }
	h := eventlog.Header{System: name, Round: round, Types: []string{"gpu"}, NodeGPUs: 4, GPUs: 8, Budget: 8}
	sys, err := system.Begin(&h, knows(), nil)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	started := sched.Never
	first := sink(func(v *sched.View, e *sched.Event) {
		if e.Kind == sched.AttemptStarted {
			started = min(started, v.Now)
		}
	})
	var b bytes.Buffer
	w := eventlog.NewWriter(&b, h)
	if err = engine.Run(context.Background(), engine.NewState(h), d, sys.Decider,
		engine.Options{Sinks: []eventlog.Sink{first, w}}); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err = w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := eventlog.NewReader(&b, name)
	if err != nil {
		t.Fatal(err)
	}
	again := r.Header()
	if sys, err = system.Begin(&again, knows(), nil); err != nil {
		t.Fatal(err)
	}
	if err := engine.Replay(context.Background(), again, r.Records(), sys.Decider, engine.ReplayOptions{}); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	return started
}
