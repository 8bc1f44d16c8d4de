package system_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/internal/arena"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/trace"
)

// mixed draws jobs in bursts, with ties, of which a share says that it saves, a share loses its work, and some have a
// request of their own.
func mixed(seed uint64, jobs int) *trace.Trace {
	r := rand.New(rand.NewPCG(seed, 5))
	t := trace.Generate(trace.Generator{Seed: seed, Jobs: jobs, Load: 1.3, GPUs: 8,
		Models: []string{"vgg16", "resnet50"}, Users: 3,
		Mix: []trace.Width{{GPUs: 1, Share: .6}, {GPUs: 4, Share: .3}, {GPUs: 8, Share: .1}},
		Durations: trace.Lognormal{Parts: []trace.Part{{Weight: .8, Mu: 5, Sigma: 1}, {Weight: .2, Mu: 9, Sigma: 1}},
			Max: 40000}})
	for i := range t.Jobs {
		j := &t.Jobs[i]
		if i > 0 && r.IntN(3) == 0 {
			j.Spec.Submit = t.Jobs[i-1].Spec.Submit
		}
		j.Spec.Share, j.Spec.Epochs, j.Spec.Util, j.Spec.GPUMemGB = sched.ShareAllow, 10, .3, 4
		j.Saves = trace.Saving(r.IntN(3))
		j.Spec.Saves = j.Saves == trace.SavesWork
		if r.IntN(6) == 0 {
			j.Spec.Preempt = sched.Preemptible(r.IntN(3))
		}
		if w := j.Spec.GPUs.Want; w > 1 && r.IntN(2) == 0 {
			j.Spec.GPUs = sched.Range{Min: 1, Want: w, Max: 8}
		}
	}
	return t
}

// live runs a system with its defaults for real jobs on 2x4 GPUs that fail now and then, and has each event looked at.
func live(t *testing.T, info *system.Info, tr *trace.Trace, settings map[string]string, look sink) *engine.State {
	t.Helper()
	all, err := system.LiveDefaults(info.Name, settings)
	if err != nil {
		t.Fatal(err)
	}
	sys, err := build(info, tr, nil, all)
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Load("2x4")
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.Nodes {
		c.Nodes[i].GPUMemGB, c.Nodes[i].Sharing = 16, sched.MPS
	}
	d, err := sim.New(tr, c, sim.Options{Runtime: sim.Runtime{Restart: 30 * time.Second, RestartAtFirst: true,
		StartDelay: time.Second, StopDelay: 2 * time.Second,
		Interference: func(*trace.Job, []*trace.Job) float64 { return 1.5 },
		EpochEnd:     func(j *trace.Job, epoch int) time.Duration { return j.Duration / 10 * time.Duration(epoch) }}})
	if err != nil {
		t.Fatal(err)
	}
	state := engine.NewState(eventlog.Header{ShareLimit: sys.ShareLimit})
	if err := engine.Run(context.Background(), state, d, sys.Decider,
		engine.Options{Sinks: []eventlog.Sink{look}}); err != nil {
		t.Fatalf("%s: %v", info.Name, err)
	}
	return state
}

// Ensure that no system stops, moves or resizes a job that may not be stopped, whatever comes, and that all jobs end.
func TestUnsavedIsLeft(t *testing.T) {
	protected := 0
	for _, info := range system.Table() {
		for seed := range uint64(3) {
			held := make(map[sched.JobID][]sched.GPUID) // by jobs that may not be stopped, while they run
			state := live(t, &info, mixed(seed, 120), nil, func(v *sched.View, e *sched.Event) {
				if e.Job < 0 || int(e.Job) >= len(v.Jobs) || !e.Kind.Form().Life {
					return
				}
				j := &v.Jobs[e.Job]
				was, had := held[e.Job]
				switch {
				case e.Kind == sched.Ordered && sched.ActionKind(e.Code) == sched.Stop && had:
					t.Fatalf("%s, seed %d: job %d is stopped at %v, want it left", info.Name, seed, e.Job, e.Time)
				case e.Kind == sched.Decided && had && !arena.SameSet(was, e.GPUs):
					t.Fatalf("%s, seed %d: job %d is to have %v at %v instead of %v, want it left", info.Name, seed,
						e.Job, e.GPUs, e.Time, was)
				}
				if j.HoldsDevices() && sched.LeaveUnsaved.Protects(j) {
					if !had {
						protected++
						if n := int32(len(j.GPUs)); j.Spec.GPUs.Min < j.Spec.GPUs.Max && n != j.Spec.GPUs.Want &&
							j.Evidence == sched.NoEvidence {
							t.Fatalf("%s, seed %d: job %d started on %d GPUs, want the %d that it asks for", info.Name,
								seed, e.Job, n, j.Spec.GPUs.Want)
						}
					}
					held[e.Job] = slices.Clone(j.GPUs)
				} else {
					delete(held, e.Job)
				}
			})
			for id := range state.View().Jobs {
				if j := state.View().Jobs[id]; j.State != sched.Done {
					t.Errorf("%s, seed %d: job %d is %v at the end, want done", info.Name, seed, id, j.State)
				}
			}
		}
	}
	if protected < 1000 {
		t.Errorf("%d attempts of protected jobs, want 1000 or more", protected)
	}
}

