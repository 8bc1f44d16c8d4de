package engine

import "github.com/trainyard/trainyard/sched"

// slots are the places of nodes in the View: which node has which, and which are to be taken again.
type slots struct {
	byName map[string]sched.NodeID // the latest taker of a slot
	gone   []sched.Bitset          // slots to be taken again, by number of GPUs
}

// take returns a slot of so many GPUs for a new node: one whose node is gone, or else a new one at the end of v.
func (s *slots) take(v *sched.View, gpus int) sched.NodeID {
	if id := s.goneOf(gpus, len(v.Nodes)).Next(0); id >= 0 {
		return sched.NodeID(id)
	}
	id := sched.NodeID(len(v.Nodes))
	v.Nodes = append(v.Nodes, sched.Node{Spec: sched.NodeSpec{GPUs: gpus, Pool: sched.None},
		First: sched.GPUID(len(v.GPUs)), State: sched.NodeDown})
	for range gpus {
		v.GPUs = append(v.GPUs, sched.GPU{Node: id})
	}
	return id
}

// goneOf returns the slots of so many GPUs that may be taken again, with room for so many nodes.
func (s *slots) goneOf(gpus, nodes int) sched.Bitset {
	for gpus >= len(s.gone) {
		s.gone = append(s.gone, nil)
	}
	s.gone[gpus] = s.gone[gpus].Grow(nodes)
	return s.gone[gpus]
}
