package pollux

import (
	"cmp"
	"math"
	"slices"
)

// dominates reports whether a is at least as good in both objectives, and better in one.
func dominates(a, b [2]float64) bool {
	return a[0] <= b[0] && a[1] <= b[1] && a != b
}

// survive sorts by front, and inside by distance to others, the lonely first, and returns the first n. The memory of
// the others goes to the pool.
func survive(population []*state, n int, pool *[]*state) []*state {
	sortFronts(population)
	for from := 0; from < len(population); {
		to := from
		for to < len(population) && population[to].front == population[from].front {
			to++
		}
		crowd(population[from:to])
		if to > n {
			slices.SortFunc(population[from:to], func(a, b *state) int {
				return cmp.Or(cmp.Compare(b.apart, a.apart), cmp.Compare(a.hash, b.hash))
			})
		}
		if from = to; to >= n {
			break
		}
	}
	if len(population) <= n {
		return population
	}
	*pool = append(*pool, population[n:]...)
	return population[:n]
}

// sortFronts sets the front of each state, and sorts by it, then by the first objective. In that order a state is
// dominated by someone of a front if the last one of it is no worse in the second objective.
func sortFronts(population []*state) {
	slices.SortFunc(population, func(a, b *state) int {
		if a.f[0] != b.f[0] {
			return cmp.Compare(a.f[0], b.f[0])
		}
		return cmp.Or(cmp.Compare(a.f[1], b.f[1]), cmp.Compare(a.hash, b.hash))
	})
	var last [][2]float64 // of each front
	for i := range population {
		s := population[i]
		s.front, _ = slices.BinarySearchFunc(last, s.f, func(l, f [2]float64) int {
			if l[1] <= f[1] && l != f {
				return -1
			}
			return 1
		})
		if s.front == len(last) {
			last = append(last, s.f)
		}
		last[s.front] = s.f
	}
	slices.SortStableFunc(population, func(a, b *state) int { return cmp.Compare(a.front, b.front) })
}

// crowd sets the crowding distance of a front that is sorted by the first objective, and so, backwards, by the second:
// the sides of the box to both neighbours, relative to the whole front's. The ends are infinitely far, repeats of
// another not at all.
func crowd(front []*state) {
	n := len(front)
	wide, high := front[n-1].f[0]-front[0].f[0], front[0].f[1]-front[n-1].f[1]
	for i := range front {
		s := front[i]
		if i > 0 && s.f == front[i-1].f {
			s.apart = 0
			continue
		}
		next := i + 1
		for next < n && front[next].f == s.f {
			next++
		}
		if i == 0 || next == n {
			s.apart = math.Inf(1)
			continue
		}
		s.apart = (front[next].f[0]-front[i-1].f[0])/wide + (front[i-1].f[1]-front[next].f[1])/high
	}
}
