package sim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// underWay is the view of a node of four GPUs at 100 s with the given jobs.
func underWay(jobs ...sched.Job) *sched.View {
	v := &sched.View{Now: 100e9, Version: 9, ShareLimit: 1, Jobs: jobs, GPUs: make([]sched.GPU, 4),
		Nodes: []sched.Node{{Spec: sched.NodeSpec{Name: "n", GPUs: 4, Pool: sched.None}}}}
	for i := range v.Jobs {
		j := &v.Jobs[i]
		j.Spec = &sched.JobSpec{Name: fmt.Sprint("j", i), GPUs: sched.Rigid(1)}
		if j.HoldsDevices() {
			j.GPUs, j.State, j.Attempts = []sched.GPUID{sched.GPUID(i)}, sched.Active, 1
		}
	}
	return v
}

// takeOver returns a simulation of jobs that each take 60 s in all, which goes on from v, and what it says to start
// with.
func takeOver(t *testing.T, v *sched.View, r sim.Runtime, later ...trace.Job) (*sim.Driver, []sched.Event, error) {
	t.Helper()
	x := &trace.Trace{Jobs: make([]trace.Job, len(v.Jobs))}
	for i := range x.Jobs {
		x.Jobs[i] = trace.Job{Spec: *v.Jobs[i].Spec, Duration: time.Minute}
	}
	x.Jobs = append(x.Jobs, later...)
	d, err := sim.New(x, &cluster.Cluster{Nodes: []sched.NodeSpec{v.Nodes[0].Spec}}, sim.Options{Runtime: r,
		Inject: []sched.Event{{Time: 100e9, Kind: sched.PriceChanged}, {Time: 300e9, Kind: sched.PriceChanged}}})
	if err != nil {
		t.Fatal(err)
	}
	events, err := d.Sync(t.Context(), v)
	return d, events, err
}

// story prints events: time in seconds, kind, job, outcome, work in seconds.
func story(events []sched.Event) string {
	var words []string
	for _, e := range events {
		words = append(words, strings.TrimSpace(fmt.Sprintf("%v %v %d %v", e.Time.Seconds(), e.Kind, e.Job, e.Outcome)))
	}
	return strings.Join(words, "; ")
}

// Ensure that attempts taken over go on as the view shows them: one that runs ends with its work, one that starts is up
// and one that stops is gone once the delays since their orders have passed, at once if they have; and that what is
// past is not given again.
func TestTakeOver(t *testing.T) {
	r := sim.Runtime{StartDelay: 20 * time.Second, StopDelay: 30 * time.Second, Restart: 5 * time.Second}
	at := func(s float64) sched.Time { return sched.Time(sched.Seconds(s)) }
	v := underWay(
		sched.Job{Attempt: sched.Running, FirstStart: at(90), LastStart: at(90), WorkFrom: at(90), Rate: 1,
			Work: 20 * time.Second},
		sched.Job{Attempt: sched.Starting, FirstStart: at(3), Settled: at(95), Work: 50 * time.Second},
		sched.Job{Attempt: sched.Stopping, FirstStart: at(3), WorkFrom: at(80), Work: 7 * time.Second},
		sched.Job{Attempt: sched.Starting, FirstStart: sched.None, Settled: at(70)},
	)
	d, events, err := takeOver(t, v, r, job(200e9, 1, time.Second))
	if err != nil {
		t.Fatal(err)
	}
	got := []string{story(events)}
	for e := next(t, d, sched.Never); e != nil; e = next(t, d, sched.Never) {
		got = append(got, story(e))
	}
	want := "100 started 3 | 110 ended 2 preempted | 115 started 1 | 130 ended 0 finished; " +
		"130 ended 1 finished | 160 ended 3 finished | 200 arrived 0 | 300 price 0"
	if s := strings.Join(got, " | "); s != want {
		t.Errorf("%s\nwant %s", s, want)
	}
}

// Ensure that an attempt which is not as fast as the view shows is reported so, with its work up to now at the old
// speed.
func TestTakeOverAtAnotherSpeed(t *testing.T) {
	v := underWay(sched.Job{Attempt: sched.Running, LastStart: 90e9, WorkFrom: 90e9, Rate: 1, Work: 20 * time.Second})
	half := sim.Runtime{Slowdown: func(*sched.View, *trace.Job, []sched.GPUID, int, int) float64 { return 2 }}
	d, events, err := takeOver(t, v, half)
	if err != nil || len(events) != 1 || events[0].Rate != 0.5 || events[0].Work != 30*time.Second ||
		events[0].WorkFrom != 100e9 {
		t.Fatalf("%+v, %v, want half the speed from 100 s on", events, err)
	}
	if e := next(t, d, sched.Never); story(e) != "160 ended 0 finished" {
		t.Error(story(e))
	}
}

// Ensure that a boot under way starts again, once, although the order is given again.
func TestTakeOverBoot(t *testing.T) {
	v := underWay()
	v.Nodes[0].State, v.Nodes[0].Ordered, v.Nodes[0].Awaited = sched.NodeAsleep, sched.NodeUp, true
	d, events, err := takeOver(t, v, sim.Runtime{Boot: 7 * time.Second})
	if err != nil || len(events) > 0 {
		t.Fatal(events, err)
	}
	apply(t, d, sched.Action{Kind: sched.SetNode, Node: 0, State: sched.NodeUp})
	if e := next(t, d, sched.Never); story(e) != "107 node-changed 0" {
		t.Error(story(e))
	}
	if e := next(t, d, sched.Never); story(e) != "300 price 0" {
		t.Error(story(e))
	}
}

// Ensure that a trace which cannot be that of the view is refused.
func TestTakeOverOfAnother(t *testing.T) {
	if _, _, err := takeOver(t, underWay(), sim.Runtime{}, job(99e9, 1, 1)); err == nil ||
		!strings.Contains(err.Error(), "at 99s, want a time from 100s on") {
		t.Error(err)
	}
	d, err := sim.New(&trace.Trace{}, &cluster.Cluster{}, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = d.Sync(t.Context(), underWay(sched.Job{})); err == nil ||
		!strings.Contains(err.Error(), "a run of 1 jobs, want a trace that starts with them; it has 0") {
		t.Error(err)
	}
}
