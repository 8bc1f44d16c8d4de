package price

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Pay is what someone agreed to pay: on average, or by calendar month.
type Pay struct {
	Average float64   // cost per hour, > 0; or 0, with
	Month   MonthRule // a budget by month; its zero value = none
	Gain    float64   // per hour in the long run, see Steer, where spending answers with 1; 0 = 0.2. Ours
	// the price stays within Least and Most, so that it comes back soon from where it does nothing; 0 = 1e-9 and
	Least float64
	Most  float64 // 1e9
}

// haste is how many hours' worth of moves a controller makes up for at its start, when the price it was given may be
// far off: after t hours its gain is 1 + haste/(1+t) times that of the long run. Ours.
const haste = 10

// Response says how spending answers at a price: by what share it falls in the long run where the price rises by a
// little, over the share of that rise, > 0. At s = k^p it is p where curves are alike; near the least budget, and where
// money is plenty, nearly 0.
type Response func(price float64) float64

// leastResponse is what a smaller response counts as. Ours: where the price hardly matters it need not be found soon.
const leastResponse = 0.1

// at bounds a response, which is 1 where none is known.
func (r Response) at(price float64) float64 {
	if r == nil {
		return 1
	}
	if x := r(price); x > leastResponse {
		return min(x, 1)
	}
	return leastResponse
}

// Controller is the price that keeps spending at what was agreed. It is a state machine as Month is; times are seconds
// since 1970 UTC.
type Controller struct {
	pay   Pay
	price float64
	began int64
	last  int64
	month *Month // nil = on average
}

// NewController returns one that starts at now with a price > 0, say that of a plan. It needs no more of a plan than
// that.
func NewController(pay Pay, now int64, price float64) (*Controller, error) {
	pay.Gain = cmp.Or(pay.Gain, 0.2)
	pay.Least, pay.Most = cmp.Or(pay.Least, leastPrice), cmp.Or(pay.Most, mostPrice)
	if !(price > 0) || math.IsInf(price, 1) {
		return nil, fmt.Errorf("price: controller: price %v, want > 0", price)
	}
	if err := pay.validate(); err != nil {
		return nil, err
	}
	c := &Controller{pay: pay, price: price, began: now, last: now}
	if pay.monthly() {
		m, err := NewMonth(pay.Month, now)
		if err != nil {
			return nil, err
		}
		c.month = m
	}
	return c, nil
}

// monthly reports whether a sum by month was agreed, not an average.
func (p *Pay) monthly() bool { return p.Month != MonthRule{} }

// validate names the first field that is wrong, defaults having been filled in.
func (p *Pay) validate() error {
	switch {
	case !(p.Gain > 0) || math.IsInf(p.Gain, 1):
		return fmt.Errorf("price: controller: gain %v, want > 0", p.Gain)
	case !(p.Least >= leastPrice && p.Least <= p.Most && p.Most <= mostPrice):
		return fmt.Errorf("price: controller: prices from %v to %v, want them from %v to %v", p.Least, p.Most,
			leastPrice, mostPrice)
	case !(p.Average >= 0) || math.IsInf(p.Average, 1) || (p.Average > 0) == p.monthly():
		return fmt.Errorf("price: controller: average %v with a month's budget %v, want one of them > 0",
			p.Average, p.Month.Budget)
	}
	return nil
}

// Spend takes in that amount >= 0 was spent since the last call, and moves the price: the further, the less spending
// answers to it, nil = in full. Where the price comes to rest does not depend on the response. Time must not run
// backwards; a call at the time of the last one moves nothing.
func (c *Controller) Spend(now int64, amount float64, r Response) {
	hours := float64(now-c.last) / 3600
	target := c.pay.Average * hours
	if c.month != nil {
		target = c.month.Rate() * float64(now-c.last)
		c.month.Spend(now, amount)
	}
	if hours > 0 {
		gain := hours * c.pay.Gain * (1 + haste/(1+float64(c.last-c.began)/3600))
		c.price = min(max(c.along(gain, amount, target, r), c.pay.Least), c.pay.Most)
	}
	c.last = now
}

// along returns the price moved by a gain over the response. That is the response half way: else a price that goes up
// and down with the noise of spending would go down by less than it went up, or the other way round, where responses
// differ, and what was overspent would not be made up for.
func (c *Controller) along(gain, spent, target float64, r Response) float64 {
	half := Steer(c.price, gain/2/r.at(c.price), spent, target)
	return Steer(c.price, gain/r.at(half), spent, target)
}

// Prices always stay within these: a long stop must not send one to 0 or +Inf.
const (
	leastPrice = 1e-9
	mostPrice  = 1e9
)

// Price returns what GPU time is worth now.
func (c *Controller) Price() float64 { return c.price }

// Stopped reports whether the month's allowance is used up: nothing more may be rented.
func (c *Controller) Stopped() bool { return c.month != nil && c.month.Stopped() }

// Month returns the month that is watched, nil where an average was agreed. It is not to be changed.
func (c *Controller) Month() *Month { return c.month }

// controllerFormat is the first byte that Save writes.
const controllerFormat = 2

// Save appends the state to b: format, price, first and last time, then that of the month. What was agreed is not part
// of it.
func (c *Controller) Save(b []byte) []byte {
	b = append(b, controllerFormat)
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(c.price))
	b = binary.LittleEndian.AppendUint64(b, uint64(c.began))
	b = binary.LittleEndian.AppendUint64(b, uint64(c.last))
	if c.month != nil {
		b = c.month.Save(b)
	}
	return b
}

// Load replaces the state by one that Save wrote under the same agreement. On error the state stays as it was.
func (c *Controller) Load(b []byte) error {
	const own = 1 + 3*8
	if len(b) < own || b[0] != controllerFormat || c.month == nil && len(b) > own {
		return fmt.Errorf("price: controller: load: %d bytes, want a state of format %d", len(b), controllerFormat)
	}
	price := math.Float64frombits(binary.LittleEndian.Uint64(b[1:]))
	began, last := int64(binary.LittleEndian.Uint64(b[9:])), int64(binary.LittleEndian.Uint64(b[17:]))
	if !(price >= leastPrice && price <= mostPrice) || began < -maxUnix || began > last || last > maxUnix {
		return errors.New("price: controller: load: a state that no spending leads to")
	}
	if c.month != nil {
		next := *c.month
		if err := next.Load(b[own:]); err != nil {
			return err
		}
		*c.month = next
	}
	c.price, c.began, c.last = price, began, last
	return nil
}
