package pipeline

import "github.com/trainyard/trainyard/sched"

// heads is the heap, best first, of the waiting groups whose best job may still fit in the walk under way.
//
// The walk works at its top. Evictions change more: they add groups and better jobs to groups; then the heap is built
// anew before the next job is looked at.

// nextHead returns the group whose best job is next in order, or None when none is left.
func (p *Pipeline) nextHead(now float64) int32 {
	if p.headsChanged {
		p.buildHeads(now)
	}
	for len(p.heads) > 0 {
		if g := &p.groups.list[p.heads[0]]; g.failed != p.walkNo && len(g.heap) > 0 {
			return p.heads[0]
		}
		p.groups.list[p.heads[0]].headIn = 0
		last := len(p.heads) - 1
		p.heads[0] = p.heads[last]
		p.heads = p.heads[:last]
		p.sinkHead(0, now)
	}
	return none
}

// addHead has group i looked at in the walk under way, unless its shape has failed.
func (p *Pipeline) addHead(i int32) {
	p.headsChanged = true
	if g := &p.groups.list[i]; g.failed != p.walkNo && g.headIn != p.walkNo {
		g.headIn = p.walkNo
		p.heads = append(p.heads, i)
	}
}

// addHeadBehind is addHead after job id was placed. A group whose best job ranks before id has had its turn, and more to
// choose from: nobody in it fits. Under MinRun it is looked at again: given does not tell whose protection has ended.
func (p *Pipeline) addHeadBehind(id sched.JobID, i int32, now float64) {
	if best := p.groups.list[i].heap[0]; p.guards() || beforeAt(&p.jobs[id], &p.jobs[best], id, best, now) {
		p.addHead(i)
	}
}

// buildHeads drops the groups that are done with and orders the others.
func (p *Pipeline) buildHeads(now float64) {
	p.headsChanged = false
	kept := p.heads[:0]
	for _, i := range p.heads {
		g := &p.groups.list[i]
		g.headIn = 0
		if g.failed != p.walkNo && len(g.heap) > 0 {
			g.headIn = p.walkNo
			kept = append(kept, i)
		}
	}
	p.heads = kept
	for i := len(p.heads)/2 - 1; i >= 0; i-- {
		p.sinkHead(i, now)
	}
}

// sinkHead moves the group at i down to where it belongs. A group without jobs sinks no further: nextHead drops it.
func (p *Pipeline) sinkHead(i int, now float64) {
	for {
		best := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(p.heads); c++ {
			if p.headBefore(p.heads[c], p.heads[best], now) {
				best = c
			}
		}
		if best == i {
			return
		}
		p.heads[i], p.heads[best] = p.heads[best], p.heads[i]
		i = best
	}
}

func (p *Pipeline) headBefore(a, b int32, now float64) bool {
	x, y := p.groups.list[a].heap, p.groups.list[b].heap
	if len(x) == 0 || len(y) == 0 {
		return len(x) == 0 && len(y) > 0 // to the top, where it is dropped
	}
	return beforeAt(&p.jobs[x[0]], &p.jobs[y[0]], x[0], y[0], now)
}
