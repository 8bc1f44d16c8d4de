package gittins

import (
	"math"

	"github.com/trainyard/trainyard/model/dist"
)

// Effective returns the effective work of a job that has done a: the least time per completion that serving it for some
// quantum promises,
//
//	e(a) = min over d of E[min(X-a, d) | X > a] / P(X <= a+d | X > a)
//
// which is the inverse of the largest Gittins index over all quanta. Where nothing is known to be larger than a it is a
// itself. It takes time O(sizes above a).
//
// Source: Gittins, Glazebrook, Weber, "Multi-armed bandit allocation indices", 2011, as one for sizes.
func Effective(c *dist.Censored, a float64) float64 {
	if a >= c.Longest() {
		return a
	}
	at, left, area, chance, below := c.Beyond(a)
	least := math.Inf(1)
	for i := range at {
		if ends := chance - left[i]; ends > 0 {
			least = min(least, (area[i]-below)/ends)
		}
	}
	if math.IsInf(least, 1) {
		return a
	}
	return least
}
