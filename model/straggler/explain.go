package straggler

import (
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// A slow attempt is explained by a GPU that it uses, by the node of one, or by the rack, unless something in there has
// been seen healthy since. Of all explanations of all slow attempts the one that explains most is taken, the smaller
// unit if several do; what it explains is taken out, and so on. This is the greedy cover of a set, and not always the
// least.

// scope is a level of the tree of the cluster.
type scope uint8

const (
	ofGPU scope = iota
	ofNode
	ofRack
)

// fewForRack is how many slow attempts it takes to blame a rack.
const fewForRack = 3

// tally counts what units explain.
type tally struct {
	explains [3][]int32 // by level and unit: how many of the cases left
	lastCase [3][]int32 // the case counted last, from 1
	left     []*incident
	blame    []sched.GPUID
	units    []int32
}

// unit returns the unit of a level that a GPU is in, or None.
func (d *Detector) unit(l scope, g sched.GPUID) int32 {
	switch n := d.gpus[g].node; {
	case l == ofGPU:
		return int32(g)
	case l == ofNode:
		return n
	default:
		return d.nodes[n].rack
	}
}

// blame returns the GPUs that explain case c and the share of the blame of each; the slice is valid until the next
// call. No one is blamed where all GPUs were cleared.
func (d *Detector) blame(c *incident) (gpus []sched.GPUID, share float64) {
	t := &d.tally
	t.left = append(t.left[:0], d.cases...)
	for slices.Contains(t.left, c) {
		d.count(t)
		l, most := t.best()
		if most == 0 {
			break
		}
		t.units = t.units[:0]
		for _, g := range c.gpus {
			if u := d.unit(l, g); d.suspect(g, c) && t.explains[l][u] == most && d.wholly(l, u, c) &&
				!slices.Contains(t.units, u) {
				t.units = append(t.units, u)
			}
		}
		if len(t.units) > 0 {
			return d.members(l, t), 1 / float64(len(t.units))
		}
		u := int32(slices.Index(t.explains[l], most))
		t.left = slices.DeleteFunc(t.left, func(x *incident) bool { return d.explainedBy(l, u, x) })
	}
	return nil, 0
}

// best returns the level of the unit that explains most, and how many cases that is.
func (t *tally) best() (scope, int32) {
	var most [3]int32
	for l := range most {
		for _, x := range t.explains[l] {
			most[l] = max(most[l], x)
		}
	}
	switch {
	case most[ofRack] > max(most[ofGPU], most[ofNode]) && most[ofRack] >= fewForRack:
		return ofRack, most[ofRack]
	case most[ofNode] > most[ofGPU]:
		return ofNode, most[ofNode]
	}
	return ofGPU, most[ofGPU]
}

// count says of each unit how many of the cases left it explains.
func (d *Detector) count(t *tally) {
	racks := int32(0)
	for i := range d.nodes {
		racks = max(racks, d.nodes[i].rack)
	}
	for l, n := range [...]int{len(d.gpus), len(d.nodes), int(racks) + 1} {
		t.explains[l], t.lastCase[l] = zeros(t.explains[l], n), zeros(t.lastCase[l], n)
	}
	for i, c := range t.left {
		for _, g := range c.gpus {
			if !d.suspect(g, c) {
				continue
			}
			for l := ofGPU; l <= ofRack; l++ {
				u := d.unit(l, g)
				if t.lastCase[l][u] == int32(i)+1 {
					continue
				}
				if t.lastCase[l][u] = int32(i) + 1; d.wholly(l, u, c) {
					t.explains[l][u]++
				}
			}
		}
	}
}

// zeros returns a slice of n zeros, x if it is large enough.
func zeros(x []int32, n int) []int32 {
	x = slices.Grow(x[:0], n)[:n]
	clear(x)
	return x
}

// explainedBy reports whether a unit explains case c.
func (d *Detector) explainedBy(l scope, u int32, c *incident) bool {
	return d.wholly(l, u, c) && slices.ContainsFunc(c.gpus, func(g sched.GPUID) bool {
		return d.suspect(g, c) && d.unit(l, g) == u
	})
}

// wholly reports whether nothing of a unit has been seen healthy since case c started. A rack is more than one node.
func (d *Detector) wholly(l scope, u int32, c *incident) bool {
	switch l {
	case ofGPU:
		return true // asked of suspects alone
	case ofNode:
		return !slices.ContainsFunc(d.nodes[u].gpus, func(g sched.GPUID) bool { return !d.suspect(g, c) })
	}
	nodes := 0
	for n := range d.nodes {
		if d.nodes[n].rack != u {
			continue
		}
		if nodes++; !d.wholly(ofNode, int32(n), c) {
			return false
		}
	}
	return u != 0 && nodes > 1
}

// members returns the GPUs of the units found.
func (d *Detector) members(l scope, t *tally) []sched.GPUID {
	t.blame = t.blame[:0]
	for g := range d.gpus {
		if d.gpus[g].node != sched.None && slices.Contains(t.units, d.unit(l, sched.GPUID(g))) {
			t.blame = append(t.blame, sched.GPUID(g))
		}
	}
	return t.blame
}
