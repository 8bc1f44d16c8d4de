package pipeline

import "github.com/trainyard/trainyard/sched"

// exodus is the holders that may be evicted for one job, asked for from the worst on, and what they leave on each node.
// Who needs few of them does not look at the others, nor at nodes where none of them is.
type exodus struct {
	next  []seat         // a binary heap, the worst on top: all others are below these in the heaps of their groups
	nodes []sched.NodeID // where any has left
	left  []int32        // GPUs, by node of nodes
}

// seat is a place in the heap of a group of holders, and the rank of the job there.
type seat struct {
	level      int64
	value      float64
	job        sched.JobID
	group, pos int32
}

// worse reports whether the job of seat s ranks behind that of o.
func (s *seat) worse(b *books, o *seat, now float64) bool {
	switch {
	case s.level != o.level:
		return s.level > o.level
	case s.value != o.value:
		return s.value > o.value
	}
	return b.beforeAt(o.job, s.job, now)
}

// begin forgets those who have left; there are so many nodes.
func (e *exodus) begin(nodes int) {
	for _, n := range e.nodes {
		e.left[n] = 0
	}
	e.nodes, e.next = e.nodes[:0], e.next[:0]
	if len(e.left) < nodes {
		e.left = make([]int32, nodes)
	}
}

// leave counts k more GPUs of node n, and returns how many that are.
func (e *exodus) leave(n sched.NodeID, k int) int {
	if e.left[n] == 0 && k > 0 {
		e.nodes = append(e.nodes, n)
	}
	e.left[n] += int32(k)
	return int(e.left[n])
}

// push has the holder at place pos of group i asked for in its turn if it ranks behind job id.
func (e *exodus) push(b *books, gs *groups, id sched.JobID, i, pos int32, now float64) {
	h := gs.list[i].heap[pos]
	if !b.beforeAt(id, h, now) {
		return
	}
	key := &b.jobs[h].key
	e.next = append(e.next, seat{key.Level, valueAt(key, now), h, i, pos})
	for k := len(e.next) - 1; k > 0; {
		up := (k - 1) / 2
		if !e.next[k].worse(b, &e.next[up], now) {
			return
		}
		e.next[up], e.next[k] = e.next[k], e.next[up]
		k = up
	}
}

// pop returns the worst holder that was not asked for yet, or None.
func (e *exodus) pop(b *books, gs *groups, id sched.JobID, now float64) sched.JobID {
	if len(e.next) == 0 {
		return sched.None
	}
	top, last := e.next[0], len(e.next)-1
	e.next[0] = e.next[last]
	e.next = e.next[:last]
	for k := 0; ; {
		c := 2*k + 1
		if c >= last {
			break
		}
		if c+1 < last && e.next[c+1].worse(b, &e.next[c], now) {
			c++
		}
		if !e.next[c].worse(b, &e.next[k], now) {
			break
		}
		e.next[k], e.next[c] = e.next[c], e.next[k]
		k = c
	}
	for c := 4*top.pos + 1; c <= 4*top.pos+4 && int(c) < len(gs.list[top.group].heap); c++ {
		e.push(b, gs, id, top.group, c, now)
	}
	return top.job
}

// leaveUntil has the holders leave that may be evicted for job id, worst first, until enough says so of a node on which
// that many GPUs are free or left by then. It returns the last to leave then; None if they are not enough.
func (x *victims) leaveUntil(v *sched.View, id sched.JobID, now float64,
	enough func(n sched.NodeID, has int) bool) sched.JobID {
	e, l, gs := &x.exodus, x.books.ledger, &x.ranks.groups
	e.begin(len(v.Nodes))
	for _, i := range gs.holding {
		e.push(x.books, gs, id, i, 0, now)
	}
	for h := e.pop(x.books, gs, id, now); h != sched.None; h = e.pop(x.books, gs, id, now) {
		if x.protection.spares(v, x.books, id, h, now) {
			continue
		}
		done := false
		for set := l.Set(h); len(set) > 0; {
			n, k := l.NodeOf(set[0]), v.OnNode(set)
			if alone := l.Alone(n, h, set[:k]); alone > 0 {
				done = enough(n, e.leave(n, alone)+l.FreeOn(n)) || done
			}
			set = set[k:]
		}
		if done {
			return h
		}
	}
	return sched.None
}
