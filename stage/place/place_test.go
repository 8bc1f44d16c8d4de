package place_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/model/skew"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/place"
)

// view makes a cluster of nodes with the given sizes, of one type and rack unless changed later, and one job.
func view(sizes ...int) *sched.View {
	v := &sched.View{Jobs: []sched.Job{{Spec: &sched.JobSpec{}}, {Spec: &sched.JobSpec{}}}}
	for i, n := range sizes {
		v.Nodes = append(v.Nodes, sched.Node{Spec: sched.NodeSpec{GPUs: n}, First: sched.GPUID(len(v.GPUs))})
		for range n {
			v.GPUs = append(v.GPUs, sched.GPU{Node: sched.NodeID(i)})
		}
	}
	return v
}

var placers = map[string]sched.Placer{"count": place.Count{}, "packed": place.Packed{},
	"consolidate": place.Consolidate{}, "yarn": place.Yarn{},
	"skew": place.Skew{Of: skew.Of, Limit: skew.PackLimit}}

// Ensure that each placer takes the GPUs its rule says: cluster, GPUs taken before, width, then the set; nil = it
// waits.
func TestPlacement(t *testing.T) {
	for _, c := range []struct {
		placer string
		nodes  []int
		taken  []sched.GPUID
		n      int
		want   []sched.GPUID
		why    string
	}{
		{"count", []int{4, 4}, []sched.GPUID{1}, 4, []sched.GPUID{0, 2, 3, 4}, "lowest ids, wherever they are"},
		{"packed", []int{4, 4}, []sched.GPUID{4}, 3, []sched.GPUID{5, 6, 7}, "the fullest node that holds it"},
		{"packed", []int{4, 4}, []sched.GPUID{0, 1, 4}, 4, []sched.GPUID{5, 6, 7, 2}, "else the emptiest nodes first"},
		{"packed", []int{2, 2}, []sched.GPUID{0}, 4, nil, "too few GPUs"},
		{"consolidate", []int{4, 4}, []sched.GPUID{4}, 3, []sched.GPUID{5, 6, 7}, "best fit"},
		{"consolidate", []int{4, 4}, []sched.GPUID{0, 4}, 4, nil, "waits for a whole node"},
		{"consolidate", []int{4, 4, 4}, []sched.GPUID{4}, 6, []sched.GPUID{0, 1, 2, 3, 8, 9},
			"whole nodes, then the emptiest other"},
		{"consolidate", []int{4, 4, 4}, []sched.GPUID{4, 8, 9, 10}, 6, []sched.GPUID{0, 1, 2, 3, 5, 6},
			"the rest need not be a whole node"},
		{"consolidate", []int{4, 2, 2}, nil, 6, []sched.GPUID{0, 1, 2, 3, 4, 5}, "as few nodes as the empty cluster " +
			"needs"},
		{"consolidate", []int{4, 2, 2, 2}, []sched.GPUID{0}, 6, nil, "more nodes than the empty cluster needs"},
		{"yarn", []int{4, 4}, []sched.GPUID{4}, 3, []sched.GPUID{0, 1, 2}, "first fit"},
		{"yarn", []int{4, 4, 4}, []sched.GPUID{0}, 6, []sched.GPUID{4, 5, 6, 7, 1, 2},
			"whole nodes, then the first other that holds the rest"},
		{"yarn", []int{4, 4}, []sched.GPUID{0, 4}, 5, nil, "no whole node"},
	} {
		t.Run(fmt.Sprint(c.placer, "/", c.why), func(t *testing.T) {
			v := view(c.nodes...)
			l := sched.NewLedger(v)
			if c.taken != nil {
				l.Book(1, c.taken)
			}
			got, ok := placers[c.placer].Place(v, l, 0, c.n, nil)
			if ok != (c.want != nil) || !slices.Equal(got, c.want) {
				t.Errorf("%v %v, want %v", got, ok, c.want)
			}
		})
	}
}

