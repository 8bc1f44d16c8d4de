package place_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/place"
)

// scoresOf is the knowledge of binned scores sf[c][g]; a job of class "c1" is of class 1, and so on, any other of
// class 0.
func scoresOf(sf ...[]float64) *place.Scores {
	bins := make([]variability.Bins, len(sf))
	for c := range sf {
		bins[c].SF = slices.Compact(slices.Sorted(slices.Values(sf[c])))
		for _, x := range sf[c] {
			b, _ := slices.BinarySearch(bins[c].SF, x)
			bins[c].Bin = append(bins[c].Bin, b)
		}
	}
	return place.NewScores(bins, func(v *sched.View, j sched.JobID) int { return classOf(len(sf))(v.Jobs[j].Spec) })
}

func classOf(classes int) func(*sched.JobSpec) int {
	return func(spec *sched.JobSpec) int {
		for c := range classes {
			if spec.Class == fmt.Sprint("c", c) {
				return c
			}
		}
		return 0
	}
}

func times(x float64) place.Penalty {
	return place.TwoLevel(x)
}

// twin places by the words of the released code, all combinations tried, but for our ties: best fit.
type twin struct {
	v  *sched.View
	l  *sched.Ledger
	sf []float64
}

// free returns the free GPUs of type t with scores up to most, in order of number.
func (w twin) free(t sched.TypeID, most float64) (list []sched.GPUID) {
	for g := range w.v.GPUs {
		if id := sched.GPUID(g); w.l.IsFree(id) && w.v.Nodes[w.l.NodeOf(id)].Spec.Type == t && w.sf[g] <= most {
			list = append(list, id)
		}
	}
	return list
}

func (w twin) worst(set []sched.GPUID) (worst float64) {
	for _, g := range set {
		worst = max(worst, w.sf[g])
	}
	return worst
}

