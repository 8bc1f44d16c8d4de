package pipeline

import (
	"cmp"
	"math"
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// widths finds the best waiting job of those that ask for at most so many GPUs: a tournament of the groups in order of
// width, of which a walk asks for the winner of those that may fit. What a walk costs does not grow with the groups
// that are wider than what they may have.
//
// It is kept where many groups wait: to go through few costs less than to follow each change.
type widths struct {
	on      bool    // the tournament is kept
	sloped  bool    // some waiting job's key grows: who is best changes with time, so that none can be kept
	order   []int32 // groups by width, then number
	gpus    []int32 // their widths
	at      []int32 // by group: 1 + its place in order; 0 = it is not there
	best    []int32 // the winners: of leaf i at len(order)+i, of nodes 2i and 2i+1 at i
	late    []int32 // groups that are not in order, made since it was
	missing []int32 // groups that the walk under way is done with
}

const (
	manyWidths = 64 // groups that wait from which on the tournament is kept
	fewWidths  = 32 // and below which it is given up
	maxLate    = 64 // groups not in order with which it is made again
)

// keep starts or stops the tournament as many or few groups wait, and reports whether it is kept.
func (w *widths) keep(gs *groups, jobs []entry) bool {
	switch waiting := len(gs.waiting); {
	case w.sloped || waiting < fewWidths:
		w.on = false
	case !w.on && waiting >= manyWidths, w.on && len(w.late) > maxLate:
		w.build(gs, jobs)
	}
	return w.on
}

// build makes the tournament of all groups of waiting jobs.
func (w *widths) build(gs *groups, jobs []entry) {
	w.on, w.late, w.missing = true, w.late[:0], w.missing[:0]
	w.order, w.gpus, w.at = w.order[:0], w.gpus[:0], append(w.at[:0], make([]int32, len(gs.list))...)
	for i := range gs.list {
		g := &gs.list[i]
		if g.shape == sched.None {
			continue
		}
		if g.slope != 0 {
			w.on, w.sloped = false, true
			return
		}
		w.order = append(w.order, int32(i))
	}
	slices.SortFunc(w.order, func(a, b int32) int {
		x, y := gs.list[a].shape, gs.list[b].shape
		return cmp.Or(cmp.Compare(gs.shapes[x].gpus, gs.shapes[y].gpus), cmp.Compare(a, b))
	})
	n := len(w.order)
	w.best = append(w.best[:0], make([]int32, 2*n)...)
	for k, i := range w.order {
		w.at[i] = int32(k) + 1
		w.gpus = append(w.gpus, gs.shapes[gs.list[i].shape].gpus)
		w.best[n+k] = leaf(gs, i)
	}
	for p := n - 1; p > 0; p-- {
		w.best[p] = better(gs, jobs, w.best[2*p], w.best[2*p+1])
	}
}

// leaf returns group i, or none if no job of it waits.
func leaf(gs *groups, i int32) int32 {
	if len(gs.list[i].heap) == 0 {
		return none
	}
	return i
}

// better returns the one of groups i and k whose best job ranks first. Either may be none.
func better(gs *groups, jobs []entry, i, k int32) int32 {
	if i == none || k == none {
		return max(i, k)
	}
	x, y := gs.list[i].heap[0], gs.list[k].heap[0]
	if before(&jobs[y].key, &jobs[x].key, y, x) {
		return k
	}
	return i
}

// touch follows a change of the best job of group i of waiting jobs.
func (w *widths) touch(gs *groups, jobs []entry, i int32) {
	if gs.list[i].slope != 0 {
		w.on, w.sloped = false, true
		return
	}
	for int(i) >= len(w.at) {
		if k := int32(len(w.at)); gs.list[k].shape != sched.None {
			w.late = append(w.late, k)
		}
		w.at = append(w.at, 0)
	}
	if w.at[i] > 0 {
		w.play(gs, jobs, w.at[i]-1, leaf(gs, i))
	}
}

// play enters winner at leaf k and plays the rounds above it again.
func (w *widths) play(gs *groups, jobs []entry, k, winner int32) {
	p := len(w.order) + int(k)
	changed := w.order[k]
	w.best[p] = winner
	for p /= 2; p > 0; p /= 2 {
		won := better(gs, jobs, w.best[2*p], w.best[2*p+1])
		if won == w.best[p] && won != changed {
			return
		}
		w.best[p] = won
	}
}

// next returns the group with the best job of those that ask for at most free GPUs, or none.
func (w *widths) next(gs *groups, jobs []entry, free int, walk uint32) int32 {
	best, n := none, len(w.order)
	k, _ := slices.BinarySearch(w.gpus, int32(free)+1)
	for lo, hi := n, n+k; lo < hi; lo, hi = lo/2, hi/2 {
		if lo&1 == 1 {
			best = better(gs, jobs, best, w.best[lo])
			lo++
		}
		if hi&1 == 1 {
			hi--
			best = better(gs, jobs, best, w.best[hi])
		}
	}
	for _, i := range w.late {
		g := &gs.list[i]
		if g.failed != walk && int(gs.shapes[g.shape].gpus) <= free {
			best = better(gs, jobs, best, leaf(gs, i))
		}
	}
	return best
}

// miss has the walk under way look at group i no more.
func (w *widths) miss(gs *groups, jobs []entry, i int32, walk uint32) {
	gs.list[i].failed = walk
	if int(i) < len(w.at) && w.at[i] > 0 {
		w.missing = append(w.missing, i)
		w.play(gs, jobs, w.at[i]-1, none)
	}
}

// restore has the next walk look at all groups again.
func (w *widths) restore(gs *groups, jobs []entry) {
	for _, i := range w.missing {
		w.play(gs, jobs, w.at[i]-1, leaf(gs, i))
	}
	w.missing = w.missing[:0]
}

// byWidth is the walk of indexed where none is refused what fits and no holder is spared: what a job may have, free
// GPUs and those of holders that rank behind it, only becomes less down the order, so that jobs that ask for more are
// not looked at.
func byWidth(p *Pipeline, v *sched.View) {
	gs, w, now := &p.ranks.groups, &p.ranks.groups.widths, v.Now.Seconds()
	room := len(v.GPUs) // for those behind the job looked at last, at most
	for i := w.next(gs, p.books.jobs, room, p.walk.no); i != none; i = w.next(gs, p.books.jobs, room, p.walk.no) {
		g := &gs.list[i]
		id := g.heap[0]
		n := width(v, id)
		if p.walk.isOver(&p.books, &p.ranks, g, now) {
			w.miss(gs, p.books.jobs, i, p.walk.no)
			continue
		}
		if has, all := p.walk.victims.within(v, id, n, p.s.Preempt, now); has < n {
			if room = min(room, all); n <= room {
				w.miss(gs, p.books.jobs, i, p.walk.no)
			}
			continue
		}
		switch p.try(v, id, n, now) {
		case tookIt:
			if room -= n; p.walk.evictor == id {
				_, room = p.walk.victims.within(v, id, math.MaxInt, true, now)
			}
		case misfit:
			p.walk.victims.noteFailure(&gs.list[i], id)
			w.miss(gs, p.books.jobs, i, p.walk.no)
		case overLimit:
			w.miss(gs, p.books.jobs, i, p.walk.no)
		}
	}
	w.restore(gs, p.books.jobs)
}

// isOver reports whether the best job of g need not be looked at in the walk under way: it, or one before it, did not
// fit, and nothing was given up since.
func (w *walk) isOver(b *books, r *ranks, g *group, now float64) bool {
	return g.failed == w.no || w.failedBefore(b, r, g) ||
		w.evictor != sched.None && b.beforeAt(g.heap[0], w.evictor, now)
}
