package provision

import (
	"github.com/trainyard/trainyard/model/power"
	"github.com/trainyard/trainyard/sched"
)

// Cap sets the power cap of each target: one for all, or that under which the job's work takes the least energy among
// those that slow it down no more than Slow. Jobs of which nothing is known go without, and so do those with a deadline
// unless the cap is one for all: no one has asked whether they would keep it. A cap that others set is left alone.
//
// Source: You, Chung and Chowdhury, "Zeus", NSDI'23, which weighs energy and time by one number; a bound on the
// slow-down is ours.
type Cap struct {
	Of    func(model string) power.Caps // none where nothing is known; valid
	Slow  float64                       // >= 1; used where Fixed is 0
	Fixed sched.Watts                   // 0 = by energy

	known map[string]sched.Watts
}

var _ sched.Provisioner = (*Cap)(nil)

// Provision sets the caps of d's targets.
func (c *Cap) Provision(v *sched.View, d *sched.Desired) {
	for i := range d.Jobs {
		t := &d.Jobs[i]
		if t.GPUs.Len > 0 && t.Cap == 0 && t.Job >= 0 && int(t.Job) < len(v.Jobs) {
			t.Cap = c.limit(v.Jobs[t.Job].Spec)
		}
	}
}

// Slowdown returns how much longer a job takes under its cap than without, >= 1.
func (c *Cap) Slowdown(s *sched.JobSpec) float64 {
	limit := c.limit(s)
	if limit == 0 {
		return 1
	}
	curve := c.Of(s.Model)
	x, err := curve.At(limit)
	if err != nil {
		return 1 // limit leaves out what lies below the curve
	}
	return max(curve[len(curve)-1].Speed/x.Speed, 1)
}

// limit returns the cap of a job, 0 = none.
func (c *Cap) limit(s *sched.JobSpec) sched.Watts {
	if c.Fixed == 0 && s.Deadline > 0 {
		return 0
	}
	return c.ofModel(s.Model)
}

// ofModel returns the cap of jobs of a model, 0 = none.
func (c *Cap) ofModel(model string) sched.Watts {
	w, known := c.known[model]
	if known {
		return w
	}
	if curve := c.Of(model); len(curve) > 0 {
		switch best, err := curve.Best(c.Slow); {
		case c.Fixed > 0:
			w = max(c.Fixed, curve[0].Limit)
		case err == nil && best.Limit < curve[len(curve)-1].Limit:
			w = best.Limit
		}
	}
	if c.known == nil {
		c.known = make(map[string]sched.Watts)
	}
	c.known[model] = w
	return w
}
