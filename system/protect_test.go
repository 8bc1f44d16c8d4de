package system_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/model/restart"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
)

// Ensure that no attempt is stopped before it has run for five minutes, or ten times what a restart costs, and no job more often
// in an hour than allowed, in every system that takes the keys.
func TestRailsHold(t *testing.T) {
	tr := small()
	for _, cost := range []time.Duration{10 * time.Second, 62 * time.Second} {
		least := max(5*time.Minute, 10*cost)
		for _, info := range system.Table() {
			settings := map[string]string{"min_run": "auto", "preempt_limit": "2", "restart_overhead": fmt.Sprint(cost.Seconds()), "quantum": "120"}
			sys, err := build(&info, tr, nil, settings)
			if err != nil {
				t.Fatal(err)
			}
			if info.Stages == nil {
				continue
			}
			c, err := cluster.Load("2x4")
			if err != nil {
				t.Fatal(err)
			}
			d, err := sim.New(tr, c, sim.Options{Runtime: sim.Runtime{Restart: cost}})
			if err != nil {
				t.Fatal(err)
			}
			stopped := make(map[sched.JobID][]sched.Time)
			check := sink(func(v *sched.View, e *sched.Event) {
				if e.Kind != sched.Ordered || sched.ActionKind(e.Code) != sched.Stop {
					return
				}
				if up := e.Time.Sub(v.Jobs[e.Job].LastStart); up < least {
					t.Fatalf("%s: job %d is stopped at %v after %v, want at least %v", info.Name, e.Job, e.Time, up, least)
				}
				stopped[e.Job] = append(stopped[e.Job], e.Time)
				s := stopped[e.Job]
				if n := len(s); n > 2 && e.Time.Sub(s[n-3]) < time.Hour {
					t.Fatalf("%s: job %d is stopped at %v, want at most twice an hour", info.Name, e.Job, s[n-3:])
				}
			})
			if err := engine.Run(context.Background(), engine.NewState(engine.Header{ShareLimit: sys.ShareLimit}), d, sys.Decider, engine.Options{Sinks: []engine.Sink{check}}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// restarts simulates a system that believes so much of what restarts cost, which is a minute, and counts how often attempts are
// stopped.
func restarts(t *testing.T, name string, k system.Knowledge, settings map[string]string) (n int) {
	t.Helper()
	info, err := system.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	tr := small()
	k.Work, k.Scores, k.PerNode, k.MostGPUs = tr.Oracle(), scores(), 4, 8
	sys, err := info.Build(k, system.NewSettings(settings), nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Load("2x4")
	if err != nil {
		t.Fatal(err)
	}
	d, err := sim.New(tr, c, sim.Options{Runtime: sim.Runtime{Restart: time.Minute, RestartAtFirst: true, Report: 5 * time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	count := sink(func(_ *sched.View, e *sched.Event) {
		if e.Kind == sched.Ordered && sched.ActionKind(e.Code) == sched.Stop {
			n++
		}
	})
	if err := engine.Run(context.Background(), engine.NewState(engine.Header{}), d, sys.Decider, engine.Options{Sinks: []engine.Sink{count}}); err != nil {
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
			t.Errorf("%s: %d restarts where one is taken for an hour, %d where for a second: want fewer", name, dear, cheap)
		}
		if told := restarts(t, name, costing(59*time.Minute), map[string]string{"restart_overhead": "1"}); told != cheap {
			t.Errorf("%s: %d restarts by the key, want %d", name, told, cheap)
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
