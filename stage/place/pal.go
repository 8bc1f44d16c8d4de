package place

import (
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
)

// PAL weighs variability against locality: of all ways to place a gang, by the slowest bin it may touch and by how far
// apart its GPUs may be (one node, one rack, anywhere), it takes the first that is possible in the order of L x V, the
// locality penalty times the binned score; of equal ones that with the faster bin, then the nearer one.
//
//   - One GPU: of the nodes with a free GPU nearly as fast as the fastest, that with the fewest free GPUs. Without
//     tolerance as PM-First does.
//   - On one node: of the nodes with n free GPUs up to that bin, that with the fewest free GPUs, then the lower number.
//   - In one rack, where racks are known and nearer than anywhere for this gang: PM-First among the GPUs of the rack up
//     to that bin; the rack where that takes the fewest nodes, then with the fewest such GPUs free, then the lower
//     number.
//   - Anywhere: PM-First among the GPUs up to that bin.
//   - A gang wider than a node takes the fewest nodes, in one rack or anywhere; of one rack, if that takes no more.
//
// Source: Jain et al., SC'24, as released (hal-uw/blox-pal, tag artifact-v1.4). Deviation: released, there is no
// tolerance: single GPUs break up nodes for a gain of a per cent. Released, equal nodes are taken worst fit first,
// which fragments, gangs wider than a node ignore locality, and there are no racks. Preset blox-pal does as released.
type PAL struct {
	Scores  *Scores
	Penalty Penalty
	// Tolerance is by how much more than the fastest free GPU, as a share, one GPU may be slower if that spares a node
	// that a gang could use.
	Tolerance float64
}

// Penalties are the locality penalties of a gang by variability.Level: >= 1, none below a nearer one.
type Penalties [variability.Across + 1]float64

// Penalty returns those of job j on n GPUs, as known.
type Penalty func(v *sched.View, j sched.JobID, n int) Penalties

// TwoLevel is the penalties of the paper: across, >= 1, on several nodes.
func TwoLevel(across float64) Penalty {
	return func(*sched.View, sched.JobID, int) Penalties { return Penalties{1, across, across} }
}

var _ sched.Placer = PAL{}

// Fits reports whether enough GPUs of one type are free on nodes with room.
func (PAL) Fits(v *sched.View, l *sched.Ledger, j sched.JobID, n int) bool {
	return Packed{}.Fits(v, l, j, n)
}

// Place places the gang. A node gives no more GPUs than it has room for. GPUs without a bin are taken, packed, only by
// a gang for which the others do not do.
func (a PAL) Place(v *sched.View, l *sched.Ledger, j sched.JobID, n int, dst []sched.GPUID) ([]sched.GPUID, bool) {
	t := firstType(v, l, j, func(t sched.TypeID) bool { return l.FreeOf(t) >= n })
	if t < 0 {
		return dst, false
	}
	p := a.Scores.pick(v, l, j, t, n, dst)
	sf := a.Scores.bins[a.Scores.Class(v, j)].SF
	if n == 1 {
		p.single(sf, a.Tolerance)
	} else {
		p.cheapest(sf, a.Penalty(v, j, n), n > l.Widest(sched.TypeID(t)))
	}
	return p.done()
}

// cheapest goes through the L x V matrix, all of whose rows rise with the bin, from the cheapest cell on.
func (p *pick) cheapest(sf []float64, of Penalties, wider bool) {
	var next [len(of)]int // the next bin of each row
	if wider {
		next[variability.SameNode] = len(sf)
	}
	if p.racks == nil || of[variability.SameRack] == of[variability.Across] {
		next[variability.SameRack] = len(sf)
	}
	for next[variability.Across] < len(sf) {
		best := variability.Across
		for level := range best {
			if b := next[level]; b < len(sf) {
				cost, least := of[level]*sf[b], of[best]*sf[next[best]]
				if cost < least || cost == least && (b < next[best] || b == next[best] && level < best) {
					best = level
				}
			}
		}
		if p.within(best, next[best], wider) {
			return
		}
		next[best]++
	}
}

// within picks GPUs up to a bin no farther apart than level. It reports false, and picks nothing, if there are none.
func (p *pick) within(level variability.Level, last int, wider bool) bool {
	switch level {
	case variability.SameNode:
		return p.together(last)
	case variability.SameRack:
		return p.inRack(last, wider)
	}
	return p.anywhere(last, wider)
}

// single picks one GPU.
func (p *pick) single(sf []float64, tolerance float64) {
	if tolerance == 0 {
		p.fastest(p.bins - 1)
		return
	}
	first := 0
	for first < p.bins-1 && p.free[p.t][first] == 0 {
		first++
	}
	last := first
	for last < p.bins-1 && sf[last+1] <= sf[first]*(1+tolerance) {
		last++
	}
	for !p.together(last) && last < p.bins-1 {
		last++
	}
}
