package timeline

import (
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// mostPending is how many steps since the last event about a job are kept apart: what goes on while there is nothing to
// do takes no memory.
const mostPending = 512

// pend adds what was so for a while. Where much is pending, a step that is as the one before makes that longer.
func (t *Timeline) pend(s step) {
	if n := len(t.pending); n >= mostPending {
		last := &t.pending[n-1]
		same := *last
		same.from, same.to = s.from, s.to
		if same == s && last.to == s.from {
			last.to = s.to
			return
		}
	}
	t.pending = append(t.pending, s)
}

// Snapshot returns a copy that others may read while t goes on. It is not to be folded into. While a job is not done it
// goes on to now: what was so at the last event is so still.
func (t *Timeline) Snapshot(now sched.Time) *Timeline {
	c := *t
	c.Watts = nil
	if t.old == nil {
		c.Jobs, c.Attempts = slices.Clone(t.Jobs), slices.Clone(t.Attempts)
	} else {
		c.Jobs, c.Attempts, c.old = t.old.jobs(&t.jobs), t.old.all(), nil
	}
	c.Nodes, c.gpus, c.spells = slices.Clone(t.Nodes), slices.Clone(t.gpus), slices.Clone(t.spells)
	c.jobs = jobs{user: t.jobs.user}
	c.on = make([][]int32, len(t.on))
	c.pending = slices.Clone(t.pending)
	if t.known != nil {
		c.known = t.known.clone()
		c.known.joules = t.known.joules
		c.known.joules.list = slices.Clone(t.known.joules.list)
		c.known.extremes = t.known.extremes.clone()
	}
	if now > c.now && t.jobs.undone > 0 {
		if t.Watts != nil {
			watts := t.Watts()
			c.Watts = func() float64 { return watts }
		}
		c.advance(now)
		c.flush()
	}
	return &c
}
