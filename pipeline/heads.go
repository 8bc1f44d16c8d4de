package pipeline

import "github.com/trainyard/trainyard/sched"

// heads is the heap, best first, of the waiting groups whose best job may still fit in the walk under way.
//
// The walk works at its top. Evictions change more: they add groups and better jobs to groups; then the heap is built
// again before the next job is looked at.
type heads struct {
	heap     []int32 // groups by index
	changed  bool    // heap is to be built again
	hopeless []int32 // groups whose best job cannot fit until some job is evicted
}

// begin empties the heads.
func (h *heads) begin() { h.heap, h.hopeless = h.heap[:0], h.hopeless[:0] }

// next returns the group whose best job is next in order, or none.
func (h *heads) next(gs *groups, b *books, walk uint32, now float64) int32 {
	if h.changed {
		h.build(gs, b, walk, now)
	}
	for len(h.heap) > 0 {
		if g := &gs.list[h.heap[0]]; g.failed != walk && len(g.heap) > 0 {
			return h.heap[0]
		}
		gs.list[h.heap[0]].headIn = 0
		last := len(h.heap) - 1
		h.heap[0] = h.heap[last]
		h.heap = h.heap[:last]
		h.sink(gs, b, 0, now)
	}
	return none
}

// add has group i looked at in the walk under way, unless its shape has failed.
func (h *heads) add(gs *groups, i int32, walk uint32) {
	h.changed = true
	if g := &gs.list[i]; g.failed != walk && g.headIn != walk {
		g.headIn = walk
		h.heap = append(h.heap, i)
	}
}

// build drops the groups that are done with and orders the others.
func (h *heads) build(gs *groups, b *books, walk uint32, now float64) {
	h.changed = false
	kept := h.heap[:0]
	for _, i := range h.heap {
		g := &gs.list[i]
		g.headIn = 0
		if g.failed != walk && len(g.heap) > 0 {
			g.headIn = walk
			kept = append(kept, i)
		}
	}
	h.heap = kept
	for i := len(h.heap)/2 - 1; i >= 0; i-- {
		h.sink(gs, b, i, now)
	}
}

// sink moves the group at i down to where it belongs. A group without jobs sinks no further: next drops it.
func (h *heads) sink(gs *groups, b *books, i int, now float64) {
	for {
		best := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(h.heap); c++ {
			if headBefore(gs, b, h.heap[c], h.heap[best], now) {
				best = c
			}
		}
		if best == i {
			return
		}
		h.heap[i], h.heap[best] = h.heap[best], h.heap[i]
		i = best
	}
}

func headBefore(gs *groups, b *books, i, j int32, now float64) bool {
	x, y := gs.list[i].heap, gs.list[j].heap
	if len(x) == 0 || len(y) == 0 {
		return len(x) == 0 && len(y) > 0 // to the top, where it is dropped
	}
	return b.beforeAt(x[0], y[0], now)
}

// takers knows who took which GPU in a walk.
type takers struct {
	by   []sched.JobID // by GPU: who took it in the walk at
	at   []uint32
	walk uint32 // the walk whose takers were noted
}

// note notes, once a walk, who took which of the GPUs; taken are the jobs that were placed.
func (t *takers) note(l *sched.Ledger, taken []sched.JobID, gpus int, walk uint32) {
	if t.walk == walk {
		return
	}
	t.walk = walk
	if len(t.by) < gpus {
		t.by, t.at = make([]sched.JobID, gpus), make([]uint32, gpus)
	}
	for _, id := range taken {
		for _, g := range l.Set(id) {
			t.by[g], t.at[g] = id, walk
		}
	}
}

// firstOf returns who took the first GPU taken of a set in that walk, or None.
func (t *takers) firstOf(set []sched.GPUID, walk uint32) sched.JobID {
	for _, g := range set {
		if t.at[g] == walk {
			return t.by[g]
		}
	}
	return sched.None
}
