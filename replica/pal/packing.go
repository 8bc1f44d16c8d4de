package pal

import (
	"math/bits"

	"github.com/trainyard/trainyard/internal/mersenne"
)

// pickPacked takes n GPUs of the node that has the fewest free ones among those that have enough, else from node after
// node, the one with the most free GPUs first. Ties: lowest node. Inside a node: lowest GPU.
func (r *run) pickPacked(n int) {
	best, most := -1, 0
	for node, set := range r.free {
		free := bits.OnesCount64(set)
		if free >= n && (best < 0 || free < bits.OnesCount64(r.free[best])) {
			best = node
		}
		most = max(most, free)
	}
	if best >= 0 {
		r.pick[best] = lowest(r.free[best], n)
		return
	}
	for ; n > 0; most-- {
		n = r.takeNodesOf(most, n)
	}
}

// takeNodesOf takes up to n GPUs from the nodes with exactly so many free and returns how many are still wanted.
func (r *run) takeNodesOf(free, n int) int {
	for node, set := range r.free {
		if n > 0 && bits.OnesCount64(set) == free {
			r.pick[node] = lowest(set, n)
			n -= bits.OnesCount64(r.pick[node])
		}
	}
	return n
}

// pickRandom draws n of the free GPUs, listed by number.
func (r *run) pickRandom(n int) {
	r.pool = r.pool[:0]
	for node, set := range r.free {
		for ; set != 0; set &= set - 1 {
			r.pool = append(r.pool, node*r.per+trailing(set))
		}
	}
	mersenne.Sample(r.random, r.pool, n, func(gpu int) { r.pick[gpu/r.per] |= 1 << (gpu % r.per) })
}

// lowest is the n lowest members of set, or all of them if they are fewer.
func lowest(set uint64, n int) uint64 {
	rest := set
	for ; n > 0 && rest != 0; n-- {
		rest &= rest - 1
	}
	return set &^ rest
}

func trailing(set uint64) int { return bits.TrailingZeros64(set) }
