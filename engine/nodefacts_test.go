package engine

import (
	"math/rand/v2"
	"testing"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// tenant is a set that a job is to hold, or holds.
type tenant struct {
	set          []sched.GPUID
	share        sched.Share
	trial, holds bool
}

// enter counts a tenant, or with -1 no longer.
func (x *tenant) enter(s *State, d int16) {
	if x.holds {
		hold(s, x.set, x.share, d)
	} else {
		addTenants(s, x.set, x.share, x.trial, d)
	}
}

// count adds a tenant to what GPUs should count, one by one.
func (x *tenant) count(want []sched.GPU) {
	alone, trial := one(x.share == sched.Exclusive), one(x.trial)
	for _, g := range x.set {
		if w := &want[g]; x.holds {
			w.Holders, w.HeldAlone = w.Holders+1, w.HeldAlone+alone
		} else {
			w.Targets, w.Alone, w.Trials = w.Targets+1, w.Alone+alone, w.Trials+trial
		}
	}
}

// randomState returns nodes of 1 to 9 GPUs, of which few are out of use, or blamed.
func randomState(r *rand.Rand) *State {
	s := NewState(eventlog.Header{})
	v := &s.view
	for n := range sched.NodeID(1 + r.IntN(12)) {
		k := 1 + r.IntN(9)
		v.Nodes = append(v.Nodes, sched.Node{Spec: sched.NodeSpec{GPUs: k, Pool: sched.None},
			First: sched.GPUID(len(v.GPUs))})
		for range k {
			v.GPUs = append(v.GPUs, sched.GPU{Node: n})
		}
	}
	lay(s)
	for range r.IntN(5) {
		blameOrWithhold(s, r)
	}
	return s
}

func blameOrWithhold(s *State, r *rand.Rand) {
	g := &s.view.GPUs[r.IntN(len(s.view.GPUs))]
	switch r.IntN(3) {
	case 0:
		g.Blamed++
	case 1:
		g.Quarantined = !g.Quarantined
	case 2:
		g.State = sched.GPUState(r.IntN(2))
	}
	recheck(s, g.Node)
}

// randomSet returns GPUs in order: whole nodes, parts of them, and single ones.
func randomSet(r *rand.Rand, v *sched.View) (set []sched.GPUID) {
	for i := range v.Nodes {
		n, p := &v.Nodes[i], []float64{0, .5, 1, 1}[r.IntN(4)]
		for g := n.First; g < n.First+sched.GPUID(n.Spec.GPUs); g++ {
			if r.Float64() < p {
				set = append(set, g)
			}
		}
	}
	return set
}

// Ensure that what is counted span by span is what counting GPU by GPU gives, facts of nodes included, whoever comes,
// shares, is on trial, goes or is acquitted.
func TestSpansAgreeWithCounting(t *testing.T) {
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 4))
		s := randomState(r)
		v := &s.view
		var there []tenant
		for range 30 {
			switch k := len(there); {
			case r.IntN(9) == 0:
				blameOrWithhold(s, r)
			case r.IntN(8) == 0:
				set := randomSet(r, v)
				acquit(s, set)
				for _, g := range set {
					if v.GPUs[g].Blamed > 0 {
						t.Fatalf("seed %d: GPU %d is blamed still", seed, g)
					}
				}
			case k > 0 && r.IntN(2) == 0:
				i := r.IntN(k)
				there[i].enter(s, -1)
				there[i] = there[k-1]
				there = there[:k-1]
			default:
				x := tenant{set: randomSet(r, v), trial: r.IntN(3) == 0, holds: r.IntN(2) == 0}
				if r.IntN(2) == 0 {
					x.share = sched.Shared
				}
				x.enter(s, 1)
				there = append(there, x)
			}
			compareCounts(t, s, there)
		}
	}
}

// compareCounts compares what s counts with who is there.
func compareCounts(t *testing.T, s *State, there []tenant) {
	t.Helper()
	v := &s.view
	want := make([]sched.GPU, len(v.GPUs))
	for i := range there {
		there[i].count(want)
	}
	busy := make([]int32, len(v.Nodes))
	for g, w := range want {
		gpu := &v.GPUs[g]
		w.Node, w.State, w.Quarantined, w.Blamed = gpu.Node, gpu.State, gpu.Quarantined, gpu.Blamed
		if *gpu != w {
			t.Fatalf("GPU %d counts %+v; there are %+v", g, *gpu, w)
		}
		busy[gpu.Node] += int32(one(w.Holders > 0))
	}
	for n := range v.Nodes {
		if v.Nodes[n].Busy != busy[n] {
			t.Fatalf("node %d counts %d busy GPUs; there are %d", n, v.Nodes[n].Busy, busy[n])
		}
	}
	verifyFacts(s)
}
