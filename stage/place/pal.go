package place

import "github.com/trainyard/trainyard/sched"

// PAL weighs variability against locality: of all ways to place a gang, by the slowest bin it may touch and by whether it
// stays on one node, it takes the first that is possible in the order of L x V, the locality penalty times the binned
// score; of equal ones that with the faster bin, then that on one node.
//
//   - One GPU: of the nodes with a free GPU nearly as fast as the fastest, that with the fewest free GPUs. Without tolerance
//     as PM-First does.
//   - On one node: of the nodes with n free GPUs up to that bin, that with the fewest free GPUs, then the lower number.
//   - On several nodes: PM-First among the GPUs up to that bin.
//   - A gang wider than a node takes the fewest nodes among the GPUs up to the first bin that has enough.
//
// Source: Jain et al., SC'24, as released (hal-uw/blox-pal, tag artifact-v1.4).
// Deviation: released, there is no tolerance: single GPUs break up nodes for a gain of a per cent. Released, equal nodes are taken worst fit first, which fragments, and gangs wider than a node ignore
// locality. Preset blox-pal does as released.
type PAL struct {
	Scores *Scores
	// Across is the locality penalty of a gang of n GPUs on several nodes, over one on one node, >= 1.
	Across func(spec *sched.JobSpec, n int) float64
	// Tolerance is by how much more than the fastest free GPU, as a share, one GPU may be slower if that spares a node that
	// a gang could use.
	Tolerance float64
}

var _ sched.Placer = PAL{}

// Fits reports whether enough GPUs of one type are free on nodes with room.
func (PAL) Fits(v *sched.View, l *sched.Ledger, j sched.JobID, n int) bool {
	return Packed{}.Fits(v, l, j, n)
}

// Place places the gang. A node gives no more GPUs than it has room for. GPUs without a bin are taken, packed, only by a
// gang for which the others do not do.
func (a PAL) Place(v *sched.View, l *sched.Ledger, j sched.JobID, n int, dst []sched.GPUID) ([]sched.GPUID, bool) {
	t := firstType(v, l, j, func(t sched.TypeID) bool { return l.FreeOf(t) >= n })
	if t < 0 {
		return dst, false
	}
	p := a.Scores.pick(v, l, j, t, n, dst)
	switch {
	case n == 1:
		p.single(a.Scores.bins[a.Scores.Class(v, j)].SF, a.Tolerance)
	case n > l.Widest(sched.TypeID(t)):
		p.firstFew()
	default:
		p.cheapest(a.Scores.bins[a.Scores.Class(v, j)].SF, a.Across(v.Jobs[j].Spec, n))
	}
	return p.done()
}

// cheapest goes through the L x V matrix, whose rows on one node and across nodes both rise with the bin, from the
// cheapest cell on.
func (p *pick) cheapest(sf []float64, across float64) {
	within, spread := 0, 0 // the next bin of each row
	for spread < len(sf) {
		if within < len(sf) && (sf[within] < across*sf[spread] || sf[within] == across*sf[spread] && within <= spread) {
			if p.together(within) {
				return
			}
			within++
			continue
		}
		if p.fastest(spread) {
			return
		}
		spread++
	}
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
