package system_test

import (
	"context"
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

// Ensure that in every system jobs hold no more processors and memory together than their node has, while GPUs are
// free, and that those that wait for these all come to their end.
func TestAdmitsCPUsAndMemory(t *testing.T) {
	for _, info := range system.Table() {
		tr := new(trace.Trace)
		for i := range 12 {
			spec := sched.JobSpec{Name: "j", User: "u", Submit: sched.Time(i) * sched.Time(time.Second),
				GPUs: sched.Rigid(1 + i%2), Model: "m", Class: "c", WallTime: 10 * time.Minute, Epochs: 10, Util: 0.4,
				GPUMemGB: 4}
			if i%3 == 0 {
				spec.CPUs = 5
			} else {
				spec.MemoryGB = 40 / float32(1+i%2)
			}
			tr.Jobs = append(tr.Jobs, trace.Job{Duration: time.Duration(60+i*20) * time.Second, Spec: spec})
		}
		c, err := cluster.Load("1x4")
		if err != nil {
			t.Fatal(err)
		}
		c.Nodes[0].CPUs, c.Nodes[0].MemoryGB, c.Nodes[0].GPUMemGB = 12, 64, 16
		d, err := sim.New(tr, c, sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		h := eventlog.Header{System: info.Name, Types: []string{"gpu"}, NodeGPUs: 4, GPUs: 4, Budget: 4}
		sys, err := system.Begin(&h, system.Knowledge{Work: tr.Oracle(), Scores: scores()}, nil)
		if err != nil {
			t.Fatalf("%s: %v", info.Name, err)
		}
		done, worst, now, at := 0, [2]float32{}, [2]float32{}, sched.Time(0)
		note := sink(func(v *sched.View, e *sched.Event) {
			if e.Kind == sched.AttemptEnded && v.Job(e.Job).State == sched.Done {
				done++
			}
			if e.Time > at { // at an instant some come before others leave
				worst, at = [2]float32{max(worst[0], now[0]), max(worst[1], now[1])}, e.Time
			}
			var cpus, memory float32
			for id := range v.Jobs {
				if j := &v.Jobs[id]; j.HoldsDevices() {
					cpus, memory = cpus+j.Spec.CPUs*float32(len(j.GPUs)), memory+j.Spec.MemoryGB*float32(len(j.GPUs))
				}
			}
			now = [2]float32{cpus, memory}
		})
		if err = engine.Run(context.Background(), engine.NewState(h), d, sys.Decider,
			engine.Options{Sinks: []eventlog.Sink{note}}); err != nil {
			t.Fatalf("%s: %v", info.Name, err)
		}
		if done != len(tr.Jobs) || worst[0] > 12 || worst[1] > 64 {
			t.Errorf("%s: %d jobs ended of %d, %v CPUs and %v GB at once, want at most 12 and 64", info.Name, done,
				len(tr.Jobs), worst[0], worst[1])
		}
	}
}
