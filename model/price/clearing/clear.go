// Package clearing finds the price at which the jobs present hold just so many GPUs for ever, by splitting the steps of
// their hulls. Package step decides; tests hold it to this where nothing ever ends.
package clearing

import (
	"cmp"
	"math"

	"github.com/trainyard/trainyard/model/price"
)

// equal is the relative difference up to which two amounts of GPUs are the same.
const equal = 1e-11

// Clearing finds the price at which the jobs present hold a given number of GPUs. Its zero value is ready; memory is
// used again from call to call.
type Clearing struct {
	steps []bid
	at    []int
}

// Bidder is a job that is present: what it is in, and what a unit of time is worth to it.
type Bidder struct {
	Hull   []price.Point // as Hull returns it, not empty
	Weight float64       // > 0
}

// bid is a step of a job's hull: it asks for more GPUs at a price it is worth.
type bid struct {
	worth float64
	gpus  float64
	job   int32
	from  int32
}

// Cleared is the outcome.
type Cleared struct {
	At    []int   // At[j]: index of job j's point in its hull; -1 = it gets nothing. Valid until the next call
	Price float64 // the most that a step not taken is worth; 0 = all were taken
	Held  float64 // by all, <= GPUs
	Short int     // jobs that get nothing
}

// Clear gives out gpus: a point of a hull holds Cost/Delay of them. Each job gets its cheapest point first, in the
// order of the list as long as there is room: who queues is for the caller to order. Then the steps worth most are
// taken, ties by job, until one does not fit. With n steps in all it takes expected time O(n), because steps are split
// about the price rather than sorted; the outcome does not depend on how.
//
// Source: specs of BOA, section 3.4.
func (c *Clearing) Clear(jobs []Bidder, gpus float64) Cleared {
	out := c.seat(jobs, gpus)
	if out.Short > 0 {
		return out
	}
	c.steps = c.steps[:0]
	for j := range jobs {
		hull, worth := jobs[j].Hull, math.Inf(1)
		for i := range len(hull) - 1 {
			worth = min(worth, jobs[j].Weight*price.Worth(hull, i)) // rounding must not turn two steps round
			c.steps = append(c.steps, bid{worth, width(hull[i+1]) - width(hull[i]), int32(j), int32(i)})
		}
	}
	taken, left := split(c.steps, gpus*(1+equal)-out.Held)
	for _, s := range c.steps[:taken] {
		out.At[s.job]++
	}
	out.Held = min(gpus, gpus*(1+equal)-left)
	if taken < len(c.steps) {
		out.Price = c.steps[taken].worth
	}
	return out
}

// width is how many GPUs a point holds, times their price.
func width(p price.Point) float64 { return p.Cost / p.Delay }

// seat gives jobs their cheapest points as long as there is room. The price of a seat refused is what no one can pay.
func (c *Clearing) seat(jobs []Bidder, gpus float64) Cleared {
	c.at = append(c.at[:0], make([]int, len(jobs))...)
	out := Cleared{At: c.at}
	for j := range jobs {
		w := width(jobs[j].Hull[0])
		if out.Held+w > gpus*(1+equal) {
			c.at[j] = -1
			out.Short++
			continue
		}
		c.at[j] = 0
		out.Held += w
	}
	return out
}

// split puts the steps that fit into room, worth most first, at the front, followed by the first that does not fit, and
// returns their number and the room left.
func split(steps []bid, room float64) (taken int, left float64) {
	lo, hi := 0, len(steps) // those before lo fit, those from hi on do not
	for lo < hi {
		mid, gpus := partition(steps, lo, hi)
		if gpus > room {
			hi = mid
			continue
		}
		room -= gpus
		if steps[mid].gpus > room {
			return mid, room
		}
		lo, room = mid+1, room-steps[mid].gpus
	}
	return lo, room
}

// partition puts one of the steps lo..hi-1 at mid, those worth more before it and the others after it, and returns mid
// and the GPUs of those before.
func partition(steps []bid, lo, hi int) (mid int, gpus float64) {
	last := hi - 1
	middle(steps, lo, lo+(hi-lo)/2, last)
	pivot := steps[last]
	mid = lo
	for i := lo; i < last; i++ {
		if compare(&steps[i], &pivot) < 0 {
			gpus += steps[i].gpus
			steps[mid], steps[i] = steps[i], steps[mid]
			mid++
		}
	}
	steps[mid], steps[last] = steps[last], steps[mid]
	return mid, gpus
}

// middle puts the middle one of three steps at c.
func middle(steps []bid, a, b, c int) {
	if compare(&steps[b], &steps[a]) < 0 {
		a, b = b, a
	}
	switch at := &steps[c]; {
	case compare(at, &steps[a]) < 0:
		*at, steps[a] = steps[a], *at
	case compare(at, &steps[b]) > 0:
		*at, steps[b] = steps[b], *at
	}
}

// compare orders steps by worth, most first, then job, then place in its hull: no two are equal.
func compare(a, b *bid) int {
	switch {
	case a.worth > b.worth:
		return -1
	case a.worth < b.worth:
		return 1
	}
	return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.from, b.from))
}
