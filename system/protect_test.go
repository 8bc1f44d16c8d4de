package system_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/model/restart"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
	"github.com/trainyard/trainyard/trace"
)

// Ensure that no attempt is stopped before it has run for five minutes, or ten times what a restart costs, and no job
// more often in an hour than allowed, in every system that takes the keys.
func TestRailsHold(t *testing.T) {
	for _, cost := range []time.Duration{10 * time.Second, 62 * time.Second} {
		least := max(5*time.Minute, 10*cost)
		for _, info := range system.Table() {
			if info.Stages != nil {
				settings := map[string]string{"min_run": "auto", "preempt_limit": "2",
					"restart_overhead": fmt.Sprint(cost.Seconds()), "quantum": "120"}
				railed(t, &info, small(), settings, cost, rails{least, 2})
			}
		}
	}
}

// Promise 16: real jobs lose nothing to thrash. Under what is the default for them no system stops a job before it has
// run for five minutes, nor more than six times in an hour, and each attempt gets on, however many short jobs come that
// would go first. (manager/scenario has the work that is lost by a preemption.)
func TestPromise16NoThrash(t *testing.T) {
	adversaries := trace.Generate(trace.Generator{Seed: 16, Jobs: 500, Load: 1.2, GPUs: 8,
		Models: []string{"vgg16", "resnet50"}, Users: 3,
		Mix: []trace.Width{{GPUs: 1, Share: .6}, {GPUs: 4, Share: .3}, {GPUs: 8, Share: .1}},
		Durations: trace.Lognormal{Parts: []trace.Part{{Weight: .96, Mu: 4, Sigma: .5},
			{Weight: .04, Mu: 10.5, Sigma: .3}}, Max: 80000}})
	for i := range adversaries.Jobs { // else none of them may be stopped
		adversaries.Jobs[i].Spec.Saves = true
	}
	preempting, stops := 0, 0
	for _, info := range system.Table() {
		if info.Stages == nil {
			continue
		}
		settings, err := system.LiveDefaults(info.Name, nil)
		if err != nil {
			t.Fatal(err)
		}
		n := railed(t, &info, adversaries, settings, 30*time.Second,
			rails{5 * time.Minute, restart.DefaultRails.PerHour})
		if stops += n; n > 0 {
			preempting++
		}
	}
	t.Logf("%d systems stopped jobs %d times", preempting, stops)
	if preempting < 12 {
		t.Errorf("%d systems stopped a job, want those that preempt: 12 or more", preempting)
	}
}

// rails are what must hold of each job: an attempt runs for so long at least, and is stopped so often in an hour at
// most.
type rails struct {
	run     time.Duration
	perHour int
}

// railed simulates a system on 2x4 GPUs where a restart costs so much, checks that the rails hold and that each attempt
// which is stopped has got on, and returns how many were.
func railed(t *testing.T, info *system.Info, tr *trace.Trace, settings map[string]string, cost time.Duration,
	r rails) (stops int) {
	t.Helper()
	sys, err := build(info, tr, nil, settings)
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Load("2x4")
	if err != nil {
		t.Fatal(err)
	}
	d, err := sim.New(tr, c, sim.Options{Runtime: sim.Runtime{Restart: cost}})
	if err != nil {
		t.Fatal(err)
	}
	stopped, work := make(map[sched.JobID][]sched.Time), make(map[sched.JobID]time.Duration)
	check := sink(func(v *sched.View, e *sched.Event) {
		if e.Kind == sched.AttemptEnded && e.Outcome == sched.Preempted {
			if e.Work <= work[e.Job] {
				t.Fatalf("%s: job %d is stopped at %v with work %v, and started with %v", info.Name, e.Job, e.Time,
					e.Work, work[e.Job])
			}
			work[e.Job] = e.Work
		}
		if e.Kind != sched.Ordered || sched.ActionKind(e.Code) != sched.Stop {
			return
		}
		stops++
		if up := e.Time.Sub(v.Jobs[e.Job].LastStart); up < r.run {
			t.Fatalf("%s: job %d is stopped at %v after %v, want at least %v", info.Name, e.Job, e.Time, up, r.run)
		}
		stopped[e.Job] = append(stopped[e.Job], e.Time)
		s := stopped[e.Job]
		if n := len(s); n > r.perHour && e.Time.Sub(s[n-1-r.perHour]) < time.Hour {
			t.Fatalf("%s: job %d is stopped at %v, want at most %d times an hour", info.Name, e.Job, s[n-1-r.perHour:],
				r.perHour)
		}
	})
	if err := engine.Run(context.Background(), engine.NewState(eventlog.Header{ShareLimit: sys.ShareLimit}), d,
		sys.Decider, engine.Options{Sinks: []eventlog.Sink{check}}); err != nil {
		t.Fatal(err)
	}
	return stops
}

// restarts simulates a system that believes so much of what restarts cost, which is a minute, and counts how often
// attempts are stopped.
func restarts(t *testing.T, name string, k system.Knowledge, settings map[string]string) (n int) {
	t.Helper()
	info, err := system.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	tr := small()
	k.Work, k.Scores, k.PerNode, k.MostGPUs = tr.Oracle(), scores(), 4, 8
	sys, err := info.Build(k, key.NewSettings(settings), nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Load("2x4")
	if err != nil {
		t.Fatal(err)
	}
	d, err := sim.New(tr, c, sim.Options{Runtime: sim.Runtime{Restart: time.Minute, RestartAtFirst: true,
		Report: 5 * time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	count := sink(func(_ *sched.View, e *sched.Event) {
		if e.Kind == sched.Ordered && sched.ActionKind(e.Code) == sched.Stop {
			n++
		}
	})
	if err := engine.Run(context.Background(), engine.NewState(eventlog.Header{}), d, sys.Decider,
		engine.Options{Sinks: []eventlog.Sink{count}}); err != nil {
		t.Fatal(err)
	}
	return n
}

// Ensure that systems which weigh restarts do so by what is known of them, and by the key where that is given.
func TestRestartsAreWeighed(t *testing.T) {
	costing := func(d time.Duration) system.Knowledge {
		return system.Knowledge{Restart: func(string) time.Duration { return d }}
	}
	for _, name := range []string{"elastic", "pollux", "pal"} {
		cheap, dear := restarts(t, name, costing(time.Second), nil), restarts(t, name, costing(59*time.Minute), nil)
		if dear >= cheap {
			t.Errorf("%s: %d restarts where one is taken for an hour, %d where for a second: want fewer", name, dear,
				cheap)
		}
		if reported := restarts(t, name, costing(59*time.Minute),
			map[string]string{"restart_overhead": "1"}); reported != cheap {
			t.Errorf("%s: %d restarts by the key, want %d", name, reported, cheap)
		}
	}
}

// Ensure that what restarts cost is learned as it is, along with any system.
func TestRestartsAreLearned(t *testing.T) {
	for _, name := range []string{"fifo", "srtf", "elastic", "pal"} {
		costs := restart.NewCosts(system.DefaultRestart)
		restarts(t, name, system.Knowledge{Learn: []sched.Observer{costs}}, nil)
		for _, model := range []string{"vgg16", "resnet50", "alexnet"} {
			if got := costs.Of(model); got < 59*time.Second || got > 61*time.Second {
				t.Errorf("%s: a restart of %s is taken for %v, want a minute", name, model, got)
			}
		}
	}
}
