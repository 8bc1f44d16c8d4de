package boa

import (
	"math"
	"time"

	"github.com/trainyard/trainyard/model/price"
	"github.com/trainyard/trainyard/sched"
)

// tick is how often what was spent is looked at; longTick where a plan changes for nothing else. Ours.
const (
	tick     = 10 * time.Minute
	longTick = time.Hour
)

// startPrice is what GPU time is worth at first where nothing is known: an eighth of a waiting job for each GPU. Ours.
const startPrice = 1. / 8

// Prices beyond these change no width: at the least a GPU is worth having that saves a ten-thousandth of a waiting job, at the most
// the delay of a hundred jobs is worth no more than a GPU. Ours.
const (
	leastPrice = 1e-4
	mostPrice  = 100
)

// notable is the share by which the price, or the budget asked of a plan, must have moved for jobs to be told: every change
// may cost restarts. Ours.
const notable = 0.02

// meter adds up the GPU-hours that are paid for, from the request of a node until it has gone.
type meter struct {
	GPUs  float64 // paid for since At
	At    sched.Time
	Hours float64 // paid for before At, since the last look
}

// read takes in what has changed by now.
func (m *meter) read(v *sched.View) {
	m.until(v.Now)
	m.GPUs = 0
	for i := range v.Pools {
		p := &v.Pools[i]
		m.GPUs += float64(max(p.Ordered, p.Nodes)) * float64(p.Spec.GPUs)
	}
}

func (m *meter) until(now sched.Time) {
	if now > m.At { // many nodes come and go at one instant
		m.Hours += m.GPUs * now.Sub(m.At).Hours()
		m.At = now
	}
}

// take returns what was paid for until now, and begins anew.
func (m *meter) take(now sched.Time) (hours float64) {
	m.until(now)
	hours, m.Hours = m.Hours, 0
	return hours
}

// steer begins to control the price.
func (w *widths) steer(now sched.Time) (err error) {
	pay := price.Pay{Average: w.p.Budget, Month: w.p.Month, Least: leastPrice, Most: mostPrice}
	if w.p.Month != (price.MonthRule{}) {
		pay.Average = 0
	}
	w.control, err = price.NewController(pay, w.clock(now), startPrice)
	w.Told, w.Version = startPrice, 1
	return err
}

// price returns what GPU time is worth now, that of the start where the plan knows none.
func (w *widths) price() float64 {
	switch {
	case w.control != nil:
		return w.Told
	case w.Plan != nil && w.Plan.Price > 0:
		return w.Plan.Price
	}
	return startPrice
}

// clock returns the seconds since 1970.
func (w *widths) clock(now sched.Time) int64 { return w.p.Epoch + int64(now.Seconds()) }

// next returns when plan and price are to be looked at again.
func (w *widths) next() sched.Time {
	switch {
	case w.Began == sched.Never, w.p.Known != nil && w.p.Fixed:
		return sched.Never
	case w.control == nil:
		return w.Look
	}
	return min(w.Look, w.end())
}

// end returns when the month's allowance is used up at the present spending, or the month begins in which there is one again;
// Never where no month was agreed. It is never the time of the last look.
func (w *widths) end() sched.Time {
	m := w.control.Month()
	if m == nil {
		return sched.Never
	}
	at := func(unix int64) sched.Time { return sched.Time(unix-w.p.Epoch) * sched.Time(time.Second) }
	if m.Stopped() || w.Meter.GPUs == 0 {
		return at(m.End())
	}
	seconds := math.Ceil(3600 * (m.Allowance() - m.Spent()) / w.Meter.GPUs)
	return min(at(m.End()), w.Looked.Add(time.Duration(max(1, min(seconds, 1e9)))*time.Second))
}

// stopped reports whether nothing may be rented for the rest of the month.
func (w *widths) stopped() bool { return w.control != nil && w.control.Stopped() }

func (w *widths) tick() time.Duration {
	if w.p.Known != nil {
		return longTick
	}
	return tick
}

// turn looks at what was spent, and at the plan.
func (w *widths) turn(v *sched.View) {
	hours, passed := w.Meter.take(v.Now), v.Now.Sub(w.Looked).Hours()
	w.Looked, w.Look = v.Now, v.Now.Add(w.tick())
	if w.control == nil {
		w.correct(hours, passed)
		w.estimate(v)
		return
	}
	was := w.stopped()
	w.control.Spend(w.clock(v.Now), hours, w.response(v))
	if p := w.control.Price(); math.Abs(p-w.Told) > notable*w.Told || was != w.stopped() {
		w.Told, w.Version = p, w.Version+1
	}
}
