package metrics

import (
	"math"

	"github.com/trainyard/trainyard/sched"
)

// rent is what pools cost.
type rent struct {
	before sched.Dollars // at the first arrival
	at     sched.Time    // of the event before
	spent  sched.Dollars // up to then
	rate   sched.Dollars // per hour since then
	over   sched.Dollars // paid at once so far, for the rest of billing periods
}

// update takes what pools cost after an event. What they cost more than they did per hour was paid at once.
func (r *rent) update(v *sched.View) {
	now := spent(v)
	due := r.spent + r.rate*sched.Dollars(v.Now.Sub(r.at).Hours())
	if math.Abs(float64(now-due)) > 1e-9*float64(now) {
		r.over += now - due
	}
	r.at, r.spent, r.rate = v.Now, now, 0
	for i := range v.Pools {
		p := &v.Pools[i]
		r.rate += p.Price * sched.Dollars(p.Paid())
	}
}

// spent returns what all pools have cost so far.
func spent(v *sched.View) (sum sched.Dollars) {
	for i := range v.Pools {
		sum += v.Pools[i].SpentNow(v.Now)
	}
	return sum
}

// Bill says what the cluster of a Recorder draws and costs at present.
type Bill struct{ of *Recorder }

// Bill returns the bill of r, which changes as r folds.
func (r *Recorder) Bill() Bill { return Bill{r} }

// Watts returns what all nodes draw at present; 0 where their power is not known.
func (b Bill) Watts() float64 {
	m := &b.of.meter
	return m.jobs.watts + m.idle.watts + m.sleep.watts
}

// Spending returns how many dollars the nodes cost per hour at present, owned and rented, and how many were paid at
// once so far, for the rest of billing periods of nodes that went. Over time they sum to Result.Cost.
func (b Bill) Spending() (perHour, atOnce float64) {
	return float64(b.of.price + b.of.rent.rate), float64(b.of.rent.over)
}

// EnergyCost returns how many dollars the power drawn at present costs from one time to another; 0 where its price is
// unknown.
func (b Bill) EnergyCost(from, to sched.Time) float64 {
	if b.of.Energy.Price == nil {
		return 0
	}
	return b.of.Energy.Price.Of(sched.Watts(b.Watts()), from, to)
}
