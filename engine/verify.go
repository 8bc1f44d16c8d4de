package engine

import (
	"fmt"
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// verifyJobs is the number of jobs up to which every instant is verified; beyond, one in 64.
const verifyJobs = 200

// verify recounts what the state keeps as counters, and has the Decider verify itself. It panics at the first
// difference. It is called only where invariants is set.
func (r *run) verify() {
	v := &r.s.view
	if len(v.Jobs) > verifyJobs && v.Version%64 != 0 {
		return
	}
	r.s.verifyCounts()
	if d, ok := r.dec.(sched.Verifier); ok {
		d.Verify(v)
	}
}

// verifyCounts recounts holders and targets by GPU, busy GPUs by node, nodes by pool and live jobs.
func (s *State) verifyCounts() {
	want := recountJobs(&s.view, s.live)
	busy := verifyGPUs(&s.view, want)
	verifyFacts(s)
	verifyNodes(&s.view, s.moving, busy)
}

// recountJobs returns what each GPU should count, and verifies that so many jobs are live.
func recountJobs(v *sched.View, jobs int) []sched.GPU {
	want := make([]sched.GPU, len(v.GPUs))
	live := 0
	for i := range v.Jobs {
		j := &v.Jobs[i]
		if j.State != sched.Done {
			live++
		}
		if (len(j.GPUs) > 0) != j.HoldsDevices() || j.State == sched.Done && len(j.Target) > 0 {
			wrong(v, "job %d %v, attempt %v, holds %v, target %v", i, j.State, j.Attempt, j.GPUs, j.Target)
		}
		for _, g := range j.GPUs {
			want[g].Holders++
			want[g].HeldAlone += one(j.Live.Share == sched.Exclusive)
		}
		for _, g := range j.Target {
			want[g].Targets++
			want[g].Alone += one(j.Share == sched.Exclusive)
			want[g].Trials += one(j.Trial)
		}
	}
	if live != jobs {
		wrong(v, "counts %d live jobs; there are %d", jobs, live)
	}
	return want
}

// verifyGPUs compares the GPUs with what they should count, and returns how many are busy by node.
func verifyGPUs(v *sched.View, want []sched.GPU) (busy []int32) {
	busy = make([]int32, len(v.Nodes))
	for g := range v.GPUs {
		gpu, w := &v.GPUs[g], want[g]
		w.Node, w.State, w.Quarantined, w.Blamed, w.Rests = gpu.Node, gpu.State, gpu.Quarantined, gpu.Blamed, gpu.Rests
		if *gpu != w || int(gpu.Holders) > v.ShareLimit || int(gpu.Targets) > v.ShareLimit {
			wrong(v, "GPU %d counts %+v; there are %+v", g, *gpu, w)
		}
		if w.Holders > 0 {
			busy[gpu.Node]++
		}
	}
	return busy
}

// verifyNodes compares the nodes with their busy GPUs, and the pools with their nodes.
func verifyNodes(v *sched.View, moving []sched.NodeID, busy []int32) {
	rented := make([]int32, len(v.Pools))
	for n := range v.Nodes {
		x := &v.Nodes[n]
		if x.Joined() && v.PoolOf(x) != nil {
			rented[x.Spec.Pool]++
		}
		if x.Target != x.Ordered && !slices.Contains(moving, sched.NodeID(n)) {
			wrong(v, "node %d is to be %v, was ordered %v, and is not looked at", n, x.Target, x.Ordered)
		}
		if x.Busy != busy[n] {
			wrong(v, "node %d counts %d busy GPUs; there are %d", n, x.Busy, busy[n])
		}
	}
	for p := range v.Pools {
		if v.Pools[p].Nodes != rented[p] {
			wrong(v, "pool %d counts %d nodes; there are %d", p, v.Pools[p].Nodes, rented[p])
		}
	}
}

// verifyFacts recounts the facts of each node, GPU by GPU.
func verifyFacts(s *State) {
	want, odd := make([]nodeFacts, len(s.view.Nodes)), 0
	for i := range s.view.GPUs {
		g := &s.view.GPUs[i]
		want[g.Node].wanted += int32(one(g.Targets > 0))
		want[g.Node].odd += int32(one(!g.Usable() || g.Blamed > 0))
		odd += int(one(!g.Usable() || g.Blamed > 0))
	}
	if odd != s.odd || !slices.Equal(s.facts, want) {
		wrong(&s.view, "facts of nodes are %v, %d odd; they are %v, %d odd", s.facts, s.odd, want, odd)
	}
}

func one(is bool) int8 {
	if is {
		return 1
	}
	return 0
}

func wrong(v *sched.View, format string, args ...any) {
	panic(fmt.Sprintf("engine: version %d at %v: %s", v.Version, v.Now, fmt.Sprintf(format, args...)))
}
