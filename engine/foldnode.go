package engine

import (
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// nodeJoined lets a node take the slot of its name, or of a node that is gone and has as many GPUs, or a new one. What
// was requested of a node and its GPUs holds on when it comes back, unless it was to go.
func (s *State) nodeJoined(e *sched.Event) {
	v := &s.view
	id, known := s.slots.byName[e.NodeSpec.Name]
	if known && v.Nodes[id].State == sched.NodeUp {
		broken(&s.view, e, "node %d %q is up already", id, e.NodeSpec.Name)
	}
	if known && v.Nodes[id].Spec.GPUs != e.NodeSpec.GPUs { // another machine, too large or small for the slot
		s.setNode(e, id, sched.NodeGone)
		v.Nodes[id].Spec.Name = ""
		known = false
	}
	if !known {
		id = s.slots.take(v, e.NodeSpec.GPUs)
		lay(s)
		v.Nodes[id].Target = sched.NodeUp
	}
	n := &v.Nodes[id]
	if n.Target == sched.NodeGone {
		n.Target = sched.NodeUp
	}
	if !known {
		if s.slots.byName[n.Spec.Name] == id {
			delete(s.slots.byName, n.Spec.Name)
		}
		s.slots.byName[e.NodeSpec.Name] = id
	}
	s.setNode(e, id, sched.NodeDown) // the machine before is paid for no more
	if !known || n.Spec.DollarsHr != e.NodeSpec.DollarsHr {
		n.Price = e.NodeSpec.DollarsHr
	}
	n.Spec = *e.NodeSpec
	s.setNode(e, id, sched.NodeUp)
	n.Since = e.Time
	n.Generation++
	n.Ordered, n.Awaited, n.Watts = sched.NodeUp, false, 0
	s.markMoving(id)
	e.Node = id
	for g := n.First; g < n.First+sched.GPUID(n.Spec.GPUs); g++ {
		gpu := &v.GPUs[g]
		gpu.State, gpu.Blamed = sched.GPUInUse, 0
		s.rests.set(&s.view, g, 0)
		gpu.Quarantined = gpu.Quarantined && known
	}
	recheck(s, id)
}

// nodeChanged gives a node another state. Of a rented node that went without being asked to, none is ordered any more:
// the next plan rents another.
func (s *State) nodeChanged(e *sched.Event) {
	n := &s.view.Nodes[e.Node]
	was := n.State
	s.setNode(e, e.Node, sched.NodeState(e.Code))
	n.Awaited = n.Awaited && n.State != n.Ordered
	if was == sched.NodeDraining && n.State == sched.NodeUp {
		s.rests.absolve(&s.view, n.First, n.Spec.GPUs)
		recheck(s, e.Node)
	}
	lost := n.State == sched.NodeGone && was != sched.NodeGone && n.Target != sched.NodeGone
	if p := s.view.PoolOf(n); p != nil && lost && p.Ordered > 0 {
		p.Settle(e.Time)
		p.Ordered--
	}
	s.dropUnusable()
}

// setNode keeps the list of gone slots, and what is paid for, in step with a node's state.
func (s *State) setNode(e *sched.Event, id sched.NodeID, state sched.NodeState) {
	n := &s.view.Nodes[id]
	was, joined := n.State, n.Joined()
	n.State = state
	switch {
	case was == state:
	case state == sched.NodeGone:
		s.slots.goneOf(n.Spec.GPUs, len(s.view.Nodes)).Set(int(id))
	case was == sched.NodeGone:
		s.slots.goneOf(n.Spec.GPUs, len(s.view.Nodes)).Clear(int(id))
	}
	p := s.view.PoolOf(n)
	if p == nil || joined == n.Joined() {
		return
	}
	p.Settle(e.Time)
	if n.Joined() {
		p.Nodes++
	} else {
		p.Nodes--
		p.PayRest(n.Since, e.Time)
	}
}

// gpuChanged gives a GPU another state. One that is back in use has been looked at: nothing is held against it any
// more.
func (s *State) gpuChanged(e *sched.Event) {
	g, state := sched.GPUID(e.Value), sched.GPUState(e.Code)
	gpu := &s.view.GPUs[g]
	if gpu.State == sched.GPUWithheld && state == sched.GPUInUse {
		s.rests.absolve(&s.view, g, 1)
	}
	if state == sched.GPUInUse && gpu.State != sched.GPUInUse { // its driver saw what was wrong, and that it is over
		s.rests.set(&s.view, g, 0)
	}
	gpu.State = state
	recheck(s, gpu.Node)
	s.dropUnusable()
}

// moved notes what is requested of a node, a pool or a GPU.
func (s *State) moved(e *sched.Event) {
	switch {
	case len(e.GPUs) > 0:
		for _, g := range e.GPUs {
			switch e.Code {
			case sched.RestGPU:
				s.rests.set(&s.view, g, e.WorkFrom)
			case sched.RestedGPU:
				s.rests.set(&s.view, g, 0)
			default:
				s.view.GPUs[g].Quarantined, s.view.GPUs[g].Blamed = e.Code == sched.QuarantineGPU, 0
			}
			recheck(s, s.view.GPUs[g].Node)
		}
		s.dropUnusable()
	case e.Node == sched.None:
		pool(&s.view, e).Target = e.Code
	default:
		s.view.Nodes[e.Node].Target = sched.NodeState(e.Code)
		s.markMoving(e.Node)
		s.dropUnusable()
	}
}

// markMoving has node id looked at by the next Reconcile, if its target and order differ.
func (s *State) markMoving(id sched.NodeID) {
	if n := &s.view.Nodes[id]; n.Target != n.Ordered && !slices.Contains(s.moving, id) {
		s.moving = append(s.moving, id)
	}
}

// poolChanged takes a pool that is new, or new limits, boot time and price of a known one.
func poolChanged(v *sched.View, e *sched.Event) {
	if int(e.Pool) == len(v.Pools) {
		v.Pools = append(v.Pools, sched.Pool{Settled: e.Time})
	}
	p := pool(v, e)
	p.Settle(e.Time)
	if e.PoolSpec.Price != p.Spec.Price {
		p.Price = e.PoolSpec.Price
	}
	p.Spec = *e.PoolSpec
}

// priceChanged takes the price of a pool, of an owned node or of all owned nodes.
func priceChanged(v *sched.View, e *sched.Event) {
	if e.Pool != sched.None {
		p := pool(v, e)
		p.Settle(e.Time)
		p.Price = sched.Dollars(e.Value)
		return
	}
	for i := range v.Nodes {
		if n := &v.Nodes[i]; n.Spec.Pool == sched.None && (e.Node == sched.None || int(e.Node) == i) {
			n.Price = sched.Dollars(e.Value)
		}
	}
}

// pool returns the pool of an event about one.
func pool(v *sched.View, e *sched.Event) *sched.Pool {
	if e.Pool < 0 || int(e.Pool) >= len(v.Pools) {
		broken(v, e, "pool %d is not known", e.Pool)
	}
	return &v.Pools[e.Pool]
}
