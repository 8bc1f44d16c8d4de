package system_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
	"github.com/trainyard/trainyard/trace"
)

// Ensure that of each system it is known whether priorities of jobs change anything, under each order of those that
// take one: where they change nothing, submit says so.
func TestLooksAtPriority(t *testing.T) {
	for _, info := range system.Table() {
		orders := []string{""}
		if keys := info.All(); keys.Find(system.Order.Name) != nil {
			orders = keys.Find(system.Order.Name).Choices
		}
		for _, order := range orders {
			settings := map[string]string{}
			if order != "" {
				settings[system.Order.Name] = order
			}
			h := eventlog.Header{System: info.Name, Settings: settings}
			reacts := !slices.Equal(finishes(t, &info, settings, 0), finishes(t, &info, settings, 3))
			if said := system.LooksAtPriority(&h); said != reacts {
				t.Errorf("%s %v: priorities change something: %v, want %v as said", info.Name, settings, reacts, said)
			}
		}
	}
}

// finishes returns when each job of twelve that come at once ends on two nodes, where every other has a priority.
func finishes(t *testing.T, info *system.Info, settings map[string]string, priority int32) []sched.Time {
	t.Helper()
	tr := &trace.Trace{}
	for i := range 12 {
		length := time.Duration(10+i%3) * time.Minute
		tr.Jobs = append(tr.Jobs, trace.Job{Duration: length, Spec: sched.JobSpec{Name: fmt.Sprint("j", i), User: "u",
			GPUs: sched.Rigid(2), Priority: int32(i%2) * priority, Model: "m", WallTime: length, Epochs: 10}})
	}
	c, err := cluster.Load("2x2")
	if err != nil {
		t.Fatal(err)
	}
	d, err := sim.New(tr, c, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	known := system.Knowledge{Work: tr.Oracle(), Scores: scores(), PerNode: 2, MostGPUs: 4, Budget: 4}
	sys, err := info.Build(known, key.NewSettings(settings), nil)
	if err != nil {
		t.Fatalf("%s: %v", info.Name, err)
	}
	state := engine.NewState(eventlog.Header{System: info.Name, ShareLimit: max(sys.ShareLimit, 1)})
	if err = engine.Run(t.Context(), state, d, sys.Decider, engine.Options{}); err != nil {
		t.Fatalf("%s: %v", info.Name, err)
	}
	var ends []sched.Time
	for i := range state.View().Jobs {
		ends = append(ends, state.View().Jobs[i].End)
	}
	return ends
}
