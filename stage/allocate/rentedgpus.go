package allocate

import (
	"github.com/trainyard/trainyard/model/price/step"
	"github.com/trainyard/trainyard/sched"
)

// Renting is a market in which more GPUs are to be had, at a price that follows from a budget.
type Renting interface {
	sched.Allocator // gives each job the width that is best at the price, as if there were GPUs for all
	sched.Reviser
	Price() float64           // of a GPU, in job-seconds per second
	Short(v *sched.View) bool // no more can be rented, though jobs would be wider at the price
}

// Revision is that of what is rented: its price may change all widths.
func (a *Clear) Revision() uint64 {
	if a.Renting == nil {
		return 0
	}
	return a.Renting.Revision()
}

// market returns what is the same for all bidders.
func (a *Clear) market() step.Market {
	m := step.Market{Horizon: a.horizon}
	if a.Renting != nil {
		m.Floor = a.Renting.Price()
	}
	return m
}

// rented gives out what is rented: no job bids against another.
func (a *Clear) rented(v *sched.View, room []int32, order []sched.JobID, d *sched.Desired,
	dst []sched.Grant) []sched.Grant {
	a.prices = a.prices[:0]
	for t := range room {
		a.prices = append(a.prices, a.Renting.Price())
		if t < len(a.by) {
			a.by[t] = a.by[t][:0]
		}
	}
	return a.Renting.Allocate(v, room, order, d, dst)
}
