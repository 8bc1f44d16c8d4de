package price

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
)

// Unit is work that comes again and again and takes one point of its hull each time.
type Unit struct {
	Rate   float64 // how often it comes, per unit of time, > 0
	Weight float64 // value of a unit of time of delay, > 0
	Hull   []Point // as Hull returns it, not empty; not to be changed
}

// Frontier is the least weighted delay for every budget. It is not to be changed.
type Frontier struct {
	units []Unit
	steps []step    // in the order in which a growing budget buys them
	usage []float64 // usage[i], saved[i]: before step i, with all steps before it taken; one longer than steps
	saved []float64
}

// step goes from a point of a unit's hull to the next.
type step struct {
	unit, from int
	worth      float64 // weighted delay saved per cost
}

// NewFrontier computes the frontier of units. It takes time O(N log N) in the number N of points.
//
// Source: specs of BOA, section 3.1. This is the optimum of the linear program over mixtures of points, because within
// a unit the worth of steps falls.
func NewFrontier(units []Unit) *Frontier {
	f := &Frontier{units: units}
	least := 0.0
	for u := range units {
		hull := units[u].Hull
		least += float64(units[u].Rate * hull[0].Cost)
		worth := math.Inf(1)
		for i := range len(hull) - 1 {
			worth = min(worth, units[u].Weight*Worth(hull, i)) // rounding must not turn two steps round
			f.steps = append(f.steps, step{u, i, worth})
		}
	}
	slices.SortFunc(f.steps, func(a, b step) int {
		return cmp.Or(cmp.Compare(b.worth, a.worth), cmp.Compare(a.unit, b.unit), cmp.Compare(a.from, b.from))
	})
	f.usage, f.saved = make([]float64, 0, len(f.steps)+1), make([]float64, 0, len(f.steps)+1)
	usage, saved := least, 0.0
	for _, s := range f.steps {
		f.usage, f.saved = append(f.usage, usage), append(f.saved, saved)
		unit := &units[s.unit]
		a, b := unit.Hull[s.from], unit.Hull[s.from+1]
		usage += float64(unit.Rate * (b.Cost - a.Cost))
		saved += float64(unit.Rate * unit.Weight * (a.Delay - b.Delay))
	}
	f.usage, f.saved = append(f.usage, usage), append(f.saved, saved)
	return f
}

// Least returns the smallest budget on which all work gets done.
func (f *Frontier) Least() float64 { return f.usage[0] }

// Most returns the budget beyond which nothing is gained.
func (f *Frontier) Most() float64 { return f.usage[len(f.steps)] }

// Choice says which points units take.
type Choice struct {
	At    []int   // At[u]: index of the point in the hull of unit u
	Mixed int     // the unit of which a share takes the next point instead; -1 = none
	Share float64 // of its work, in (0, 1)
	Price float64 // weighted delay that one more unit of cost would save; 0 = none
}

// InfeasibleError says that a budget does not even pay for the cheapest way to do all work.
type InfeasibleError struct{ Budget, Least float64 }

// Error says both amounts.
func (e *InfeasibleError) Error() string {
	return fmt.Sprintf("price: budget %.6g, want at least %.6g", e.Budget, e.Least)
}

// equal is the relative difference within which budgets and shares are equal: sums of thousands of terms differ by
// less.
const equal = 1e-11

// At returns the best choice for a budget, which it spends entirely unless the budget exceeds Most. The error is an
// *InfeasibleError.
func (f *Frontier) At(budget float64) (Choice, error) {
	if !(budget >= f.Least()*(1-equal)) {
		return Choice{}, &InfeasibleError{budget, f.Least()}
	}
	n := sort.Search(len(f.steps), func(i int) bool { return f.usage[i+1] > budget*(1+equal) })
	c := f.before(n)
	if n == len(f.steps) {
		return c, nil
	}
	s := f.steps[n]
	c.Price = s.worth
	if share := (budget - f.usage[n]) / (f.usage[n+1] - f.usage[n]); share > equal {
		c.Mixed, c.Share = s.unit, min(share, 1)
	}
	return c, nil
}

// AtPrice returns the choice at a price; steps just worth it are not taken.
func (f *Frontier) AtPrice(price float64) Choice {
	n := sort.Search(len(f.steps), func(i int) bool { return f.steps[i].worth <= price })
	c := f.before(n)
	c.Price = price
	return c
}

// before returns the choice with the first n steps taken.
func (f *Frontier) before(n int) Choice {
	c := Choice{At: make([]int, len(f.units)), Mixed: -1}
	for _, s := range f.steps[:n] {
		c.At[s.unit]++
	}
	return c
}
