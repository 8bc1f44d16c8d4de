package experiment

import "github.com/trainyard/trainyard/sched"

// paidFor is a Sink that adds up the GPUs paid for between two times, from the request of a node until it has gone.
type paidFor struct {
	from, to sched.Time
	now      sched.Time
	gpus     float64 // since now
	seconds  float64 // GPU-seconds
}

// Log folds one event.
func (p *paidFor) Log(v *sched.View, e *sched.Event) {
	p.until(e.Time)
	switch e.Kind {
	case sched.NodeJoined, sched.NodeLeft, sched.NodeChanged, sched.Ordered:
		p.gpus = 0
		for i := range v.Pools {
			pool := &v.Pools[i]
			p.gpus += float64(max(pool.Ordered, pool.Nodes)) * float64(pool.Spec.GPUs)
		}
	}
}

func (p *paidFor) until(now sched.Time) {
	p.seconds += p.gpus * max(0, min(now, p.to).Sub(max(p.now, p.from)).Seconds())
	p.now = now
}

// mean returns the GPUs paid for on average.
func (p *paidFor) mean() float64 {
	p.until(max(p.now, p.to))
	return p.seconds / p.to.Sub(p.from).Seconds()
}