func (w twin) nodes(set []sched.GPUID) []sched.NodeID {
	var list []sched.NodeID
	for _, g := range set {
		list = append(list, w.v.GPUs[g].Node)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// pmFirst sorts candidates by score, then by how far the number of their like on the node is from n.
func (w twin) pmFirst(n int, cand []sched.GPUID) []sched.GPUID {
	if len(cand) < n {
		return nil
	}
	far := func(g sched.GPUID) int {
		like := 0
		for _, o := range cand {
			if w.sf[o] == w.sf[g] && w.v.GPUs[o].Node == w.v.GPUs[g].Node {
				like++
			}
		}
		return max(like-n, n-like)
	}
	cand = slices.Clone(cand)
	slices.SortStableFunc(cand, func(a, b sched.GPUID) int {
		return cmp.Or(cmp.Compare(w.sf[a], w.sf[b]), cmp.Compare(far(a), far(b)))
	})
	return cand[:n]
}

// pal goes through the sorted matrix.
func (w twin) pal(t sched.TypeID, n int, across float64) []sched.GPUID {
	all := w.free(t, 1e9)
	if n == 1 {
		return w.pmFirst(n, all)
	}
	type cell struct {
		v, cost float64
		within  bool
	}
	var matrix []cell
	for _, v := range slices.Compact(slices.Sorted(slices.Values(w.sf))) {
		matrix = append(matrix, cell{v, v, true}, cell{v, across * v, false})
	}
	slices.SortStableFunc(matrix, func(a, b cell) int { return cmp.Compare(a.cost, b.cost) })
	for _, c := range matrix {
		cand := w.free(t, c.v)
		if c.within {
			if set := w.onOneNode(n, cand); set != nil {
				return set
			}
		} else if len(cand) >= n {
			return w.pmFirst(n, cand)
		}
	}
	return nil
}

// onOneNode tries all combinations of n candidates of each node, and keeps the first whose slowest GPU is the fastest,
// then whose node has the fewest free GPUs.
func (w twin) onOneNode(n int, cand []sched.GPUID) (best []sched.GPUID) {
	better := func(set []sched.GPUID) bool {
		if best == nil {
			return true
		}
		a, b := w.l.FreeOn(w.v.GPUs[set[0]].Node), w.l.FreeOn(w.v.GPUs[best[0]].Node)
		return cmp.Or(cmp.Compare(w.worst(set), w.worst(best)), cmp.Compare(a, b)) < 0
	}
	var try func(set, rest []sched.GPUID)
	try = func(set, rest []sched.GPUID) {
		if len(set) == n {
			if better(set) {
				best = slices.Clone(set)
			}
			return
		}
		for i, g := range rest {
			if len(set) == 0 || w.v.GPUs[set[0]].Node == w.v.GPUs[g].Node {
				try(append(set, g), rest[i+1:])
			}
		}
	}
	try(nil, cand)
	return best
}

// scoredCase is a cluster whose GPUs differ, with two classes of jobs.
type scoredCase struct {
	r  *rand.Rand
	v  *sched.View
	sf [2][]float64
}

// newScoredCase draws nodes of 1 to 8 GPUs and scores out of a few values.
func newScoredCase(seed uint64, types int) *scoredCase {
	c := &scoredCase{r: rand.New(rand.NewPCG(seed, 9))}
	sizes := make([]int, 2+c.r.IntN(4))
	for i := range sizes {
		sizes[i] = []int{1, 2, 4, 4, 8}[c.r.IntN(5)]
	}
	c.v = view(sizes...)
	for i := range c.v.Nodes {
		c.v.Nodes[i].Spec.Type = sched.TypeID(c.r.IntN(types))
		if c.r.IntN(8) == 0 {
			c.v.Nodes[i].State = sched.NodeDraining
		}
	}
	values := []float64{0.9, 1, 1.05, 1.25, 2.5}[:1+c.r.IntN(5)]
	for k := range c.sf {
		for range c.v.GPUs {
			c.sf[k] = append(c.sf[k], values[c.r.IntN(len(values))])
		}
	}
	c.v.Jobs = c.v.Jobs[:0]
	for range 40 {
		c.v.Jobs = append(c.v.Jobs, sched.Job{Spec: &sched.JobSpec{Class: fmt.Sprint("c", c.r.IntN(2))}})
	}
	return c
}

func (c *scoredCase) across() float64 { return []float64{1, 1.05, 1.25, 1.7, 3}[c.r.IntN(5)] }

// Ensure, along random histories of one ledger, that PM-First and PAL choose the GPUs that the literal search chooses,
// the index following every change; that PAL is never worse than PM-First in L x V for a gang that a node could hold,
// and as good in V without penalty; that alike GPUs keep such a gang on a node; and that a wider gang gets the fewest
// nodes that its bins allow.
func TestScoredTwin(t *testing.T) {
	placed, wide, apart := 0, 0, 0
	for seed := range uint64(1500) {
		c := newScoredCase(seed, 1+int(seed%2))
		scores := scoresOf(c.sf[:]...)
		l := sched.NewLedger(c.v)
		for range 40 {
			j := sched.JobID(c.r.IntN(len(c.v.Jobs)))
			if l.Set(j) != nil {
				l.Release(j)
				continue
			}
			if c.r.IntN(20) == 0 {
				c.flip(l)
			}
			n, across := 1+c.r.IntN(4+c.r.IntN(8)), c.across()
			typ := sched.TypeID(0)
			for int(typ) < l.Types() && l.FreeOf(typ) < n {
				typ++
			}
			first, ok := place.PMFirst{Scores: scores}.Place(c.v, l, j, n, nil)
			best, also := place.PAL{Scores: scores, Penalty: times(across)}.Place(c.v, l, j, n, nil)
			if fits := int(typ) < l.Types(); ok != fits || also != fits {
				t.Fatalf("seed %d: %d GPUs: placed %v, %v, want %v", seed, n, ok, also, fits)
			}
			if !ok {
				continue
			}
			placed++
			slices.Sort(first)
			slices.Sort(best)
			w := twin{c.v, l, c.sf[scores.Class(c.v, j)]}
			want := w.pmFirst(n, w.free(typ, 1e9))
			slices.Sort(want)
			if !slices.Equal(first, want) {
				t.Fatalf("seed %d: PM-First of %d: %v, want %v", seed, n, first, want)
			}
			if n > l.Widest(typ) {
				wide++
				w.checkWide(t, fmt.Sprint("seed ", seed), typ, n, best)
			} else {
				want = w.pal(typ, n, across)
				slices.Sort(want)
				if !slices.Equal(best, want) {
					t.Fatalf("seed %d: PAL of %d, L = %v: %v, want %v", seed, n, across, best, want)
				}
				if w.checkAgainst(t, fmt.Sprint("seed ", seed), typ, across, best, first) {
					apart++
				}
			}
			l.Book(j, [][]sched.GPUID{first, best}[c.r.IntN(2)])
		}
	}
	t.Logf("%d placements, %d wider than a node, %d in which PAL is better", placed, wide, apart)
}

// flip drains a node or takes it back.
func (c *scoredCase) flip(l *sched.Ledger) {
	n := sched.NodeID(c.r.IntN(len(c.v.Nodes)))
	if c.v.Nodes[n].State = sched.NodeDraining; c.r.IntN(2) == 0 {
		c.v.Nodes[n].State = sched.NodeUp
	}
	l.Refresh(n)
}

// checkAgainst reports whether PAL is better than PM-First, and fails if it is worse.
func (w twin) checkAgainst(t *testing.T, where string, typ sched.TypeID, across float64, pal,
	pmFirst []sched.GPUID) bool {
	t.Helper()
	cost := func(set []sched.GPUID) float64 {
		if len(w.nodes(set)) > 1 {
			return across * w.worst(set)
		}
		return w.worst(set)
	}
	a, b := cost(pal), cost(pmFirst)
	if a > b || across == 1 && w.worst(pal) != w.worst(pmFirst) {
		t.Fatalf("%s: L = %v: PAL at %v, PM-First at %v", where, across, a, b)
	}
	alike := slices.Min(w.sf) == slices.Max(w.sf)
	if alike && across > 1 && w.l.MaxFree(typ) >= len(pal) && len(w.nodes(pal)) > 1 {
		t.Fatalf("%s: alike GPUs, a node has %d free, and PAL spreads %v", where, w.l.MaxFree(typ), pal)
	}
	return a < b
}

// checkWide fails if set is slower than it must be or on more nodes than its slowest score makes necessary.
func (w twin) checkWide(t *testing.T, where string, typ sched.TypeID, n int, set []sched.GPUID) {
	t.Helper()
	worst := w.worst(w.pmFirst(n, w.free(typ, 1e9)))
	on := map[sched.NodeID]int{}
	for _, g := range w.free(typ, worst) {
		on[w.v.GPUs[g].Node]++
	}
	var counts []int
	for _, k := range on {
		counts = append(counts, k)
	}
	slices.SortFunc(counts, func(a, b int) int { return b - a })
	need := 0
	for left := n; left > 0; need++ {
		left -= counts[need]
	}
	if len(set) != n || len(w.nodes(set)) != need || w.worst(set) > worst {
		t.Fatalf("%s: %v: slowest %v on %d nodes, want %v on %d", where, set, w.worst(set), len(w.nodes(set)), worst,
			need)
	}
}

// Ensure that multiplying the scores of a class changes no choice, whatever the class of the job, and that numbering
// the GPUs of each node otherwise, with their scores, numbers the choice otherwise where all scores differ.
func TestScoredRelations(t *testing.T) {
	for seed := range uint64(1500) {
		c := newScoredCase(seed, 1)
		for g := range c.v.GPUs { // all different, so that ties are by node alone
			c.sf[1][g] = 0.9 + 0.01*float64(g)
		}
		c.r.Shuffle(len(c.sf[1]), func(i, k int) { c.sf[1][i], c.sf[1][k] = c.sf[1][k], c.sf[1][i] })
		to := c.renumbering()
		var taken, moved []sched.GPUID
		for g := range c.v.GPUs {
			if c.v.Usable(sched.GPUID(g)) && c.r.IntN(3) == 0 {
				taken, moved = append(taken, sched.GPUID(g)), append(moved, to[g])
			}
		}
		slices.Sort(moved)
		here, there := sched.NewLedger(c.v), sched.NewLedger(c.v)
		if taken != nil {
			here.Book(0, taken)
			there.Book(0, moved)
		}
		scaled := [2][]float64{make([]float64, len(to)), make([]float64, len(to))}
		renamed := [2][]float64{c.sf[0], make([]float64, len(to))}
		for g := range to {
			scaled[0][g], scaled[1][g] = 4*c.sf[0][g], c.sf[1][g]/8
			renamed[1][to[g]] = c.sf[1][g]
		}
		n, across := 1+c.r.IntN(9), c.across()
		for _, j := range []sched.JobID{1, 2} {
			c.v.Jobs[j].Spec.Class = fmt.Sprint("c", j-1)
			for k, of := range []func(*place.Scores) sched.Placer{
				func(s *place.Scores) sched.Placer { return place.PMFirst{Scores: s} },
				func(s *place.Scores) sched.Placer { return place.PAL{Scores: s, Penalty: times(across)} },
			} {
				want, _ := of(scoresOf(c.sf[:]...)).Place(c.v, here, j, n, nil)
				got, _ := of(scoresOf(scaled[:]...)).Place(c.v, here, j, n, nil)
				if !slices.Equal(got, want) {
					t.Fatalf("seed %d, rule %d, class %d: scaled %v, want %v", seed, k, j-1, got, want)
				}
				if j != 2 || n > here.Widest(0) {
					continue
				}
				other, _ := of(scoresOf(renamed[:]...)).Place(c.v, there, j, n, nil)
				for i := range want {
					want[i] = to[want[i]]
				}
				slices.Sort(want)
				slices.Sort(other)
				if !slices.Equal(other, want) {
					t.Fatalf("seed %d, rule %d: renumbered %v, want %v", seed, k, other, want)
				}
			}
		}
	}
}

// renumbering shuffles the numbers of the GPUs inside each node.
func (c *scoredCase) renumbering() []sched.GPUID {
	to := make([]sched.GPUID, len(c.v.GPUs))
	for i := range c.v.Nodes {
		first, size := int(c.v.Nodes[i].First), c.v.Nodes[i].Spec.GPUs
		for k, p := range c.r.Perm(size) {
			to[first+k] = sched.GPUID(first + p)
		}
	}
	return to
}

// Ensure on random clusters with CPUs and memory that what Fits is placed, on free GPUs of one type within the room of
// each node, and that GPUs without a score are taken rather than having a gang wait.
func TestScoredKeepRoom(t *testing.T) {
	for seed := range uint64(2000) {
		c := newScoredCase(seed, 2)
		for i := range c.v.Nodes {
			c.v.Nodes[i].Spec.CPUs = float32(c.r.IntN(20))
		}
		c.v.Jobs[0].Spec.CPUs = float32(1 + c.r.IntN(3))
		known := len(c.v.GPUs) - c.r.IntN(3)
		scores := scoresOf(c.sf[0][:known], c.sf[1][:known])
		l := sched.NewLedger(c.v)
		n := 1 + c.r.IntN(9)
		for _, p := range []sched.Placer{place.PMFirst{Scores: scores},
			place.PAL{Scores: scores, Penalty: times(c.across())}} {
			set, ok := p.Place(c.v, l, 0, n, nil)
			if fits := p.Fits(c.v, l, 0, n); fits != ok {
				t.Fatalf("seed %d: %T: placed %v, fits %v", seed, p, ok, fits)
			}
			if ok {
				checkSet(t, c.v, l, fmt.Sprintf("seed %d: %T", seed, p), set, n, true)
			}
		}
	}
}
