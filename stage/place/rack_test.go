package place_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/place"
)

// levels goes through the sorted matrix of three levels by trying all sets of n free GPUs that are no farther apart,
// and returns the cost of the first cell in which there is one.
func (w twin) levels(t sched.TypeID, n int, of place.Penalties) (best float64) {
	all, set := w.free(t, 1e9), make([]sched.GPUID, 0, n)
	var try func(from int)
	try = func(from int) {
		if len(set) == n {
			level := place.Distance(w.v, set)
			if cost := of[level] * w.worst(set); best == 0 || cost < best {
				best = cost
			}
			return
		}
		for i := from; i < len(all); i++ {
			set = append(set, all[i])
			try(i + 1)
			set = set[:len(set)-1]
		}
	}
	try(0)
	return best
}

// inRacks gives the nodes of c racks, some unknown.
func (c *scoredCase) inRacks() {
	for i := range c.v.Nodes {
		c.v.Nodes[i].Spec.Rack = int32(c.r.IntN(3))
	}
}

// Ensure, along random histories, that no set of GPUs is better in L x V than the one chosen, with three levels; and
// that a gang wider than a node is on no more nodes than its rack, or the cluster, makes necessary.
func TestThreeLevelsTwin(t *testing.T) {
	inRack, wide, placed := 0, 0, 0
	for seed := range uint64(600) {
		c := newScoredCase(seed, 1+int(seed%2))
		c.inRacks()
		scores := scoresOf(c.sf[:]...)
		l := sched.NewLedger(c.v)
		for range 30 {
			j := sched.JobID(c.r.IntN(len(c.v.Jobs)))
			if l.Set(j) != nil {
				l.Release(j)
				continue
			}
			if c.r.IntN(20) == 0 {
				c.flip(l)
			}
			n := 2 + c.r.IntN(5)
			typ := sched.TypeID(0)
			for int(typ) < l.Types() && l.FreeOf(typ) < n {
				typ++
			}
			of := place.Penalties{1, 1 + .1*float64(c.r.IntN(6)), 0}
			of[2] = of[1] + []float64{0, .2, .7}[c.r.IntN(3)]
			rule := place.PAL{Scores: scores, Penalty: func(*sched.View, sched.JobID, int) place.Penalties {
				return of
			}}
			set, ok := rule.Place(c.v, l, j, n, nil)
			if ok != (int(typ) < l.Types()) {
				t.Fatalf("seed %d: %d GPUs: placed %v", seed, n, ok)
			}
			if !ok {
				continue
			}
			placed++
			slices.Sort(set)
			checkSet(t, c.v, l, fmt.Sprint("seed ", seed), set, n, true)
			w := twin{c.v, l, c.sf[scores.Class(c.v, j)]}
			level := place.Distance(c.v, set)
			if got, want := of[level]*w.worst(set), w.levels(typ, n, of); got != want {
				t.Fatalf("seed %d: %d GPUs at %v: %v costs %v, want %v", seed, n, of, set, got, want)
			}
			if level == variability.SameRack {
				inRack++
			}
			if n > l.Widest(typ) {
				wide++
				w.checkFewest(t, fmt.Sprint("seed ", seed), typ, set, level)
			}
			l.Book(j, set)
		}
	}
	t.Logf("%d placements, %d in a rack, %d wider than a node", placed, inRack, wide)
	if inRack < 100 || wide < 100 {
		t.Error("the cases say little")
	}
}

// checkFewest fails if fewer nodes of some rack, or of all where set is on several, have enough GPUs no slower than
// set's.
func (w twin) checkFewest(t *testing.T, where string, typ sched.TypeID, set []sched.GPUID, level variability.Level) {
	t.Helper()
	on := map[int32]map[sched.NodeID]int{}
	for _, g := range w.free(typ, w.worst(set)) {
		node := w.v.GPUs[g].Node
		racks := []int32{-1}
		if r := w.v.Nodes[node].Spec.Rack; r > 0 {
			racks = append(racks, r)
		}
		for _, r := range racks {
			if on[r] == nil {
				on[r] = map[sched.NodeID]int{}
			}
			on[r][node]++
		}
	}
	got := len(w.nodes(set))
	for r, nodes := range on {
		if (r == -1) != (level == variability.Across) {
			continue
		}
		var counts []int
		for _, k := range nodes {
			counts = append(counts, k)
		}
		slices.SortFunc(counts, func(a, b int) int { return cmp.Compare(b, a) })
		left, need := len(set), 0
		for _, k := range counts {
			if left > 0 {
				left, need = left-k, need+1
			}
		}
		if left <= 0 && need < got {
			t.Fatalf("%s: %v on %d nodes, %d of rack %d would do", where, set, got, need, r)
		}
	}
}

// Ensure that an index that has followed a ledger, or was left behind and caught up, chooses as one made again does,
// also where nodes are wider than a word.
func TestIndexFollows(t *testing.T) {
	for seed := range uint64(200) {
		c := newScoredCase(seed, 1)
		if seed%4 == 0 {
			c.v = view(70, 3, 65)
			for k := range c.sf {
				c.sf[k] = nil
				for g := range c.v.GPUs {
					c.sf[k] = append(c.sf[k], []float64{.9, 1, 1.1}[(g+k*g/3)%3])
				}
			}
			c.v.Jobs = append(c.v.Jobs[:0], make([]sched.Job, 40)...)
			for j := range c.v.Jobs {
				c.v.Jobs[j].Spec = &sched.JobSpec{Class: fmt.Sprint("c", j%2)}
			}
		}
		c.inRacks()
		followed := scoresOf(c.sf[:]...)
		l := sched.NewLedger(c.v)
		of := place.Penalties{1, 1.1, 1.3}
		rule := func(s *place.Scores) place.PAL {
			return place.PAL{Scores: s, Tolerance: .05, Penalty: func(*sched.View, sched.JobID, int) place.Penalties {
				return of
			}}
		}
		for range 60 {
			j := sched.JobID(c.r.IntN(len(c.v.Jobs)))
			if c.r.IntN(10) == 0 {
				c.flip(l)
			}
			if l.Set(j) != nil {
				l.Release(j)
				continue
			}
			n := 1 + c.r.IntN(6)
			want, fits := rule(scoresOf(c.sf[:]...)).Place(c.v, l, j, n, nil)
			if !fits {
				continue
			}
			if c.r.IntN(3) == 0 { // else it is left behind
				if got, _ := rule(followed).Place(c.v, l, j, n, nil); !slices.Equal(got, want) {
					t.Fatalf("seed %d: %v, want %v", seed, got, want)
				}
			}
			slices.Sort(want)
			l.Book(j, want)
		}
	}
}
