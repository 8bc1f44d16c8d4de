package pipeline

import "github.com/trainyard/trainyard/sched"

// victims are the holders evicted for the one job that is being placed: found here, and given back what they held where
// it was not needed after all.
type victims struct {
	books      *books
	ranks      *ranks
	protection *protection
	place      sched.Placer
	bound      sched.NodeBound // place, if it binds gangs to nodes

	popped      []sched.JobID // evicted for the job being placed, worst first
	sets        [][]sched.GPUID
	protected   []sched.JobID
	tenants     []sched.JobID  // of the node looked at
	tenantGPUs  []int          // what they hold there
	clear       []sched.NodeID // that can be wholly freed for the job being placed
	cleared     bool           // clear is known
	looked      looked         // at for it
	exodus      exodus         // for it
	goes, stays sched.JobID    // holders that may and may not be evicted for it
}

// begin forgets the victims of the job placed before.
func (x *victims) begin() { x.popped, x.clear, x.cleared = x.popped[:0], x.clear[:0], false }

// evictFor releases lower-ranked holders, worst first, until job id fits. If it never does, all is as before.
func (x *victims) evictFor(v *sched.View, id sched.JobID, n int, now float64) bool {
	fits := x.evictUntilFits(v, id, n, now)
	if !fits && x.protection.any() {
		x.noteProtected(v, id, now)
	}
	return fits
}

// noteProtected asks for another walk when the first lower-ranked holder that was spared may be evicted.
func (x *victims) noteProtected(v *sched.View, id sched.JobID, now float64) {
	for _, h := range x.books.ledger.Holders() {
		if until := x.protection.until(v, h); until > v.Now && x.books.jobs[h].in == holding &&
			x.protection.behind(x.books, id, h, now) {
			x.protection.retryBy(until)
		}
	}
}

func (x *victims) evictUntilFits(v *sched.View, id sched.JobID, n int, now float64) bool {
	if x.bound != nil && !x.ranks.whole {
		switch need := x.bound.Need(v, x.books.ledger, id, n); {
		case need.One:
			return x.evictOnNode(v, id, n, need.Type, now)
		case need.Whole > x.clearable(v, id, n, need, now):
			return false
		case need.Whole > 0 && need.Whole*need.Size == n:
			x.evictOnNodes(v, need.Whole, now)
			return true
		}
	}
	if !x.ranks.whole && !x.mayYield(v, id, n, now) {
		return false
	}
	x.protected = x.protected[:0]
	x.ranks.cursor = len(x.ranks.list) - 1
	fits := false
	for !fits {
		victim := x.ranks.nextVictim(x.books, id, now)
		if victim == sched.None {
			break
		}
		if x.protection.spares(v, x.books, id, victim, now) {
			x.protected = append(x.protected, victim)
			continue
		}
		x.evict(victim)
		fits = x.place.Fits(v, x.books.ledger, id, n)
	}
	if !fits {
		x.reprieveAll()
	}
	for _, spared := range x.protected {
		x.ranks.regroup(x.books, spared)
	}
	return fits
}

// reprieve gives a victim back exactly what it held.
func (x *victims) reprieve(victim sched.JobID, set []sched.GPUID) {
	x.books.giveBack(victim, set)
	x.ranks.regroup(x.books, victim)
}

// reprieveAll gives all victims back what they held: the job they were evicted for does not take anything.
func (x *victims) reprieveAll() {
	for i, victim := range x.popped {
		x.reprieve(victim, x.sets[i])
	}
	x.popped, x.sets = x.popped[:0], x.sets[:0]
}

// evict releases what victim has booked and notes it among the popped.
func (x *victims) evict(victim sched.JobID) {
	x.popped = append(x.popped, victim)
	x.sets = append(x.sets, x.books.suspend(victim))
}

// evictable reports whether holder o ranks below job than and need not be spared by job id.
func (x *victims) evictable(v *sched.View, id, o, than sched.JobID, now float64) bool {
	return x.books.jobs[o].group != sched.None && x.books.jobs[o].in == holding &&
		x.books.beforeAt(than, o, now) && !x.protection.spares(v, x.books, id, o, now)
}

// mayYield reports whether job id of n GPUs would find as many among the free ones and those of lower-ranked holders,
// wherever they are.
func (x *victims) mayYield(v *sched.View, id sched.JobID, n int, now float64) bool {
	has, _ := x.within(v, id, n, true, now)
	return has >= n
}

// within returns how many GPUs job id would find, among the free ones of its types and those of lower-ranked holders if
// it may evict them, wherever they are: all or, if they are enough, n at least. If they are not, it returns also how
// many it would find if it took any type.
func (x *victims) within(v *sched.View, id sched.JobID, n int, evicts bool, now float64) (has, all int) {
	free := x.books.ledger.Free(x.ranks.groups.shapes[x.books.jobs[id].shape].types)
	left := n - free
	for _, i := range x.ranks.groups.holding {
		if evicts && left > 0 {
			left = x.yield(v, &x.ranks.groups.list[i], 0, id, left, now)
		}
	}
	return n - left, n - left - free + x.books.ledger.Free(0)
}

// yield takes from n what the holder at i of the heap of g and those below it there hold, as far as they rank behind
// job id, and returns what is left of n. Where a holder does not, no one below it does.
func (x *victims) yield(v *sched.View, g *group, i int, id sched.JobID, n int, now float64) int {
	h := g.heap[i]
	if !x.books.beforeAt(id, h, now) {
		return n
	}
	if !x.protection.spares(v, x.books, id, h, now) {
		n -= len(x.books.ledger.Set(h))
	}
	for c := 4*i + 1; c <= 4*i+4 && c < len(g.heap) && n > 0; c++ {
		n = x.yield(v, g, c, id, n, now)
	}
	return n
}
