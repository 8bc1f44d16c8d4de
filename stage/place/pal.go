package place

import (
	"cmp"
	"slices"

	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
)

// PAL weighs variability against locality: of all ways to place a gang, by the slowest bin it may touch and by whether it
// stays on one node, it takes the first that is possible in the order of L x V, the locality penalty times the binned
// score.
//
//   - One GPU is placed as PM-First does.
//   - On one node: the node whose n fastest free GPUs are the fastest; of equal ones, that with the fewest free GPUs, then
//     the lower number.
//   - On several nodes: PM-First among the GPUs up to that bin.
//   - A gang wider than a node takes the fewest nodes among the GPUs up to the first bin that has enough.
//
// Source: Jain et al., SC'24, as released (hal-uw/blox-pal, tag artifact-v1.4).
// Deviation: released, equal nodes are taken worst fit first, which fragments, and gangs wider than a node ignore
// locality. Preset blox-pal does as released.
type PAL struct {
	Scores *Scores
	// Across is the locality penalty of a gang of n GPUs on several nodes, over one on one node, >= 1.
	Across func(spec *sched.JobSpec, n int) float64
}

var _ sched.Placer = PAL{}

// Fits reports whether enough GPUs of one type are free on nodes with room.
func (PAL) Fits(v *sched.View, l *sched.Ledger, j sched.JobID, n int) bool {
	return Packed{}.Fits(v, l, j, n)
}

// Place places the gang. Where nodes have too little room for what was picked, it is packed.
func (p PAL) Place(v *sched.View, l *sched.Ledger, j sched.JobID, n int, dst []sched.GPUID) ([]sched.GPUID, bool) {
	i := firstType(v, l, j, func(t sched.TypeID) bool { return l.FreeOf(t) >= n })
	if i < 0 {
		return dst, false
	}
	t, c := sched.TypeID(i), p.Scores.Class(v, j)
	switch {
	case n == 1:
		return PMFirst{p.Scores}.Place(v, l, j, n, dst)
	case n > l.Widest(t):
		return p.Scores.settle(v, l, j, n, p.Scores.fewest(v, l, c, t, n, dst), dst)
	}
	for _, w := range p.ways(v, j, c, n) {
		var picked []sched.GPUID
		if w.across {
			picked = p.Scores.fastest(l, c, w.bin, t, n, dst)
		} else {
			picked = p.Scores.together(v, l, c, w.bin, t, n, dst)
		}
		if len(picked)-len(dst) == n {
			return p.Scores.settle(v, l, j, n, picked, dst)
		}
	}
	return Packed{}.Place(v, l, j, n, dst) // GPUs without a bin are among the free ones
}

// way is one cell of the L x V matrix.
type way struct {
	bin    int
	across bool
	cost   float64
}

// ways are the cells in order of cost; of equal cost the faster bin, then one node.
func (p PAL) ways(v *sched.View, j sched.JobID, c, n int) []way {
	across := p.Across(v.Jobs[j].Spec, n)
	var list []way
	for b, sf := range p.Scores.bins[c].SF {
		list = append(list, way{b, false, sf}, way{b, true, float64(across * sf)})
	}
	slices.SortStableFunc(list, func(a, b way) int { return cmp.Compare(a.cost, b.cost) })
	return list
}

// together appends n free GPUs of one node of type t in bins 0..last of class c: of the nodes that have as many, the one
// whose n fastest are the fastest, then the one with the fewest free GPUs.
func (s *Scores) together(v *sched.View, l *sched.Ledger, c, last int, t sched.TypeID, n int, dst []sched.GPUID) []sched.GPUID {
	best, worst := sched.NodeID(sched.None), 0
	for free := n; free <= l.MaxFree(t); free++ { // fewest free GPUs first: only a faster node is better
		for node := l.NextNode(t, free, 0); node != sched.None; node = l.NextNode(t, free, node+1) {
			if b := s.nth(v, l, c, last, node, n); b >= 0 && (best == sched.None || b < worst) {
				best, worst = node, b
			}
			if best != sched.None && worst == 0 {
				return s.take(v, l, c, worst, best, n, dst)
			}
		}
	}
	if best == sched.None {
		return dst
	}
	return s.take(v, l, c, worst, best, n, dst)
}

// nth returns the bin of the n-th fastest free GPU of a node in bins 0..last of class c, -1 if there are fewer.
func (s *Scores) nth(v *sched.View, l *sched.Ledger, c, last int, node sched.NodeID, n int) int {
	var count [variability.MaxBins]int
	first := v.Nodes[node].First
	for g := first; g < first+sched.GPUID(v.Nodes[node].Spec.GPUs); g++ {
		if l.IsFree(g) && int(g) < len(s.bins[c].Bin) {
			count[s.bins[c].Bin[g]]++
		}
	}
	for b := 0; b <= last; b++ {
		if n -= count[b]; n <= 0 {
			return b
		}
	}
	return -1
}

// take appends the n free GPUs of a node in bins 0..last of class c with the lowest numbers.
func (s *Scores) take(v *sched.View, l *sched.Ledger, c, last int, node sched.NodeID, n int, dst []sched.GPUID) []sched.GPUID {
	first := v.Nodes[node].First
	for g := first; g < first+sched.GPUID(v.Nodes[node].Spec.GPUs) && n > 0; g++ {
		if l.IsFree(g) && int(g) < len(s.bins[c].Bin) && s.bins[c].Bin[g] <= last {
			dst = append(dst, g)
			n--
		}
	}
	return dst
}

// fewest appends n free GPUs of class c on few nodes of type t, in the fewest bins that have as many: nodes with most of
// them first, and last the one that has just enough left.
func (s *Scores) fewest(v *sched.View, l *sched.Ledger, c int, t sched.TypeID, n int, dst []sched.GPUID) []sched.GPUID {
	var free []sched.GPUID
	last := -1
	for len(free) < n {
		if last++; last == len(s.sets[c]) {
			return dst
		}
		free = s.free(l, c, last, t, free)
	}
	count := make(map[sched.NodeID]int)
	var nodes []sched.NodeID
	for _, g := range free {
		node := l.NodeOf(g)
		if count[node]++; count[node] == 1 {
			nodes = append(nodes, node)
		}
	}
	slices.SortFunc(nodes, func(a, b sched.NodeID) int { return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b)) })
	for i, node := range nodes {
		if rest := nodes[i:]; count[node] >= n { // the smallest that is enough
			k := len(rest) - 1
			for k > 0 && count[rest[k]] < n {
				k--
			}
			for k > 0 && count[rest[k-1]] == count[rest[k]] {
				k--
			}
			return s.take(v, l, c, last, rest[k], n, dst)
		}
		dst = s.take(v, l, c, last, node, count[node], dst)
		n -= count[node]
	}
	return dst
}
