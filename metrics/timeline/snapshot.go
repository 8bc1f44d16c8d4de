package timeline

import (
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// Snapshot returns a copy that others may read while t goes on. It is not to be folded into. While a job is not done it
// goes on to now: what was so at the last event is so still.
func (t *Timeline) Snapshot(now sched.Time) *Timeline {
	c := *t
	if t.old == nil {
		c.Jobs, c.Attempts = slices.Clone(t.Jobs), slices.Clone(t.Attempts)
	} else {
		c.Jobs, c.Attempts, c.old = t.old.jobs(&t.jobs), t.old.all(), nil
	}
	c.Nodes, c.gpus, c.spells = slices.Clone(t.Nodes), slices.Clone(t.gpus), slices.Clone(t.spells)
	c.jobs = jobs{user: t.jobs.user}
	c.on = make([][]int32, len(t.on))
	c.pending.list = slices.Clone(t.pending.list)
	if t.known != nil {
		c.known = t.known.clone()
		c.known.joules, c.known.costs = t.known.joules.clone(), t.known.costs.clone()
		c.known.extremes = t.known.extremes.clone()
	}
	if now > c.now && t.jobs.undone > 0 {
		c.advance(now)
		c.flush()
	}
	c.Meter = nil
	return &c
}
