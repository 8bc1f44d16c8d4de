package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// swapper gives the one GPU to the job that does not have it.
type swapper struct{ sched.Decider }

func (swapper) Observe(*sched.View, *sched.Event) {}

func (swapper) Decide(v *sched.View, d *sched.Desired) {
	from, to := sched.JobID(0), sched.JobID(1)
	if len(v.Jobs[to].Target) > 0 {
		from, to = to, from
	}
	d.Give(from, nil, sched.Reason{Code: sched.WhyPreempted})
	d.Give(to, []sched.GPUID{0}, sched.Reason{Code: sched.WhyStarted})
}

// Ensure that a system which goes on for ever at one instant is an error that names the time and the jobs, and that a
// run which was ended ends nevertheless.
func TestUnsettledSystemIsAnError(t *testing.T) {
	at := sched.Time(0).Add(7 * time.Second)
	job := func(name string) trace.Job {
		return trace.Job{Spec: sched.JobSpec{Name: name, Submit: at, GPUs: sched.Rigid(1)}, Duration: time.Hour}
	}
	c, err := cluster.Load("1x1")
	if err != nil {
		t.Fatal(err)
	}
	run := func(ctx context.Context) error {
		d, failed := sim.New(&trace.Trace{Jobs: []trace.Job{job("tick"), job("tock")}}, c, sim.Options{})
		if failed != nil {
			t.Fatal(failed)
		}
		return engine.Run(ctx, engine.NewState(eventlog.Header{}), d, late{swapper{}, at}, engine.Options{})
	}
	err = run(context.Background())
	if !errors.Is(err, engine.ErrUnsettled) {
		t.Fatalf("error %v, want that it does not settle", err)
	}
	for _, want := range []string{"7s", "tick", "tock", "10000"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q, want %q in it", err, want)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if err := run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v of a run that was ended", err)
	}
}

// late decides nothing before a time.
type late struct {
	sched.Decider
	from sched.Time
}

// Decide asks once the time has come.
func (l late) Decide(v *sched.View, d *sched.Desired) {
	if v.Now >= l.from {
		l.Decider.Decide(v, d)
	}
}
