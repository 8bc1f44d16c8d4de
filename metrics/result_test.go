package metrics_test

import (
	"math"
	"testing"
	"time"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that each outcome enters the figures it should, by hand. Waits: a 4 s, b 30 s until it was cancelled, c 60 s
// and counting, d is out of it. Jobs of no JCT count as a nanosecond in the geometric mean.
func TestFromJobsByHand(t *testing.T) {
	at := func(s int) sched.Time { return sched.Time(s) * second }
	jobs := []metrics.Job{
		{Submit: at(10), Start: at(14), Finish: at(20), Run: 6 * time.Second, Outcome: sched.Finished, Preemptions: 2,
			Resizes: 1},
		{Submit: at(12), Start: at(13), Finish: at(52), Run: 10 * time.Second, Outcome: sched.Cancelled, Migrations: 3},
		{Submit: at(40), Start: sched.None, Finish: sched.None, Promotions: 1},
		{Submit: at(0), Start: sched.None, Finish: at(99), Outcome: sched.RejectedJob},
		{Submit: at(30), Start: at(30), Finish: at(30), Outcome: sched.Finished},
		{Submit: at(30), Start: at(30), Finish: at(31), Run: time.Second, Outcome: sched.Failed},
	}
	got := metrics.FromJobs("x", jobs, at(100))
	want := metrics.Result{System: "x", Jobs: 6, Finished: 2, Rejected: 1, Unfinished: 1, AvgJCT: 5,
		GeomeanJCT: math.Sqrt(10 * 1e-9),
		P50JCT:     0, P95JCT: 10, P99JCT: 10, AvgQueue: 2, MaxWait: 60, AvgRun: 3, Makespan: 30, Preemptions: 2,
		Promotions: 1, Migrations: 3, Resizes: 1}
	if math.Abs(got.GeomeanJCT-want.GeomeanJCT) > 1e-15 {
		t.Errorf("geomean %v, want %v", got.GeomeanJCT, want.GeomeanJCT)
	}
	if got.GeomeanJCT = want.GeomeanJCT; got != want {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
}

// Ensure that a percentile is the nearest rank for every number of jobs, whatever rounding does to the product.
func TestNearestRank(t *testing.T) {
	var jobs []metrics.Job
	for n := 1; n <= 1500; n++ {
		jobs = append(jobs, metrics.Job{Finish: sched.Time(n) * second, Outcome: sched.Finished})
		r := metrics.FromJobs("", jobs, 0)
		for percent, got := range map[int]float64{50: r.P50JCT, 95: r.P95JCT, 99: r.P99JCT} {
			if want := float64((n*percent + 99) / 100); got != want {
				t.Fatalf("%d jobs: percentile %d is %v, want %v", n, percent, got, want)
			}
		}
	}
}

// Ensure that no log, and a log without a job, give zeros and no division by them.
func TestNothing(t *testing.T) {
	rec := &metrics.Recorder{}
	if got, want := rec.Result("x"), (metrics.Result{System: "x"}); got != want {
		t.Errorf("%+v for no log, want zeros", got)
	}
	s := engine.NewState(eventlog.Header{})
	for _, e := range []sched.Event{{Kind: sched.NodeJoined,
		NodeSpec: &sched.NodeSpec{Name: "a", GPUs: 2, IdleW: 50, DollarsHr: 1}},
		{Time: 3600 * second, Kind: sched.Ticked}} {
		s.Apply(&e)
		rec.Log(s.View(), &e)
	}
	if got, want := rec.Result("x"), (metrics.Result{System: "x", Events: 2}); got != want {
		t.Errorf("%+v for a cluster without jobs, want zeros", got)
	}
}

// Ensure by hand what counts as allocated, busy, energy and cost: a job of 2 GPUs that restarts for 2 s, works for 3 s
// and takes 1 s to stop, on a node of 4 GPUs that fails when all is over. The job answers for its GPUs' half of the
// idle power.
func TestShareByHand(t *testing.T) {
	rec, s := &metrics.Recorder{}, engine.NewState(eventlog.Header{})
	node := sched.NodeSpec{Name: "a", GPUs: 4, IdleW: 100, BusyGPUW: 50, DollarsHr: 36}
	set := []sched.GPUID{0, 1}
	for _, e := range []sched.Event{
		{Kind: sched.NodeJoined, NodeSpec: &node},
		{Time: 4 * second, Kind: sched.JobArrived, Spec: &sched.JobSpec{GPUs: sched.Rigid(2)}},
		{Time: 4 * second, Kind: sched.Decided, GPUs: set, Target: &sched.Target{}},
		{Time: 4 * second, Kind: sched.Ordered, Attempt: 1, Code: int32(sched.Start)},
		{Time: 4 * second, Kind: sched.AttemptStarted, Attempt: 1, WorkFrom: 6 * second, Rate: 1},
		{Time: 9 * second, Kind: sched.JobCommanded, Code: int32(sched.CancelJob)},
		{Time: 9 * second, Kind: sched.Ordered, Attempt: 1, Code: int32(sched.Stop), Outcome: sched.Cancelled},
		{Time: 10 * second, Kind: sched.AttemptEnded, Attempt: 1, Outcome: sched.Cancelled},
		{Time: 70 * second, Kind: sched.JobCommanded, Code: int32(sched.CancelJob)}, // it is done already
		{Time: 99 * second, Kind: sched.NodeLeft, Code: int32(sched.NodeDown)},
		{Time: 3600 * second, Kind: sched.NodeJoined, NodeSpec: &node},
	} {
		s.Apply(&e)
		rec.Log(s.View(), &e)
	}
	got := rec.Result("")
	want := metrics.Result{Jobs: 1, GPUAllocated: 0.5, GPUBusy: 0.25, AvgActiveNodes: 1, GPUHours: 12. / 3600,
		EnergyKWh: 1200 / 3.6e6, EnergyBusy: 900 / 3.6e6, EnergyIdle: 300 / 3.6e6,
		Cost: 0.06, AvgRentedGPUs: 4, Events: 11}
	if math.Abs(got.Cost-want.Cost) < 1e-12 {
		got.Cost = want.Cost
	}
	if got != want || rec.Jobs[0].Energy != 900 {
		t.Errorf("job energy %v, want 900\n got %+v\nwant %+v", rec.Jobs[0].Energy, got, want)
	}
}
