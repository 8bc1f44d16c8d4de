package speedup

import (
	"math"
	"slices"
)

// minimise returns a point where f, which has no gradient, is small, from start on: the method of Nelder and Mead with
// coefficients by dimension (Gao and Han, 2012), started again around what it found until that no longer helps, but for
// at most so many rounds. All coordinates are on a scale where 1 is a fair step. It is deterministic.
func minimise(f func([]float64) float64, start []float64, rounds int) []float64 {
	const enough = 1e-6
	best, least := slices.Clone(start), f(start)
	if len(start) == 0 {
		return best
	}
	for round := range rounds {
		step := 1.0
		if round%2 == 1 {
			step = -0.3 // another shape of simplex
		}
		x, y := simplexFrom(f, best, step).run()
		gain := least - y
		if y < least {
			best, least = x, y
		}
		if round > 2 && !(gain > enough) {
			break
		}
	}
	return best
}

// simplex holds one more point than there are dimensions, the best first.
type simplex struct {
	f func([]float64) float64
	x [][]float64
	y []float64
}

func simplexFrom(f func([]float64) float64, at []float64, step float64) *simplex {
	s := &simplex{f: f}
	for i := -1; i < len(at); i++ {
		x := slices.Clone(at)
		if i >= 0 {
			x[i] += step
		}
		s.x, s.y = append(s.x, x), append(s.y, f(x))
	}
	return s
}

// run moves the simplex until it is small, and returns its best point.
func (s *simplex) run() (x []float64, y float64) {
	const tolerance = 1e-9
	n := len(s.x) - 1
	dim := max(float64(n), 2)
	expand, contract, shrink := 1+2/dim, 0.75-1/(2*dim), 1-1/dim
	for range 200 * n {
		s.sort()
		if math.Abs(s.y[n]-s.y[0]) <= tolerance*(math.Abs(s.y[0])+tolerance) {
			break
		}
		at, v := s.towards(-1)
		switch {
		case v < s.y[0]:
			if far, w := s.towards(-expand); w < v {
				at, v = far, w
			}
		case v >= s.y[n-1]:
			side := contract
			if v < s.y[n] {
				side = -contract
			}
			if at, v = s.towards(side); v >= s.y[n] {
				s.shrink(shrink)
				continue
			}
		}
		s.x[n], s.y[n] = at, v
	}
	s.sort()
	return s.x[0], s.y[0]
}

// towards returns the point at factor times the way from the middle of the others to the worst.
func (s *simplex) towards(factor float64) (x []float64, y float64) {
	n := len(s.x) - 1
	x = make([]float64, n)
	for i := range x {
		middle := 0.0
		for _, p := range s.x[:n] {
			middle += p[i] / float64(n)
		}
		x[i] = middle + float64(factor*(s.x[n][i]-middle))
	}
	return x, s.f(x)
}

// shrink pulls all points towards the best.
func (s *simplex) shrink(factor float64) {
	for i := 1; i < len(s.x); i++ {
		for j := range s.x[i] {
			s.x[i][j] = s.x[0][j] + float64(factor*(s.x[i][j]-s.x[0][j]))
		}
		s.y[i] = s.f(s.x[i])
	}
}

// sort puts the best point first; equal ones keep their order.
func (s *simplex) sort() {
	for i := 1; i < len(s.x); i++ {
		for j := i; j > 0 && s.y[j] < s.y[j-1]; j-- {
			s.x[j], s.x[j-1] = s.x[j-1], s.x[j]
			s.y[j], s.y[j-1] = s.y[j-1], s.y[j]
		}
	}
}