// Ensure that with the rail no job loses more to others than twice its own work and what its starts and stops take,
// although any may be stopped at any time.
func TestLossIsBounded(t *testing.T) {
	for _, info := range system.Table() {
		if info.All().Find(system.LossRail.Name) == nil {
			continue
		}
		for seed := range uint64(3) {
			tr := mixed(seed, 120)
			for i := range tr.Jobs {
				tr.Jobs[i].Spec.Preempt = sched.AlwaysPreempt
			}
			var stops [120]int32
			state := live(t, &info, tr, map[string]string{"min_run": "0", "preempt_limit": "0"},
				func(_ *sched.View, e *sched.Event) {
					if e.Kind == sched.Ordered && sched.ActionKind(e.Code) == sched.Stop {
						stops[e.Job]++
					}
				})
			for id := range state.View().Jobs {
				j := &state.View().Jobs[id]
				overhead := time.Duration(stops[id]+1) * 33 * time.Second * time.Duration(j.Spec.GPUs.Max)
				if most := 2*tr.Jobs[id].Duration + overhead; j.Loss().Work > most {
					t.Errorf("%s, seed %d: job %d of %v lost %v in %d stops, want at most %v", info.Name, seed, id,
						tr.Jobs[id].Duration, j.Loss().Work, j.Loss().Stops, most)
				}
			}
		}
	}
}

// Ensure that a gang under a stream of narrow jobs that may not be stopped starts once those have ended that were there
// before it, and without the key after nearly all of them.
func TestGPUsAreKeptFree(t *testing.T) {
	tr := &trace.Trace{Path: "stream"}
	for i := range 200 {
		j := trace.Job{Spec: sched.JobSpec{Name: fmt.Sprint("narrow-", i), GPUs: sched.Rigid(1),
			Submit: sched.Time(i) * sched.Time(45*time.Second)}, Duration: 5 * time.Minute}
		if i == 60 {
			j.Spec.Name, j.Spec.GPUs, j.Duration = "gang", sched.Rigid(8), time.Minute
		}
		tr.Jobs = append(tr.Jobs, j)
	}
	for _, name := range []string{"las", "tiresias-las", "tiresias-gittins"} {
		info, err := system.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		var waited [2]time.Duration
		for k, value := range []string{"off", "on"} {
			state := live(t, info, tr, map[string]string{"keep_free": value}, func(*sched.View, *sched.Event) {})
			gang := &state.View().Jobs[60]
			waited[k] = gang.FirstStart.Sub(gang.Arrived)
		}
		if waited[1] > 10*time.Minute || waited[0] < 40*time.Minute {
			t.Errorf("%s: the gang waits for %v, and %v with GPUs kept free; want at least 40 and at most 10 minutes",
				name, waited[0], waited[1])
		}
	}
}

// Ensure that every system takes the key unsaved, and that it changes nothing where no job is stopped for others:
// neither what is decided, nor what is said of jobs, nor the settings with which real jobs run.
func TestAllTakeUnsaved(t *testing.T) {
	tr, staying := small(), 0
	for _, info := range system.Table() {
		if !slices.Contains(info.KeyNames(), "unsaved") {
			t.Errorf("%s does not take the key unsaved", info.Name)
		}
		header := eventlog.Header{System: info.Name, Settings: map[string]string{"unsaved": "leave"}}
		if leaves := system.Leaves(&header); (leaves == sched.StopUnsaved) != info.Stays {
			t.Errorf("%s with unsaved=leave: %v", info.Name, leaves)
		}
		if !info.Stays {
			continue
		}
		staying++
		if all, err := system.LiveDefaults(info.Name, nil); err != nil || all["unsaved"] != "" {
			t.Errorf("%s: %v, %v, want real jobs without the key", info.Name, all, err)
		}
		settings := base(&info)
		want, _ := run(t, &info, tr, settings)
		settings["unsaved"] = "leave"
		if got, _ := run(t, &info, tr, settings); got != want {
			t.Errorf("%s: unsaved=leave changes what it decides", info.Name)
		}
	}
	if staying != 6 {
		t.Errorf("%d systems stop no job for others, want 6", staying)
	}
}
