package pal_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/place"
	"github.com/trainyard/trainyard/system/baseline"
	"github.com/trainyard/trainyard/system/pal"
	"github.com/trainyard/trainyard/trace"
)

// forgetful is PAL with observed classes that is saved and loaded into a new one between any two instants.
type forgetful struct {
	sched.Decider
	make     func() (sched.Decider, *place.Observed)
	seen     *place.Observed
	reported map[string]int // class of each model at the last decision
	keep     bool           // it forgets nothing after all
	due      bool
	v        *sched.View
}

func (f *forgetful) Observe(v *sched.View, e *sched.Event) {
	f.v = v
	f.Decider.Observe(v, e)
}

func (f *forgetful) Decide(v *sched.View, d *sched.Desired) {
	f.Decider.Decide(v, d)
	f.due = true
	for j := range v.Jobs {
		f.reported[v.Jobs[j].Spec.Model] = f.seen.Class(v, sched.JobID(j))
	}
}

// Log, BeginBatch and EndBatch make it a sink that hears when an instant is over.
func (f *forgetful) Log(*sched.View, *sched.Event) {}
func (f *forgetful) EndBatch() error               { return nil }
func (f *forgetful) BeginBatch() {
	if f.keep || !f.due {
		return
	}
	next, seen := f.make()
	for j := range f.v.Jobs {
		if err := next.LoadJob(sched.JobID(j), f.SaveJob(sched.JobID(j), nil)); err != nil {
			panic(err)
		}
	}
	if err := next.LoadRest(f.SaveRest(nil)); err != nil {
		panic(err)
	}
	next.(sched.Resumer).Resume(f.v)
	f.Decider, f.seen, f.due = next, seen, false
}

// Ensure that the classes of models come to be known from how fast their jobs run, and that a restart between any two
// instants loses nothing of it.
func TestClassesAreObserved(t *testing.T) {
	scores := &variability.Scores{Name: "s", GPUs: make([]variability.GPU, 8), Classes: []string{"A", "B"},
		PM: [][]float64{
			{1, 1.1, .9, 1.3, 1, 1.2, 1.4, .95}, {1, 1.02, .99, 1, 1.05, 1.04, 1, 1}}}
	class := pal.Class(scores.Classes, nil)
	tr := &trace.Trace{}
	for i := range 60 {
		j := job(fmt.Sprint(i), []string{"A", "B"}[i%2], 200*i, 1+i%3/2, 1000+37*i%2000)
		j.Spec.Model = []string{"dense", "sparse"}[i%2]
		tr.Jobs = append(tr.Jobs, j)
	}
	run := func(keep bool) (string, map[string]int) {
		c, err := cluster.Load("4x2")
		if err != nil {
			t.Fatal(err)
		}
		d, err := sim.New(tr, c, sim.Options{Runtime: sim.Runtime{Restart: 62 * time.Second,
			Slowdown: func(_ *sched.View, j *trace.Job, gpus []sched.GPUID, _, _ int) float64 {
				x := 0.0
				for _, g := range gpus {
					x = max(x, scores.PM[class(&j.Spec)][g])
				}
				return x
			}}})
		if err != nil {
			t.Fatal(err)
		}
		f := &forgetful{keep: keep, reported: map[string]int{}, make: func() (sched.Decider, *place.Observed) {
			seen := place.NewObserved(scores)
			k := pal.Beliefs{Scores: place.NewScores(variability.Rule{}.All(scores), seen.Class),
				Penalty: place.TwoLevel(1.7), Work: tr.Oracle(), Observed: seen}
			return pal.PAL(baseline.FIFO(nil), k, pal.Options{}).Decider(), seen
		}}
		f.Decider, f.seen = f.make()
		var h eventlog.Hash
		if err := engine.Run(context.Background(), engine.NewState(eventlog.Header{}), d, f,
			engine.Options{Sinks: []eventlog.Sink{f, &h}}); err != nil {
			t.Fatal(err)
		}
		return h.Sum(), f.reported
	}
	kept, reported := run(true)
	if reported["dense"] != 0 || reported["sparse"] != 1 {
		t.Errorf("said %v, want dense 0, sparse 1", reported)
	}
	if lost, _ := run(false); lost != kept {
		t.Errorf("saved and loaded all along the events differ")
	}
}
