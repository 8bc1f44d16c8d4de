package provision_test

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
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/allocate"
	"github.com/trainyard/trainyard/stage/order"
	"github.com/trainyard/trainyard/stage/place"
	"github.com/trainyard/trainyard/stage/provision"
	"github.com/trainyard/trainyard/trace"
)

// script writes down what becomes of nodes, and when jobs start.
type script struct{ strings.Builder }

func (s *script) Log(v *sched.View, e *sched.Event) {
	switch e.Kind {
	case sched.NodeJoined, sched.NodeLeft, sched.NodeChanged:
		fmt.Fprintf(s, "%v %s %v; ", e.Time.Seconds(), v.Nodes[e.Node].Spec.Name, v.Nodes[e.Node].State)
	case sched.AttemptStarted:
		fmt.Fprintf(s, "%v job %d; ", e.Time.Seconds(), e.Job)
	}
}

func job(submit float64, gpus int, seconds float64) trace.Job {
	return trace.Job{Spec: sched.JobSpec{Submit: sched.Time(submit * 1e9), GPUs: sched.Rigid(gpus)},
		Duration: sched.Seconds(seconds)}
}

// run simulates fifo-skip with a rule of provision; sinks may follow. It returns what happened and what all pools cost.
func run(t *testing.T, c *cluster.Cluster, boot time.Duration, rule sched.Provisioner, jobs ...trace.Job) (string,
	float64) {
	t.Helper()
	d, err := sim.New(&trace.Trace{Jobs: jobs}, c, sim.Options{Runtime: sim.Runtime{Boot: boot}})
	if err != nil {
		t.Fatal(err)
	}
	s := engine.NewState(eventlog.Header{Types: c.Types, Pools: c.PoolSpecs()})
	var log script
	dec := pipeline.Stages{Order: order.FIFO{}, Place: place.Packed{},
		Parts: pipeline.Parts{Provision: []sched.Provisioner{rule}}}.Decider()
	if err := engine.Run(t.Context(), s, d, dec, engine.Options{Sinks: []eventlog.Sink{&log}}); err != nil {
		t.Fatal(err)
	}
	cost := 0.0
	for i := range s.View().Pools {
		cost += float64(s.View().Pools[i].SpentNow(s.View().Now))
	}
	return log.String(), cost
}

