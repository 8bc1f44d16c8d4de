package system_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/trace"
)

// Ensure that in every system jobs that are edited as they wait, run or end, to another model, class, group or width,
// all come to their end.
func TestEditedJobsEnd(t *testing.T) {
	for _, info := range system.Table() {
		for seed := range uint64(4) {
			r := rand.New(rand.NewPCG(seed, 11))
			tr, edits := new(trace.Trace), []sched.Event(nil)
			for i := range 12 {
				at := sched.Time(r.IntN(1200)) * sched.Time(time.Second)
				spec := sched.JobSpec{Name: "j", User: "u", Submit: at, GPUs: sched.Rigid(1 + r.IntN(2)), Model: "m",
					Class: "c", WallTime: 10 * time.Minute, Epochs: 10}
				tr.Jobs = append(tr.Jobs, trace.Job{Duration: time.Duration(1+r.IntN(600)) * time.Second, Spec: spec})
				for range 2 {
					to := spec
					to.Model, to.Class, to.Group = []string{"m", "n", ""}[r.IntN(3)], []string{"c", "d"}[r.IntN(2)], "g"
					to.Share, to.Util = sched.Consent(r.IntN(3)), float32(r.IntN(3))/3
					to.CPUs, to.MemoryGB, to.GPUMemGB = float32(r.IntN(3)), float32(r.IntN(9)), float32(r.IntN(9))
					to.Epochs, to.Batch = int32(5+r.IntN(9)), sched.BatchRange{Min: 8, Max: int32(8 << r.IntN(3))}
					c := to.Change()
					c.GPUs, c.Spec = sched.Rigid(1+r.IntN(2)), &to
					edits = append(edits, sched.Event{Kind: sched.JobChanged, Job: sched.JobID(i), Change: &c,
						Time: at + sched.Time(r.IntN(900))*sched.Time(time.Second)})
				}
			}
			slices.SortStableFunc(tr.Jobs, func(a, b trace.Job) int { return int(a.Spec.Submit - b.Spec.Submit) })
			for i := range edits { // jobs are numbered as they come
				edits[i].Time = max(edits[i].Time, tr.Jobs[edits[i].Job].Spec.Submit)
			}
			slices.SortStableFunc(edits, func(a, b sched.Event) int { return int(a.Time - b.Time) })
			c, err := cluster.Load("2x2")
			if err != nil {
				t.Fatal(err)
			}
			for n := range c.Nodes {
				c.Nodes[n].CPUs, c.Nodes[n].MemoryGB, c.Nodes[n].GPUMemGB = 8, 64, 16
			}
			d, err := sim.New(tr, c, sim.Options{Inject: edits})
			if err != nil {
				t.Fatal(err)
			}
			h := eventlog.Header{System: info.Name, Types: []string{"gpu"}, NodeGPUs: 2, GPUs: 4, Budget: 4}
			sys, err := system.Begin(&h, system.Knowledge{Work: tr.Oracle(), Scores: scores()}, nil)
			if err != nil {
				t.Fatalf("%s: %v", info.Name, err)
			}
			done := 0
			note := sink(func(v *sched.View, e *sched.Event) {
				if e.Kind == sched.AttemptEnded && v.Job(e.Job).State == sched.Done {
					done++
				}
			})
			if err = engine.Run(context.Background(), engine.NewState(h), d, sys.Decider,
				engine.Options{Sinks: []eventlog.Sink{note}}); err != nil {
				t.Fatalf("%s, seed %d: %v", info.Name, seed, err)
			}
			if done != len(tr.Jobs) {
				t.Errorf("%s, seed %d: %d jobs ended, want %d", info.Name, seed, done, len(tr.Jobs))
			}
		}
	}
}
