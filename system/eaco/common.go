package eaco

import (
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// core is what the systems of this package share: the book, the search for sets, and what is known of sets.
type core struct {
	book
	finder
	ask    *predictor
	dirty  bool   // something changed since the queue was last looked at
	primed bool   // the book shows all of the view
	loaded []seen // until it is primed
}

func newCore(k Known, r rule) core {
	return core{book: book{know: k}, finder: finder{rule: r}, ask: newPredictor(k.Learner), dirty: true}
}

// prime takes over what the view shows where that was not seen to come about: after a restart, or a change of policy.
func (c *core) prime(v *sched.View) {
	c.resync(v)
	copy(c.seen, c.loaded)
	for i := range c.nodes {
		c.nodes[i].fresh = false
	}
	c.primed, c.loaded = true, nil
}

// fold folds an event into book and history.
func (c *core) fold(v *sched.View, e *sched.Event) {
	c.know.Learner.Observe(v, e)
	if !c.primed {
		c.prime(v)
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
		c.dirty = true
	case sched.JobChanged: // it may have another place in the queue
		c.waiting = slices.DeleteFunc(c.waiting, func(o sched.JobID) bool { return o == e.Job })
		c.queued[e.Job], c.dirty = false, true
		c.job(v, e.Job)
	case sched.Renewed:
		c.resync(v)
		c.dirty = true
	default:
		c.job(v, e.Job)
		c.dirty = c.dirty || e.Kind == sched.AttemptEnded || e.Kind == sched.StartFailed
	}
}

// job takes what changed about a job: one that waits now, or GPUs given up, are something to look at.
func (c *core) job(v *sched.View, id sched.JobID) {
	if id < 0 || int(id) >= len(v.Jobs) {
		return
	}
	c.grow(v)
	waited, held := c.queued[id], len(c.held[id])
	c.sync(v, id)
	c.dirty = c.dirty || c.queued[id] && !waited || len(c.held[id]) < held
}

// node takes what changed about a node.
func (c *core) node(v *sched.View, n sched.NodeID) {
	if n < 0 {
		return
	}
	c.grow(v)
	c.nodes[n].fresh = false
	node := &v.Nodes[n]
	for g := node.First; g < node.First+sched.GPUID(node.Spec.GPUs); g++ {
		for _, id := range slices.Clone(c.on[g]) {
			c.sync(v, id)
		}
	}
	c.dirty = c.dirty || node.Open()
}
