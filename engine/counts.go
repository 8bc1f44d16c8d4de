package engine

import (
	"fmt"

	"github.com/trainyard/trainyard/sched"
)

// counts is how many jobs, nodes, GPUs and pools the events of a log may name.
type counts struct{ jobs, nodes, gpus, pools int }

func countsOf(v *sched.View) counts {
	return counts{len(v.Jobs), len(v.Nodes), len(v.GPUs), len(v.Pools)}
}

// check returns an error if e names a job, node or GPU which cannot exist by then, and counts a job that arrives and a
// node that joins.
func (c *counts) check(e *sched.Event) error {
	switch {
	case e.Kind == sched.JobArrived: // what its user wants of it may come at the same instant
		c.jobs++
	case e.Kind == sched.NodeJoined:
		c.nodes, c.gpus = c.nodes+1, c.gpus+e.NodeSpec.GPUs
	case e.Kind == sched.PoolChanged && int(e.Pool) == c.pools:
		c.pools++
	}
	f := e.Form()
	switch {
	case f.Job != sched.Made && misnames(f.Job, int32(e.Job), c.jobs):
		return fmt.Errorf("log: seq %d: %v of job %d, want one of the %d that have arrived", e.Seq, e.Kind, e.Job,
			c.jobs)
	case misnames(f.Node, int32(e.Node), c.nodes):
		return fmt.Errorf("log: seq %d: %v of node %d, want one of the %d that have joined", e.Seq, e.Kind, e.Node,
			c.nodes)
	case poolNamed(e) != sched.None && (poolNamed(e) < 0 || int(poolNamed(e)) >= c.pools):
		return fmt.Errorf("log: seq %d: %v of pool %d, want one of %d", e.Seq, e.Kind, poolNamed(e), c.pools)
	case e.Kind == sched.GPUChanged && !(e.Value >= 0 && e.Value < float64(c.gpus)):
		return fmt.Errorf("log: seq %d: %v of GPU %v, want one of %d", e.Seq, e.Kind, e.Value, c.gpus)
	}
	return c.checkOwn(e)
}

// checkOwn is check for what the fields of some kinds name as well: a node with a state, a target, GPUs.
func (c *counts) checkOwn(e *sched.Event) error {
	switch {
	case e.Kind == sched.Ordered && sched.ActionKind(e.Code) == sched.SetNode &&
		(e.Node < 0 || int(e.Node) >= c.nodes || !(e.Value >= 0 && e.Value <= float64(sched.NodeGone))):
		return fmt.Errorf("log: seq %d: node %d is ordered %v, want one of %d and a state", e.Seq, e.Node, e.Value,
			c.nodes)
	case e.Kind == sched.Decided && e.Target == nil:
		return fmt.Errorf("log: seq %d: %v without a target", e.Seq, e.Kind)
	case e.Kind != sched.Decided && e.Kind != sched.StartFailed && e.Kind != sched.Moved:
		return nil
	}
	for _, g := range e.GPUs {
		if g < 0 || int(g) >= c.gpus {
			return fmt.Errorf("log: seq %d: %v names GPU %d, want one of %d", e.Seq, e.Kind, g, c.gpus)
		}
	}
	return nil
}

// misnames reports whether an event that mentions one of so many names none of them.
func misnames(m sched.Mention, id int32, of int) bool {
	return m != sched.NotNamed && !(m == sched.MaybeNamed && id == sched.None) && (id < 0 || int(id) >= of)
}

// poolNamed returns the pool an event is about, None if none.
func poolNamed(e *sched.Event) sched.PoolID {
	switch {
	case e.Kind == sched.PoolChanged, e.Kind == sched.PriceChanged,
		e.Kind == sched.Moved && e.Node == sched.None && len(e.GPUs) == 0,
		e.Kind == sched.Ordered && sched.ActionKind(e.Code) == sched.Rent:
		return e.Pool
	case e.Kind == sched.NodeJoined:
		return e.NodeSpec.Pool
	}
	return sched.None
}
