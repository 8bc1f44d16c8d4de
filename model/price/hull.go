package price

import (
	"cmp"
	"slices"
)

// Point is one way to do a unit of work.
type Point struct {
	Cost   float64 // GPUs x their price x time, >= 0
	Delay  float64 // time, > 0
	Option int     // what the caller calls this way
}

// Hull returns the points worth considering at some price, cheapest first: Cost rises, Delay falls, and what a step
// saves per cost falls strictly. Dominated points and those above the chain go; of equal points the one with the lowest
// Option stays. It sorts points in place and returns its head.
//
// Source: (k, s(k)) -> (k/s, 1/s) maps lines to lines, so this is the upper concave hull of a speedup curve. It starts
// at the cheapest width argmax s(k)/k, which may exceed 1.
func Hull(points []Point) []Point {
	slices.SortFunc(points, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Cost, b.Cost), cmp.Compare(a.Delay, b.Delay), cmp.Compare(a.Option, b.Option))
	})
	chain := points[:0]
	for _, p := range points {
		if n := len(chain); n > 0 && p.Delay >= chain[n-1].Delay {
			continue
		}
		for n := len(chain); n >= 2 && !below(chain[n-2], chain[n-1], p); n-- {
			chain = chain[:n-1]
		}
		chain = append(chain, p)
	}
	return chain
}

// below reports whether b lies strictly below the line from a to c.
func below(a, b, c Point) bool {
	return float64((a.Delay-b.Delay)*(c.Cost-b.Cost)) > float64((b.Delay-c.Delay)*(b.Cost-a.Cost))
}

// Worth returns what the step from point i of a hull to the next saves in delay per cost.
func Worth(hull []Point, i int) float64 {
	return (hull[i].Delay - hull[i+1].Delay) / (hull[i+1].Cost - hull[i].Cost)
}

// At returns the index of the point of a hull that makes weight x Delay + price x Cost least; of two the cheaper.
func At(hull []Point, weight, price float64) int {
	lo, hi := 0, len(hull)-1
	for lo < hi {
		mid := (lo + hi) / 2
		if weight*Worth(hull, mid) > price {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}
