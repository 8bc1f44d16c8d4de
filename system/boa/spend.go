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

// Prices beyond these change no width: at the least a GPU is worth having that saves a ten-thousandth of a waiting job,
// at the most the delay of a hundred jobs is worth no more than a GPU. Ours.
const (
	leastPrice = 1e-4
	mostPrice  = 100
)

// notable is the share by which the price, or the budget asked of a plan, must have moved for jobs to be reported:
// every change may cost restarts. Ours.
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

// take returns what was paid for until now, and starts again at 0.
func (m *meter) take(now sched.Time) (hours float64) {
	m.until(now)
	hours, m.Hours = m.Hours, 0
	return hours
}

// spending is what is paid for GPU time, and, where the price of it is steered by that, the price.
type spending struct {
	epoch    int64             // seconds since 1970 at time 0
	control  *price.Controller // of the price; nil: there is a plan, or none yet
	reported float64           // price at which the present version was made
	version  uint32            // raised whenever the price has moved enough; 0: it is not steered
	meter    meter
	looked   sched.Time
	look     sched.Time // when to look at what was spent
}

// steer starts to control the price.
func (s *spending) steer(budget float64, month price.MonthRule) (err error) {
	pay := price.Pay{Average: budget, Month: month, Least: leastPrice, Most: mostPrice}
	if month != (price.MonthRule{}) {
		pay.Average = 0
	}
	s.control, err = price.NewController(pay, s.clock(0), startPrice)
	s.reported, s.version = startPrice, 1
	return err
}

// clock returns the seconds since 1970.
func (s *spending) clock(now sched.Time) int64 { return s.epoch + int64(now.Seconds()) }

// next returns when to look at what was spent: when it is time, or when the month ends or its money is used up.
func (s *spending) next() sched.Time {
	if s.control == nil {
		return s.look
	}
	return min(s.look, s.end())
}

// end returns when the month's allowance is used up at the present spending, or the month starts in which there is one
// again; Never where no month was agreed. It is never the time of the last look.
func (s *spending) end() sched.Time {
	m := s.control.Month()
	if m == nil {
		return sched.Never
	}
	at := func(unix int64) sched.Time { return sched.Time(unix-s.epoch) * sched.Time(time.Second) }
	if m.Stopped() || s.meter.GPUs == 0 {
		return at(m.End())
	}
	seconds := math.Ceil(3600 * (m.Allowance() - m.Spent()) / s.meter.GPUs)
	return min(at(m.End()), s.looked.Add(time.Duration(max(1, min(seconds, 1e9)))*time.Second))
}

// stopped reports whether nothing may be rented for the rest of the month.
func (s *spending) stopped() bool { return s.control != nil && s.control.Stopped() }

// take returns the GPU-hours paid for since the last look, and the hours since, and looks again after every.
func (s *spending) take(now sched.Time, every time.Duration) (paid, passed float64) {
	paid, passed = s.meter.take(now), now.Sub(s.looked).Hours()
	s.looked, s.look = now, now.Add(every)
	return paid, passed
}

// move moves the price by what was paid since the last look.
func (s *spending) move(now sched.Time, paid float64, r price.Response) {
	was := s.stopped()
	s.control.Spend(s.clock(now), paid, r)
	if p := s.control.Price(); math.Abs(p-s.reported) > notable*s.reported || was != s.stopped() {
		s.reported, s.version = p, s.version+1
	}
}
