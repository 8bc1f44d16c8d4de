package share

import (
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// Core is what all who have jobs share GPUs start from: who is where, the search for sets, and what is known of sets.
type Core struct {
	book
	finder
	ask    *predictor
	Dirty  bool   // something changed since the queue was last looked at
	primed bool   // the book shows all of the view
	loaded []seen // until it is primed
}

// NewCore returns one that joins by a rule.
func NewCore(k Known, r Rule) Core {
	return Core{book: book{Know: k}, finder: finder{rule: r}, ask: newPredictor(k.Learner), Dirty: true}
}

// Prime takes over what the view shows where that was not seen to come about: after a restart, or a change of policy.
func (c *Core) Prime(v *sched.View) {
	c.resync(v)
	copy(c.seen, c.loaded)
	for i := range c.nodes {
		c.nodes[i].fresh = false
	}
	c.primed, c.loaded = true, nil
}

// Fold folds an event into book and history.
func (c *Core) Fold(v *sched.View, e *sched.Event) {
	c.Know.Learner.Observe(v, e)
	if !c.primed {
		c.Prime(v)
	}
	if p := c.Know.Peaks; p != nil && p.News() {
		c.Dirty = true
		for i := range c.nodes {
			c.nodes[i].fresh = false
		}
	}
	switch e.Kind {
	case sched.Ticked, sched.Progressed, sched.EpochEnded, sched.PriceChanged, sched.PoolChanged, sched.Noted,
		sched.Ordered:
	case sched.Measured:
		c.measured(v, e)
	case sched.NodeLeft, sched.NodeJoined, sched.NodeChanged, sched.Moved:
		c.node(v, e.Node)
	case sched.GPUChanged:
		c.node(v, v.GPUs[sched.GPUID(e.Value)].Node)
	case sched.Saved: // it may be taken on trial now
		c.Dirty = true
	case sched.JobChanged: // it may have another place in the queue
		c.Waiting = slices.DeleteFunc(c.Waiting, func(o sched.JobID) bool { return o == e.Job })
		c.Queued[e.Job], c.Dirty = false, true
		c.job(v, e.Job)
	case sched.Renewed:
		c.resync(v)
		c.Dirty = true
	default:
		c.job(v, e.Job)
		c.Dirty = c.Dirty || e.Kind == sched.AttemptEnded || e.Kind == sched.StartFailed
	}
}

// job takes what changed about a job: one that waits now, GPUs given up, or one that others waited for and that is
// gone, are something to look at.
func (c *Core) job(v *sched.View, id sched.JobID) {
	if id < 0 || int(id) >= len(v.Jobs) {
		return
	}
	c.grow(v)
	waited, held := c.Queued[id], len(c.Held[id])
	c.sync(v, id)
	gone := waited && !c.Queued[id] && len(c.Held[id]) == 0
	c.Dirty = c.Dirty || c.Queued[id] && !waited || len(c.Held[id]) < held || gone
}

// node takes what changed about a node.
func (c *Core) node(v *sched.View, n sched.NodeID) {
	if n < 0 {
		return
	}
	c.grow(v)
	c.nodes[n].fresh = false
	node := &v.Nodes[n]
	for g := node.First; g < node.First+sched.GPUID(node.Spec.GPUs); g++ {
		for _, id := range slices.Clone(c.On[g]) {
			c.sync(v, id)
		}
	}
	c.Dirty = c.Dirty || node.Open()
}
