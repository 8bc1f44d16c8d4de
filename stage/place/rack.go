package place

import (
	"cmp"
	"slices"

	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
)

// Distance returns how far apart the most distant two of gpus, at least one, are. Nodes whose rack is not known, 0, are
// in no rack together.
func Distance(v *sched.View, gpus []sched.GPUID) variability.Level {
	first, level := v.GPUs[gpus[0]].Node, variability.SameNode
	for _, g := range gpus[1:] {
		n := v.GPUs[g].Node
		switch {
		case n == first:
		case v.Nodes[n].Spec.Rack == 0 || v.Nodes[n].Spec.Rack != v.Nodes[first].Spec.Rack:
			return variability.Across
		default:
			level = variability.SameRack
		}
	}
	return level
}

// rackCount is a rack and how many GPUs a gang could take there.
type rackCount struct{ rack, free int }

// inRack picks GPUs of one rack in bins 0..last: where that takes the fewest nodes, then where the fewest GPUs are
// free, then in the lower number. A gang wider than a node takes few nodes, another the fastest GPUs. It reports false,
// and picks nothing, if no rack has enough.
func (p *pick) inRack(last int, wider bool) bool {
	p.order = p.order[:0]
	for r := 1; r < len(p.racks); r++ {
		if k := p.upToBin(p.t, r, last); k >= p.n {
			p.order = append(p.order, rackCount{r, k})
		}
	}
	slices.SortFunc(p.order, func(a, b rackCount) int { return cmp.Or(a.free-b.free, a.rack-b.rack) })
	var best []sched.GPUID
	fewest := 0
	for _, c := range p.order {
		p.rack = c.rack
		ok := false
		if wider {
			ok = p.fewest(last)
		} else {
			ok = p.fastest(last)
		}
		if !ok {
			continue // its nodes lack CPUs or memory
		}
		if n := p.nodes(); best == nil || n < fewest {
			best, fewest = slices.Clone(p.dst[p.begin:]), n
		}
		p.dst = p.dst[:p.begin]
	}
	p.rack = everywhere
	p.dst = append(p.dst, best...)
	return best != nil
}

// nodes returns how many nodes the gang is on.
func (p *pick) nodes() int {
	var on []sched.NodeID
	for _, g := range p.dst[p.begin:] {
		on = append(on, p.l.NodeOf(g))
	}
	slices.Sort(on)
	return len(slices.Compact(on))
}

// anywhere picks GPUs on several nodes in bins 0..last as PM-First does; for a gang wider than a node few nodes, of one
// rack if that takes no more.
func (p *pick) anywhere(last int, wider bool) bool {
	if !wider {
		return p.fastest(last)
	}
	if p.racks == nil || !p.inRack(last, true) {
		return p.fewest(last)
	}
	near, nodes := slices.Clone(p.dst[p.begin:]), p.nodes()
	p.dst = p.dst[:p.begin]
	if p.fewest(last) && p.nodes() < nodes {
		return true
	}
	p.dst = append(p.dst[:p.begin], near...)
	return true
}
