package sched_test

import (
	"math/rand/v2"
	"testing"

	"github.com/trainyard/trainyard/sched"
)

// Ensure that Lead finds the GPUs that lie side by side on one node, laid out or not, on random nodes and sets.
func TestLead(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 8))
		v := &sched.View{}
		for n := range sched.NodeID(1 + r.IntN(9)) {
			k := 1 + r.IntN(9)
			v.Nodes = append(v.Nodes, sched.Node{Spec: sched.NodeSpec{GPUs: k}, First: sched.GPUID(len(v.GPUs))})
			for range k {
				v.GPUs = append(v.GPUs, sched.GPU{Node: n})
			}
			if r.IntN(3) == 0 {
				v.Lay()
			}
		}
		var set []sched.GPUID
		for p, g := r.Float64(), 0; g < len(v.GPUs); g++ {
			if r.Float64() < p {
				set = append(set, sched.GPUID(g))
			}
		}
		for ; len(set) > 0; set = set[1:] {
			node, want := v.GPUs[set[0]].Node, 0
			for want < len(set) && set[want] == set[0]+sched.GPUID(want) && v.GPUs[set[want]].Node == node {
				want++
			}
			if k := v.Lead(set); k != want {
				t.Fatalf("seed %d: %d GPUs lead %v, want %d", seed, k, set, want)
			}
		}
	}
}
