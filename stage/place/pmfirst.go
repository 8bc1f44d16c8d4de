package place

import "github.com/trainyard/trainyard/sched"

// PMFirst gives a gang the GPUs that are fastest for its class, wherever they are. Among GPUs of one bin it prefers
// those of a node that has as many of them free as the gang is wide, or nearly so; ties go to the lower number. It
// fails only where fewer GPUs are free, or fewer than nodes have room for.
//
// Source: PM-First of Jain et al., SC'24, as released (hal-uw/blox-pal, tag artifact-v1.4).
type PMFirst struct{ Scores *Scores }

var _ sched.Placer = PMFirst{}

// Fits reports whether enough GPUs of one type are free on nodes with room.
func (PMFirst) Fits(v *sched.View, l *sched.Ledger, j sched.JobID, n int) bool {
	return Packed{}.Fits(v, l, j, n)
}

// Place places the gang. A node gives no more GPUs than it has room for. GPUs without a bin are taken, packed, only by
// a gang for which the others do not do.
func (f PMFirst) Place(v *sched.View, l *sched.Ledger, j sched.JobID, n int, dst []sched.GPUID) ([]sched.GPUID, bool) {
	t := firstType(v, l, j, func(t sched.TypeID) bool { return l.FreeOf(t) >= n })
	if t < 0 {
		return dst, false
	}
	p := f.Scores.pick(v, l, j, t, n, dst)
	p.fastest(p.bins - 1)
	return p.done()
}
