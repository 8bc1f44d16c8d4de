package sim_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/drivertest"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

func job(submit sched.Time, gpus int, d time.Duration) trace.Job {
	return trace.Job{Spec: sched.JobSpec{Submit: submit, GPUs: sched.Rigid(gpus)}, Duration: d}
}

func open(t *testing.T, o sim.Options, spec string, jobs ...trace.Job) *sim.Driver {
	t.Helper()
	c, err := cluster.Load(spec)
	if err != nil {
		t.Fatal(err)
	}
	return openOn(t, o, c, jobs...)
}

func openOn(t *testing.T, o sim.Options, c *cluster.Cluster, jobs ...trace.Job) *sim.Driver {
	t.Helper()
	d, err := sim.New(&trace.Trace{Jobs: jobs}, c, o)
	if err != nil {
		t.Fatal(err)
	}
	v := &sched.View{}
	events, err := d.Sync(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	for i := range events {
		drivertest.Join(v, &events[i])
	}
	return d
}

// Ensure that the simulator is a driver as every other, whatever starting and stopping costs.
func TestConformance(t *testing.T) {
	for name, r := range map[string]sim.Runtime{
		"ideal": {},
		"delayed": {StartDelay: 100 * time.Millisecond, StopDelay: 200 * time.Millisecond,
			Restart: 300 * time.Millisecond},
		"costly": {RestartAtFirst: true, Restart: 50 * time.Millisecond, Penalty: func(int) time.Duration {
			return time.Second
		}},
	} {
		t.Run(name, func(t *testing.T) {
			drivertest.Run(t, func(t *testing.T) (sched.Driver, drivertest.Bench) {
				c, err := cluster.Load("1x4")
				if err != nil {
					t.Fatal(err)
				}
				jobs := []trace.Job{job(1, 1, 20*time.Second), job(1, 1, 500*time.Millisecond),
					job(2e9, 1, 20*time.Second)}
				d, err := sim.New(&trace.Trace{Jobs: jobs}, c, sim.Options{Runtime: r})
				if err != nil {
					t.Fatal(err)
				}
				return d, drivertest.Bench{Short: time.Second, Long: 10 * time.Second}
			})
		})
	}
}

// next returns the events of the next instant, none at the end.
func next(t *testing.T, d *sim.Driver, until sched.Time) []sched.Event {
	t.Helper()
	e, err := d.Next(context.Background(), until)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func apply(t *testing.T, d *sim.Driver, actions ...sched.Action) {
	t.Helper()
	if err := d.Apply(t.Context(), sched.Plan{Actions: actions}); err != nil {
		t.Fatal(err)
	}
}

func start(j sched.JobID, n int32, gpus ...sched.GPUID) sched.Action {
	return sched.Action{Kind: sched.Start, Job: j, Attempt: n, GPUs: gpus}
}

func stop(j sched.JobID, n int32) sched.Action {
	return sched.Action{Kind: sched.Stop, Job: j, Attempt: n, Why: sched.Preempted}
}

// Ensure that time does not fall when outages pass while someone merely waits for a time.
func TestOutagesWhileWaiting(t *testing.T) {
	c, err := cluster.Load("2x1")
	if err != nil {
		t.Fatal(err)
	}
	fails := *c
	fails.Failures = cluster.Failures{MTBF: 5 * time.Second, Repair: time.Second, Seed: 1}
	d := openOn(t, sim.Options{}, &fails, job(0, 1, 10*time.Second))
	next(t, d, sched.Never)
	last := sched.Time(0)
	for d.Now() < 100e9 {
		if e := next(t, d, 100e9); e[0].Time < last {
			t.Fatalf("%v at %v after %v", e[0].Kind, e[0].Time, last)
		}
		last = d.Now()
	}
	apply(t, d, start(0, 1, 0))
	if e := next(t, d, sched.Never); e[0].Time < 100e9 {
		t.Fatalf("%v at %v", e[0].Kind, e[0].Time)
	}
}

// Ensure that a sleeping node wakes after its boot time, once, that sleep calls a boot off, and that what ran there is
// lost.
func TestSleepAndBoot(t *testing.T) {
	set := func(s sched.NodeState) sched.Action { return sched.Action{Kind: sched.SetNode, Node: 0, State: s} }
	d := open(t, sim.Options{Runtime: sim.Runtime{Boot: 10 * time.Second}}, "1x1", job(0, 1, 100*time.Second),
		job(500e9, 1, 0))
	next(t, d, sched.Never)
	apply(t, d, start(0, 1, 0))
	next(t, d, sched.Never)
	apply(t, d, set(sched.NodeAsleep))
	if e := next(t, d, sched.Never); len(e) != 2 || e[0].Outcome != sched.NodeLost || e[1].Kind != sched.NodeLeft {
		t.Fatalf("%+v, want the attempt lost, then the node gone", e)
	}
	apply(t, d, set(sched.NodeUp), set(sched.NodeUp))
	next(t, d, 4e9)
	apply(t, d, set(sched.NodeAsleep))
	next(t, d, 4e9)
	apply(t, d, set(sched.NodeUp))
	if e := next(t, d, sched.Never); e[0].Kind != sched.NodeChanged || e[0].Time != 14e9 ||
		sched.NodeState(e[0].Code) != sched.NodeUp {
		t.Fatalf("%+v, want the node up at 14 s", e[0])
	}
	if e := next(t, d, sched.Never); e[0].Kind != sched.JobArrived {
		t.Fatalf("%+v, want nothing more of the node", e[0])
	}
}

// Ensure that epochs are reported while watched, each once, although the watch is switched off and on.
func TestEpochs(t *testing.T) {
	watch := func(on bool) sched.Action { return sched.Action{Kind: sched.WatchEpochs, Job: 0, On: on} }
	r := sim.Runtime{EpochEnd: func(_ *trace.Job, n int) time.Duration { return time.Duration(n) * 10 * time.Second }}
	d := open(t, sim.Options{Runtime: r}, "1x1", job(0, 1, 35*time.Second))
	next(t, d, sched.Never)
	apply(t, d, watch(true), start(0, 1, 0))
	next(t, d, sched.Never)
	apply(t, d, watch(false), watch(true), watch(true))
	var got []sched.Event
	for e := next(t, d, sched.Never); e != nil; e = next(t, d, sched.Never) {
		got = append(got, e...)
	}
	if len(got) != 4 || got[0].Time != 10e9 || got[0].Value != 1 || got[2].Value != 3 ||
		got[3].Kind != sched.AttemptEnded {
		t.Fatalf("%+v, want three epochs and the end", got)
	}
}

// Ensure that a gang on more nodes than it needs runs slower by what the model says, and finishes to the nanosecond.
func TestSlowdown(t *testing.T) {
	r := sim.Runtime{Slowdown: func(_ *sched.View, _ *trace.Job, _ []sched.GPUID, nodes, need int) float64 {
		return float64(nodes) / float64(need)
	}}
	d := open(t, sim.Options{Runtime: r}, "2x2", job(0, 2, 7*time.Second))
	next(t, d, sched.Never)
	apply(t, d, start(0, 1, 0, 2))
	if e := next(t, d, sched.Never); e[0].Rate != 0.5 {
		t.Fatalf("rate %v, want 0.5", e[0].Rate)
	}
	if e := next(t, d, sched.Never); e[0].Time != 14e9 || e[0].Work != 7*time.Second {
		t.Fatalf("%+v, want the end at 14 s", e[0])
	}
}

// Ensure that a restart is charged at every start but the first, and what a preemption costs is added to the work left.
func TestRestartAndPenalty(t *testing.T) {
	r := sim.Runtime{Restart: 3 * time.Second, Penalty: func(w int) time.Duration {
		return time.Duration(w) * time.Second
	}}
	d := open(t, sim.Options{Runtime: r}, "1x2", job(0, 2, 10*time.Second))
	next(t, d, sched.Never)
	apply(t, d, start(0, 1, 0, 1))
	next(t, d, sched.Never)
	next(t, d, 4e9)
	apply(t, d, stop(0, 1))
	if e := next(t, d, sched.Never); e[0].Work != 2*time.Second {
		t.Fatalf("work %v when stopped, want 2s", e[0].Work)
	}
	apply(t, d, start(0, 2, 0, 1))
	if e := next(t, d, sched.Never); e[0].WorkFrom != 7e9 {
		t.Fatalf("work goes on at %v, want 7 s", e[0].WorkFrom)
	}
	if e := next(t, d, sched.Never); e[0].Time != 15e9 || e[0].Outcome != sched.Finished {
		t.Fatalf("%+v, want the end at 15 s", e[0])
	}
}

// Ensure that a lost node costs the work since the last checkpoint, and the job only that.
func TestCheckpoint(t *testing.T) {
	c, err := cluster.Load("1x1")
	if err != nil {
		t.Fatal(err)
	}
	fails := *c
	fails.Failures = cluster.Failures{MTBF: 50 * time.Second, Repair: time.Second, Seed: 3}
	d := openOn(t, sim.Options{Runtime: sim.Runtime{Checkpoint: 10 * time.Second}}, &fails, job(0, 1, 1e6*time.Second))
	next(t, d, sched.Never)
	apply(t, d, start(0, 1, 0))
	next(t, d, sched.Never)
	e := next(t, d, sched.Never)
	if e[0].Outcome != sched.NodeLost || e[0].Work != e[0].Time.Sub(0)/(10*time.Second)*(10*time.Second) ||
		e[1].Kind != sched.NodeLeft {
		t.Fatalf("%+v, want work up to the last checkpoint", e)
	}
}

// Ensure that a simulation can be limited to the first jobs of a trace.
func TestJobsLimit(t *testing.T) {
	d := open(t, sim.Options{Jobs: 1}, "1x1", job(0, 1, 1), job(5, 1, 1))
	if e := next(t, d, sched.Never); len(e) != 1 || next(t, d, sched.Never) != nil {
		t.Fatalf("%+v, want one arrival and the end", e)
	}
}

// Ensure that a wrong runtime model is refused.
func TestWrongRuntime(t *testing.T) {
	if _, err := sim.New(&trace.Trace{}, &cluster.Cluster{}, sim.Options{Runtime: sim.Runtime{Boot: -1}}); err == nil {
		t.Error("a negative boot time is accepted")
	}
}

// Ensure that jobs which take turns for ever end the simulation with an error that says what to set: faster than they
// restart, or as they lose all work at each stop. With a job that keeps its work they go on.
func TestGoingInCirclesIsGivenUp(t *testing.T) {
	hour := job(0, 1, time.Hour)
	loses, keeps := hour, job(0, 1, 300_000*time.Second)
	loses.Saves = trace.LosesWork
	for name, x := range map[string]struct {
		job    trace.Job
		within time.Duration // the job is stopped
		why    sched.Outcome
		want   string
	}{
		"faster than they restart":     {hour, time.Second, sched.Preempted, "set min_run above restart_overhead"},
		"work is lost at each stop":    {loses, 2 * time.Minute, sched.Preempted, "set unsaved=leave, or min_run"},
		"work is kept, a second a run": {keeps, 61 * time.Second, sched.Preempted, ""},
		"nodes fail":                   {loses, 2 * time.Minute, sched.NodeLost, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := circling(t, x.job, x.within, x.why)
			if (x.want == "") != (got == "") || !strings.Contains(got, x.want) {
				t.Errorf("error %q, want %q", got, x.want)
			}
		})
	}
}

// circling starts and stops a job 200,000 times and returns the error that ends that; "" = there is none.
func circling(t *testing.T, j trace.Job, within time.Duration, why sched.Outcome) string {
	t.Helper()
	d := open(t, sim.Options{Runtime: sim.Runtime{Restart: time.Minute, RestartAtFirst: true}}, "1x1", j)
	if _, err := d.Next(t.Context(), sched.Never); err != nil { // the arrival
		t.Fatal(err)
	}
	for n := int32(1); n <= 200_000; n++ {
		_ = d.Apply(t.Context(),
			sched.Plan{Actions: []sched.Action{{Kind: sched.Start, Attempt: n, GPUs: []sched.GPUID{0}}}})
		_, first := d.Next(t.Context(), d.Now().Add(time.Second))
		_, second := d.Next(t.Context(), d.Now().Add(within))
		_ = d.Apply(t.Context(),
			sched.Plan{Actions: []sched.Action{{Kind: sched.Stop, Attempt: n, Why: why}}})
		_, third := d.Next(t.Context(), d.Now().Add(time.Second))
		if err := errors.Join(first, second, third); err != nil {
			return err.Error()
		}
	}
	return ""
}
