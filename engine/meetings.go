package engine

import (
	"fmt"

	"github.com/trainyard/trainyard/sched"
)

// claims are who gives up and takes which GPU in an exchange where none is shared: then the tenants need not be counted
// off and on.
type claims struct {
	left, taken []uint32 // by GPU: the exchange in which it was given up, or taken, last
	nodes       []uint32 // by node: the last one in which a GPU of it was either
	exchange    uint32
}

// begin starts an exchange among the GPUs of v.
func (c *claims) begin(v *sched.View) {
	if c.exchange++; c.exchange == 0 || len(c.left) < len(v.GPUs) {
		c.left, c.taken = make([]uint32, len(v.GPUs)), make([]uint32, len(v.GPUs))
		c.nodes, c.exchange = make([]uint32, len(v.Nodes)), 1
	}
}

// leave notes that set is given up.
func (c *claims) leave(v *sched.View, set []sched.GPUID) { c.note(v, c.left, set) }

// take notes that set, which can be had, is taken.
func (c *claims) take(v *sched.View, set []sched.GPUID) { c.note(v, c.taken, set) }

func (c *claims) note(v *sched.View, done []uint32, set []sched.GPUID) {
	for _, g := range set {
		done[g], c.nodes[v.GPUs[g].Node] = c.exchange, c.exchange
	}
}

// conflict says which GPU of set cannot be had, or "".
func (c *claims) conflict(s *State, set []sched.GPUID) string {
	for len(set) > 0 {
		n, k := s.view.GPUs[set[0]].Node, s.view.Lead(set)
		if c.nodes[n] == c.exchange || s.facts[n].wanted > 0 { // seldom
			for _, g := range set[:k] {
				if c.taken[g] == c.exchange || c.left[g] != c.exchange && s.view.GPUs[g].Targets > 0 {
					return fmt.Sprintf("GPU %d has 1 tenants already", g)
				}
			}
		}
		set = set[k:]
	}
	return ""
}
