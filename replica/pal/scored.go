package pal

import (
	"cmp"
	"math/bits"
	"slices"
)

// class is what placements know of the GPUs for one class of jobs.
type class struct {
	bins   int        // distinct scores; 0 is the fastest
	in     [][]uint64 // per bin and node, the GPUs of the bin
	upTo   [][]uint64 // per bin and node, the GPUs of the bin or a faster one
	matrix []offer    // in the order of PAL's search
}

// offer is an element of PAL's matrix: GPUs of bin or faster, on one node or anywhere.
type offer struct {
	bin     int
	within  bool
	product float64 // score of the bin times locality penalty
}

func newClass(scores []float64, perNode int, locality float64) *class {
	values := slices.Compact(slices.Sorted(slices.Values(scores)))
	c := &class{bins: len(values), in: make([][]uint64, len(values)), upTo: make([][]uint64, len(values))}
	for b := range values {
		c.in[b], c.upTo[b] = make([]uint64, len(scores)/perNode), make([]uint64, len(scores)/perNode)
	}
	for g, s := range scores {
		bin, _ := slices.BinarySearch(values, s)
		bit := uint64(1) << (g % perNode)
		if !slices.ContainsFunc(c.in[bin], func(set uint64) bool { return set != 0 }) {
			c.matrix = append(c.matrix, offer{bin, true, s}, offer{bin, false, locality * s})
		}
		c.in[bin][g/perNode] |= bit
		for b := bin; b < len(values); b++ {
			c.upTo[b][g/perNode] |= bit
		}
	}
	slices.SortStableFunc(c.matrix, func(a, b offer) int { return cmp.Compare(a.product, b.product) })
	return c
}

// pickPMFirst takes the n fastest free GPUs. From the last bin, of which not all are needed, it takes nodes first that
// have nearest to n of the bin free. Ties: lowest GPU.
func (r *run) pickPMFirst(c *class, n int) {
	left := n
	for b := 0; left > 0; b++ {
		total := 0
		for node, set := range c.in[b] {
			total += bits.OnesCount64(r.free[node] & set)
		}
		if total > left {
			r.pickNearest(c.in[b], n, left)
			return
		}
		left -= total
		for node, set := range c.in[b] {
			r.pick[node] |= r.free[node] & set
		}
	}
}

// pickNearest takes left free GPUs out of bin, which has more, from nodes in the order of how far from n they are.
func (r *run) pickNearest(bin []uint64, n, left int) {
	for far := max(0, n-r.per); left > 0; far++ {
		for node, set := range bin {
			set &= r.free[node]
			if m := bits.OnesCount64(set); left > 0 && m > 0 && max(m-n, n-m) == far {
				r.pick[node] |= lowest(set, left)
				left -= min(left, m)
			}
		}
	}
}

// pickPAL goes through the matrix from the best product on. The released simulator tries all combinations of n GPUs of
// a node; here is what they come to. Jobs of one GPU and jobs wider than a node get what PM-First gives them.
func (r *run) pickPAL(c *class, n int) {
	if n == 1 || n > r.per {
		r.pickPMFirst(c, n)
		return
	}
	for _, o := range c.matrix {
		switch {
		case o.within && r.pickWithin(c, o.bin, n):
			return
		case !o.within && r.countUpTo(c, o.bin) >= n:
			r.pickPMFirst(c, n) // it takes no slower ones when there are n
			return
		}
	}
}

// pickWithin takes n GPUs of one node, none slower than bin, if some node has them. The slowest of the n decides; then,
// among nodes, who has the most free of bin or faster, the lowest node in a tie; inside the node the first n by number
// that are no slower than the slowest has to be.
func (r *run) pickWithin(c *class, bin, n int) bool {
	for b := range bin + 1 {
		best, most := -1, 0
		for node, set := range c.upTo[b] {
			if bits.OnesCount64(r.free[node]&set) < n {
				continue
			}
			if m := bits.OnesCount64(r.free[node] & c.upTo[bin][node]); m > most {
				best, most = node, m
			}
		}
		if best >= 0 {
			r.pick[best] = lowest(r.free[best]&c.upTo[b][best], n)
			return true
		}
	}
	return false
}

func (r *run) countUpTo(c *class, bin int) (n int) {
	for node, set := range c.upTo[bin] {
		n += bits.OnesCount64(r.free[node] & set)
	}
	return n
}
