package boa

import (
	"math"

	"github.com/trainyard/trainyard/model/price"
	"github.com/trainyard/trainyard/sched"
)

// response returns how spending answers to the price: what jobs such as arrived so far would take, by their curves as
// they are known. How fast the price moves depends on it, not where it comes to rest: neither rates nor sizes need be
// right. It is nil while nothing is known.
func (a arrivals) response(v *sched.View, m *menu) price.Response {
	x, err := price.NewExact(a.classes(v, m, 1, nil))
	if err != nil {
		return nil
	}
	return func(p float64) float64 {
		dear, cheap := x.AtPrice(p*apart).Usage, x.AtPrice(p/apart).Usage
		return math.Log(cheap/dear) / (2 * math.Log(apart))
	}
}

// apart is how far from a price, as a factor, spending is compared to find its response: widths change by steps. Ours.
const apart = 2
