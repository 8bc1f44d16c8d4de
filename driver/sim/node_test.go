package sim_test

import (
	"fmt"
	"math"
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

// plan is a Decider that requests things at times.
type plan map[sched.Time]func(d *sched.Desired)

func (plan) Observe(*sched.View, *sched.Event)      {}
func (plan) SaveJob(_ sched.JobID, b []byte) []byte { return b }
func (plan) Format() string                         { return "plan/1" }
func (plan) SaveRest(b []byte) []byte               { return b }
func (plan) LoadJob(sched.JobID, []byte) error      { return nil }
func (plan) LoadRest([]byte) error                  { return nil }
func (p plan) Decide(v *sched.View, d *sched.Desired) {
	if wanted := p[v.Now]; wanted != nil {
		wanted(d)
		delete(p, v.Now)
	}
	for at := range p {
		d.WakeBy(at)
	}
}

// nodeLog writes down what becomes of nodes.
type nodeLog struct{ strings.Builder }

func (l *nodeLog) Log(v *sched.View, e *sched.Event) {
	switch e.Kind {
	case sched.NodeJoined, sched.NodeLeft, sched.NodeChanged:
		n := &v.Nodes[e.Node]
		fmt.Fprintf(l, "%v %s in %d %v; ", e.Time.Seconds(), n.Spec.Name, e.Node, n.State)
	}
}

// Ensure that nodes of a pool boot as often as wanted and no oftener, that a smaller number calls boots off and
// releases no one, that a released node makes room for another, and that the numbers of nodes are those of the engine.
func TestRent(t *testing.T) {
	c := &cluster.Cluster{Nodes: []sched.NodeSpec{{Name: "own", GPUs: 2, Pool: sched.None}}, Types: []string{"a"}}
	d, err := sim.New(&trace.Trace{Jobs: []trace.Job{job(100e9, 1, time.Second)}}, c, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rent := func(n int32) sched.PoolTarget { return sched.PoolTarget{Pool: 1, Count: n} }
	requests := plan{
		0:    func(d *sched.Desired) { d.Pools = append(d.Pools, rent(2)) },
		5e9:  func(d *sched.Desired) { d.Pools = append(d.Pools, rent(3)) },
		11e9: func(d *sched.Desired) { d.Pools = append(d.Pools, rent(1)) },
		20e9: func(d *sched.Desired) { d.Pools = append(d.Pools, rent(3)) },
		40e9: func(d *sched.Desired) {
			d.Nodes = append(d.Nodes, sched.NodeTarget{Node: 1, State: sched.NodeGone},
				sched.NodeTarget{Node: 0, State: sched.NodeAsleep})
			d.Pools = append(d.Pools, rent(2))
		},
		50e9: func(d *sched.Desired) {
			d.Nodes = append(d.Nodes, sched.NodeTarget{Node: 0, State: sched.NodeUp})
			d.Pools = append(d.Pools, rent(3))
		},
	}
	h := eventlog.Header{Pools: []sched.PoolSpec{{Name: "x", GPUs: 1, Max: 1},
		{Name: "spot", GPUs: 1, Boot: 10 * time.Second, Max: 5}}}
	var log nodeLog
	if err := engine.Run(t.Context(), engine.NewState(h), d, requests,
		engine.Options{Sinks: []eventlog.Sink{&log}}); err != nil {
		t.Fatal(err)
	}
	want := "0 own in 0 up; 10 spot-1 in 1 up; 10 spot-2 in 2 up; 30 spot-4 in 3 up; 40 own in 0 asleep; 40 spot-1 " +
		"in 1 gone; " +
		"50 own in 0 up; 60 spot-5 in 1 up; "
	if got := log.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Ensure that a node takes as long to wake as its specification says, before what the runtime says of all, and that a
// price that is none is not taken for one.
func TestWakeAndPrice(t *testing.T) {
	c := &cluster.Cluster{Nodes: []sched.NodeSpec{{Name: "slow", GPUs: 1, Pool: sched.None, Wake: 7 * time.Second},
		{Name: "any", GPUs: 1, Pool: sched.None}}, Types: []string{"a"}}
	o := sim.Options{Runtime: sim.Runtime{Boot: 3 * time.Second}}
	for i, x := range []float64{-1, math.NaN(), math.Inf(1), 2} {
		o.Inject = append(o.Inject, sched.Event{Time: sched.Time(i) * 1e9, Kind: sched.PriceChanged, Pool: sched.None,
			Node: 1, Value: x})
	}
	d, err := sim.New(&trace.Trace{Jobs: []trace.Job{job(100e9, 1, time.Second)}}, c, o)
	if err != nil {
		t.Fatal(err)
	}
	all := func(s sched.NodeState) func(d *sched.Desired) {
		return func(d *sched.Desired) {
			d.Nodes = append(d.Nodes, sched.NodeTarget{Node: 0, State: s}, sched.NodeTarget{Node: 1, State: s})
		}
	}
	var log nodeLog
	dropped, state := 0, engine.NewState(eventlog.Header{})
	opt := engine.Options{Sinks: []eventlog.Sink{&log}, Dropped: func(*sched.Event, string) { dropped++ }}
	if err := engine.Run(t.Context(), state, d, plan{10e9: all(sched.NodeAsleep), 20e9: all(sched.NodeUp)},
		opt); err != nil {
		t.Fatal(err)
	}
	if got, want := log.String(),
		"0 slow in 0 up; 0 any in 1 up; 10 slow in 0 asleep; 10 any in 1 asleep; 23 any in 1 up; 27 slow in "+
			"0 up; "; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if p := state.View().Nodes[1].Price; dropped != 3 || p != 2 {
		t.Errorf("%d prices dropped, price %v, want 3 and 2", dropped, p)
	}
}
