package inventory

import (
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// numbers guesses the numbers that the engine will give the GPUs of the nodes that join at an instant.
type numbers struct {
	nodes []sched.Node
	next  sched.GPUID          // the first that no node has
	taken map[sched.GPUID]bool // first GPUs of the places that nodes of this instant take
}

func numbersOf(v *sched.View) numbers {
	return numbers{nodes: v.Nodes, next: sched.GPUID(len(v.GPUs)), taken: make(map[sched.GPUID]bool)}
}

// first returns the number that the first GPU of a node about to join is going to have: that of its place if it was
// there before, else of the first free place of its size, else the next. Nodes that leave at this instant are not
// counted: the next look puts a wrong guess right.
func (n *numbers) first(spec *sched.NodeSpec) sched.GPUID {
	fits := func(old *sched.Node) bool { return old.Spec.GPUs == spec.GPUs && !n.taken[old.First] }
	first := n.next
	old := slices.IndexFunc(n.nodes, func(old sched.Node) bool { return old.Spec.Name == spec.Name && fits(&old) })
	if old < 0 {
		old = slices.IndexFunc(n.nodes, func(old sched.Node) bool { return old.State == sched.NodeGone && fits(&old) })
	}
	if old >= 0 {
		first = n.nodes[old].First
	} else {
		n.next += sched.GPUID(spec.GPUs)
	}
	n.taken[first] = true
	return first
}
