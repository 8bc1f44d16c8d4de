package remaining

import (
	"math"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Residual returns what the work that job j has left falls short of with probability q in 0..1: 0.5 is the median.
// Where a wall time is all that is known, all that is left of it is as likely. A job that reports its steps is taken at
// its word.
func (e *Estimator) Residual(v *sched.View, j sched.JobID, q float64) time.Duration {
	if left, ok := e.reported(v, j); ok {
		return left
	}
	q = min(max(q, 0), 1)
	b := e.basis(v, j)
	switch {
	case b.sample != nil:
		return duration(min(b.sample.quantile(b.done/b.unit, q)*b.unit, b.most))
	case b.most < math.Inf(1):
		return duration(q * b.most)
	}
	return duration(lindy(max(b.done, Unknown.Seconds()), q))
}

// quantile returns what x-a falls short of with probability q in 0..1 where x > a. Of m numbers above a, in order, each
// next one is exceeded with a probability less by 1/(m+1), and straight between them. The last 1/(m+1) goes by lindy.
func (w *window) quantile(a, q float64) float64 {
	larger, _ := w.beyond(a)
	m := float64(len(larger))
	at := q * (m + 1)
	if at >= m {
		last := a
		if m > 0 {
			last = larger[len(larger)-1]
		}
		return lindy(last, (at-m)) + (last - a)
	}
	k := int(at)
	low := a
	if k > 0 {
		low = larger[k-1]
	}
	return max(low-a+float64((at-float64(k))*(larger[k]-low)), 0)
}

// lindy returns what the rest falls short of with probability q of something that has lasted a: it lasts t times as
// long with probability 1/t. Half the time that is a at most; the mean is not finite.
func lindy(a, q float64) float64 {
	if q >= 1 {
		return math.Inf(1)
	}
	return a * q / (1 - q)
}