// Ensure that a skewed model is consolidated and any other is packed, and the two differ in shape.
func TestSkew(t *testing.T) {
	v := view(4, 4)
	v.Jobs[0].Spec = &sched.JobSpec{Model: "skewed", GPUs: sched.Rigid(4)}
	v.Jobs[1].Spec = &sched.JobSpec{Model: "flat", GPUs: sched.Rigid(4)}
	v.Jobs = append(v.Jobs, sched.Job{Spec: &sched.JobSpec{}})
	s := place.Skew{Limit: 0.3, Of: func(m string) (float64, bool) {
		return map[string]float64{"skewed": 0.7, "flat": 0.3}[m], true
	}}
	l := sched.NewLedger(v)
	l.Book(2, []sched.GPUID{0, 4})
	if s.Fits(v, l, 0, 4) || !s.Fits(v, l, 1, 4) || s.Shape(v, 0) == s.Shape(v, 1) {
		t.Error("the skewed model must wait for a node, the other must not")
	}
	if v.Jobs[0].Spec.GPUs = sched.Rigid(1); s.Shape(v, 0) != s.Shape(v, 1) {
		t.Error("one GPU cannot be spread")
	}
}

// Ensure on random clusters that Fits says what Place does, sets are free, whole, of one acceptable type and within
// CPUs, and that what fits still fits when more is free.
func TestPlacersKeepTheRules(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 4))
		v := view(2, 4, 4, 1+r.IntN(4), 4)
		counted := r.IntN(3) == 0
		for i := range v.Nodes {
			v.Nodes[i].Spec.Rack, v.Nodes[i].Spec.Type = int32(r.IntN(2)), sched.TypeID(r.IntN(3)/2)
			if r.IntN(6) == 0 {
				v.Nodes[i].State = sched.NodeDraining
			}
			if counted {
				v.Nodes[i].Spec.CPUs = float32(4 * r.IntN(4))
			}
		}
		v.Jobs[0].Spec = &sched.JobSpec{Types: sched.TypeSet(r.IntN(4)), CPUs: float32(1 + r.IntN(3))}
		l := sched.NewLedger(v)
		var taken []sched.GPUID
		for g := range v.GPUs {
			if r.IntN(3) == 0 && v.Usable(sched.GPUID(g)) {
				taken = append(taken, sched.GPUID(g))
			}
		}
		if len(taken) > 0 {
			l.Book(1, taken)
		}
		for name, p := range placers {
			n := 1 + r.IntN(9)
			dst := []sched.GPUID{99}
			fits := p.Fits(v, l, 0, n)
			got, ok := p.Place(v, l, 0, n, dst)
			if fits != ok || got[0] != 99 || !ok && len(got) != 1 {
				t.Fatalf("seed %d: %s: fits %v, placed %v %v", seed, name, fits, ok, got)
			}
			if !ok {
				continue
			}
			checkSet(t, v, l, fmt.Sprintf("seed %d: %s", seed, name), got[1:], n, counted && name != "count")
			if !counted && len(taken) > 0 {
				l.Release(1)
				if !p.Fits(v, l, 0, n) {
					t.Fatalf("seed %d: %s: %d GPUs fit no more once more is free", seed, name, n)
				}
				l.Book(1, taken)
			}
		}
	}
}

func checkSet(t *testing.T, v *sched.View, l *sched.Ledger, where string, set []sched.GPUID, n int, counted bool) {
	t.Helper()
	slices.Sort(set)
	on := map[sched.NodeID]int{}
	for i, g := range set {
		typ := v.Nodes[v.GPUs[g].Node].Spec.Type
		if !l.IsFree(g) || i > 0 && set[i-1] == g || typ != v.Nodes[v.GPUs[set[0]].Node].Spec.Type ||
			!v.Jobs[0].Spec.Types.Has(typ) {
			t.Fatalf("%s: GPU %d of %v: taken, repeated or of a wrong type", where, g, set)
		}
		on[v.GPUs[g].Node]++
	}
	for node, k := range on {
		if counted && !l.Room(node, 0, k) {
			t.Fatalf("%s: %v: no room for %d on node %d", where, set, k, node)
		}
	}
	if len(set) != n {
		t.Fatalf("%s: %d GPUs, want %d", where, len(set), n)
	}
}