func parse(t *testing.T, yaml string) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Parse([]byte(yaml), "c.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Ensure that following the demand rents when a job comes, lets go when no one needs a node any more, keeps it for a
// while if asked to, rents from the cheaper pool first, and leaves to owned nodes what they can serve.
func TestFollow(t *testing.T) {
	const pools = "pools: [{name: dear, gpus: 1, price_per_hour: 3600, boot_seconds: 5, max: 9}, " +
		"{name: spot, gpus: 2, price_per_hour: 3600, boot_seconds: 10, max: 1}]"
	for _, c := range []struct {
		name, yaml string
		keep       time.Duration
		want       string
		cost       float64
	}{
		{"at once", pools, 0, "10 spot-1 up; 10 job 0; 20 spot-1 gone; 40 spot-2 up; 40 job 1; 41 spot-2 gone; ",
			20 + 11},
		{"kept", pools, 15 * time.Second, "10 spot-1 up; 10 job 0; 30 job 1; 46 spot-1 gone; ", 46},
		{"owned", "nodes: [{gpus: 1}]\n" + pools, 0, "0 node0 up; 10 spot-1 up; 10 job 0; 20 spot-1 gone; 30 job 1; ",
			20},
	} {
		got, cost := run(t, parse(t, c.yaml), 0, &provision.Rent{Demand: &provision.Asked{}, Keep: c.keep},
			job(0, 2, 10), job(30, 1, 1))
		if got != c.want || math.Abs(cost-c.cost) > 1e-9 {
			t.Errorf("%s: got  %s at %v\nwant %s at %v", c.name, got, cost, c.want, c.cost)
		}
	}
}

// Ensure that a reservation is there from the start and stays, that a limit on nodes holds, and that a job too wide for
// one pool is served by several.
func TestReservationAndLimits(t *testing.T) {
	c := parse(t, "pools: [{name: a, gpus: 2, price_per_hour: 3600, max: 3}, {name: b, gpus: 2, price_per_hour: "+
		"7200, max: 9}]")
	got, cost := run(t, c, 0, &provision.Rent{Demand: provision.Always{GPUs: 4}}, job(10, 2, 10))
	if want := "0 a-1 up; 0 a-2 up; 10 job 0; "; got != want || cost != 40 {
		t.Errorf("got  %s at %v\nwant %s at 40", got, cost, want)
	}
	got, _ = run(t, c, 0, &provision.Rent{Demand: &provision.Asked{}, Most: 4}, job(0, 8, 10), job(1, 4, 1))
	if want := "0 a-1 up; 0 a-2 up; 0 a-3 up; 0 b-1 up; 0 job 0; 10 job 1; "; !strings.HasPrefix(got, want) {
		t.Errorf("got  %s\nwant %s...", got, want)
	}
	got, _ = run(t, c, 0, &provision.Rent{Demand: &provision.Asked{Most: 2}}, job(0, 2, 10), job(1, 2, 1))
	if want := "0 a-1 up; 0 job 0; 10 job 1; 11 a-1 gone; "; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Ensure that idle nodes fall asleep after the dwell while no one waits, and that as many wake as those who wait need.
func TestSleep(t *testing.T) {
	c := parse(t, "nodes: [{gpus: 2, count: 3}]")
	got, _ := run(t, c, 4*time.Second, &provision.Sleep{Dwell: 3 * time.Second}, job(0, 1, 10), job(5, 3, 1),
		job(20, 6, 1))
	want := "0 node0 up; 0 node1 up; 0 node2 up; 0 job 0; 3 node1 asleep; 3 node2 asleep; 9 node1 up; 9 node2 up; 9 " +
		"job 1; " +
		"13 node0 asleep; " +
		"13 node1 asleep; 13 node2 asleep; 24 node0 up; 24 node1 up; 24 node2 up; 24 job 2; " +
		"28 node0 asleep; 28 node1 asleep; 28 node2 asleep; "
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Ensure that a demand that falls has the emptiest nodes drained, those that joined last first, that nothing is placed
// there any more, and that they go as soon as they are empty; one that rises again rents others.
func TestDrain(t *testing.T) {
	c := parse(t, "pools: [{name: a, gpus: 2, price_per_hour: 3600, boot_seconds: 1, max: 4}]")
	for _, x := range []struct {
		falls, rises float64
		want         string
	}{
		// Jobs 0 and 1 fill a-1, job 2 is on a-2. Jobs 3 and 4 would find room on a-2 alone, which drains.
		{5, 99, "1 a-1 up; 1 a-2 up; 1 job 0; 1 job 1; 1 job 2; 6 a-2 draining; 21 a-2 gone; 31 job 3; "},
		{5, 8, "1 a-1 up; 1 a-2 up; 1 job 0; 1 job 1; 1 job 2; 6 a-2 draining; 12 a-3 up; 12 job 3; 12 job 4; " +
			"13 a-3 gone; 13 a-1 draining; 21 a-2 gone; 31 a-1 gone; "},
	} {
		var v *sched.View
		demand := provision.Reported(func() int32 {
			if now := v.Now.Seconds(); len(v.Jobs) > 0 && v.Jobs[len(v.Jobs)-1].State == sched.Done {
				return 0
			} else if now > x.falls && now < x.rises {
				return 2
			}
			return 4
		})
		rule := &watched{Rent: provision.Rent{Demand: demand, Drain: true}, see: func(now *sched.View) { v = now }}
		got, _ := run(t, c, 0, rule, job(0, 1, 30), job(0, 1, 30), job(0, 1, 20), job(6, 1, 1), job(11, 1, 1))
		if !strings.HasPrefix(got, x.want) {
			t.Errorf("got  %s\nwant %s...", got, x.want)
		}
	}
}

// watched shows a demand the View.
type watched struct {
	provision.Rent
	see func(*sched.View)
}

func (w *watched) Provision(v *sched.View, d *sched.Desired) {
	w.see(v)
	w.Rent.Provision(v, d)
}

// Ensure that nodes that jobs would fit without are emptied, once they have cost what the moves cost, and that the jobs
// go on elsewhere; that none is emptied whose jobs cost too much to move, or do not fit elsewhere.
func TestEmpty(t *testing.T) {
	const pool = "pools: [{name: spot, gpus: 2, price_per_hour: 3600, max: 9}]"
	pair := func(long float64) []trace.Job {
		return []trace.Job{job(0, 1, 100), job(0, 1, long), job(1, 1, 100), job(1, 1, long)}
	}
	for _, c := range []struct {
		name string
		move float64 // GPU-seconds
		jobs []trace.Job
		want string
		cost float64
	}{
		// From 101 s on two nodes hold a job each: 20 s later the second node has cost the 40 GPU-seconds of a move.
		{"worth it", 40, pair(200), "0 spot-1 up; 0 job 0; 0 job 1; 1 spot-2 up; 1 job 2; 1 job 3; 121 spot-1 " +
			"draining; 121 job 1; 121 spot-1 gone; 201 spot-2 gone; ", 121 + 200},
		{"too dear", math.Inf(1), pair(200), "0 spot-1 up; 0 job 0; 0 job 1; 1 spot-2 up; 1 job 2; 1 job 3; 200 " +
			"spot-1 gone; 201 spot-2 gone; ", 200 + 200},
		{"too late", 400, pair(200), "0 spot-1 up; 0 job 0; 0 job 1; 1 spot-2 up; 1 job 2; 1 job 3; 200 spot-1 gone; " +
			"201 spot-2 gone; ", 200 + 200},
		// Three GPUs on two nodes: no node can be emptied.
		{"no room", 0, []trace.Job{job(0, 2, 50), job(0, 1, 200)}, "0 spot-1 up; 0 spot-2 up; 0 job 0; 0 job 1; 50 " +
			"spot-1 gone; 200 spot-2 gone; ", 250},
	} {
		rule := &provision.Rent{Demand: &provision.Wanted{Wants: asAsked{}}}
		rule.Move = func(*sched.View, sched.JobID) float64 { return c.move }
		d, err := sim.New(&trace.Trace{Jobs: c.jobs}, parse(t, pool), sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := engine.NewState(eventlog.Header{Types: []string{"gpu"}, Pools: parse(t, pool).PoolSpecs()})
		var log script
		dec := pipeline.Stages{Order: order.FIFO{}, Place: place.Packed{}, Allocate: allocate.ByWidth{Wants: asAsked{}},
			Parts: pipeline.Parts{Provision: []sched.Provisioner{rule}}}.Decider()
		if err := engine.Run(t.Context(), s, d, dec, engine.Options{Sinks: []eventlog.Sink{&log}}); err != nil {
			t.Fatal(err)
		}
		p := &s.View().Pools[0]
		if cost := float64(p.SpentNow(s.View().Now)); log.String() != c.want || math.Abs(cost-c.cost) > 1e-9 {
			t.Errorf("%s: %s for %v; want %s for %v", c.name, log.String(), cost, c.want, c.cost)
		}
		saved := rule.SaveRest(nil)
		other := &provision.Rent{}
		if err := other.LoadRest(saved); err != nil || string(other.SaveRest(nil)) != string(saved) {
			t.Errorf("%s: %v, or another memory", c.name, err)
		}
		for n := range saved {
			if err := other.LoadRest(saved[:n]); err == nil && n < 2 {
				t.Errorf("%s: loaded %d of %d bytes", c.name, n, len(saved))
			}
		}
	}
}

// asAsked has every job as wide as it asks to be.
type asAsked struct{}

func (asAsked) Want(v *sched.View, j sched.JobID) (int32, sched.Config) {
	return v.Jobs[j].Spec.GPUs.Want, sched.Config{}
}

func (asAsked) Narrower(*sched.View, sched.JobID, int32) (sched.Config, bool) {
	return sched.Config{}, false
}

// Ensure that nothing is rented for a job that is wider than can ever be had, and that it keeps no one else from
// renting.
func TestNothingIsRentedForWhoNeverFits(t *testing.T) {
	view := func(jobs ...sched.JobSpec) *sched.View {
		v := &sched.View{Pools: []sched.Pool{{Spec: sched.PoolSpec{Name: "a", GPUs: 8, Max: 3}},
			{Spec: sched.PoolSpec{Name: "b", Type: 1, GPUs: 4, Max: 1}}},
			Nodes: []sched.Node{{Spec: sched.NodeSpec{GPUs: 2, Pool: sched.None}}}, Version: 1}
		for i := range jobs {
			v.Jobs = append(v.Jobs, sched.Job{Spec: &jobs[i], State: sched.Waiting})
		}
		return v
	}
	wide := sched.JobSpec{GPUs: sched.Range{Min: 2, Want: 64, Max: 64}}
	for _, c := range []struct {
		name  string
		asked provision.Asked
		jobs  []sched.JobSpec
		want  [3]int32
	}{
		{"wider than all", provision.Asked{}, []sched.JobSpec{{GPUs: sched.Rigid(64)}, {GPUs: sched.Rigid(5)}},
			[3]int32{0, 0, 5}},
		{"as wide as all", provision.Asked{}, []sched.JobSpec{{GPUs: sched.Rigid(26)}}, [3]int32{0, 0, 26}},
		{"wider than its type", provision.Asked{},
			[]sched.JobSpec{{GPUs: sched.Rigid(5), Types: sched.TypeSet(0).With(1)}}, [3]int32{}},
		{"wider than may be wanted", provision.Asked{Most: 16},
			[]sched.JobSpec{{GPUs: sched.Rigid(17)}, {GPUs: sched.Rigid(16)}}, [3]int32{0, 0, 16}},
		{"wants more than all, and is rigid", provision.Asked{}, []sched.JobSpec{wide}, [3]int32{}},
		{"wants more than all, and takes less", provision.Asked{Narrows: true}, []sched.JobSpec{wide},
			[3]int32{0, 0, 64}},
	} {
		sum := make([]int32, 3)
		if c.asked.Demand(view(c.jobs...), sum); [3]int32(sum) != c.want {
			t.Errorf("%s: %v, want %v", c.name, sum, c.want)
		}
	}
}

// Ensure that nodes that can take no job do not keep others from being rented, go before those that can, and stay while
// someone needs what there is.
func TestRentBesideTheDead(t *testing.T) {
	const owned, spot = sched.None, sched.PoolID(0)
	node := func(pool sched.PoolID, first sched.GPUID, state sched.NodeState) sched.Node {
		return sched.Node{Spec: sched.NodeSpec{GPUs: 8, Pool: pool}, First: first, State: state}
	}
	for _, c := range []struct {
		name   string
		nodes  []sched.Node
		gpu    sched.GPUState // of the first node
		demand int32
		want   int32
		gone   int // number of the node that goes; -1 = none
	}{
		{"no node", nil, 0, 8, 1, -1},
		{"an owned one that does not answer", []sched.Node{node(owned, 0, sched.NodeUp)}, sched.GPUStuck, 8, 1, -1},
		{"an owned one that others use", []sched.Node{node(owned, 0, sched.NodeUp)}, sched.GPUForeign, 8, 1, -1},
		{"an owned one", []sched.Node{node(owned, 0, sched.NodeUp)}, sched.GPUInUse, 8, 0, -1},
		{"a rented one that does not answer", []sched.Node{node(spot, 0, sched.NodeUp)}, sched.GPUStuck, 8, 2, -1},
		{"a rented one that is cordoned", []sched.Node{node(spot, 0, sched.NodeDraining)}, sched.GPUInUse, 8, 2, -1},
		{"the same, and another in its place",
			[]sched.Node{node(spot, 0, sched.NodeDraining), node(spot, 8, sched.NodeUp)}, sched.GPUInUse, 8, 1, 0},
		{"one that does not answer, and another in its place",
			[]sched.Node{node(spot, 0, sched.NodeUp), node(spot, 8, sched.NodeUp)}, sched.GPUStuck, 8, 1, 0},
		{"more than may be rented", []sched.Node{node(spot, 0, sched.NodeUp)}, sched.GPUStuck, 32, 4, -1},
	} {
		v := &sched.View{Now: 100, Version: 1, Types: []string{"T"}, Nodes: c.nodes,
			Pools: []sched.Pool{{Spec: sched.PoolSpec{GPUs: 8, Max: 4}}}}
		for n := range c.nodes {
			for range 8 {
				v.GPUs = append(v.GPUs, sched.GPU{Node: sched.NodeID(n)})
			}
		}
		for g := range min(8, len(v.GPUs)) {
			v.GPUs[g].State = c.gpu
		}
		r := &provision.Rent{Demand: provision.Reported(func() int32 { return c.demand })}
		var d sched.Desired
		v.Pools[0].Target = -1 // so that the number is given
		r.Provision(v, &d)
		gone := -1
		for _, n := range d.Nodes {
			gone = int(n.Node)
		}
		if len(d.Pools) != 1 || d.Pools[0].Count != c.want || gone != c.gone || len(d.Nodes) > 1 {
			t.Errorf("%s: %+v, nodes %+v; want %d nodes, and %d gone", c.name, d.Pools, d.Nodes, c.want, c.gone)
		}
	}
}
