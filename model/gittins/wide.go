package gittins

import "math"

// wide is a number of twice the precision, hi + lo, with hi the nearest float64. Differences of prefix sums cancel most
// of their digits where a quantum holds few samples just above a large attained service; a float64 would keep too few.
//
// Source: Dekker, "A floating-point technique for extending the available precision", 1971.
type wide struct{ hi, lo float64 }

// add returns w + x.
func (w wide) add(x float64) wide {
	sum := w.hi + x
	back := sum - w.hi
	lost := (w.hi - (sum - back)) + (x - back)
	lo := w.lo + lost
	hi := sum + lo
	return wide{hi, lo - (hi - sum)}
}

// addProduct returns w + x*y. The fused operation is wanted here: it yields what the rounding of x*y lost.
func (w wide) addProduct(x, y float64) wide {
	p := float64(x * y)
	return w.add(p).add(math.FMA(x, y, -p))
}
