// Package place holds the rules that pick exact GPUs for a gang, all or nothing. Where the rule leaves a choice the
// lowest NodeID, then the lowest GPUID is taken. A gang has one GPU type: of the types it accepts, the first in which
// it fits.
package place

import "github.com/trainyard/trainyard/sched"

// firstType returns the first GPU type acceptable to job j for which fits is true, or -1.
func firstType(v *sched.View, l *sched.Ledger, j sched.JobID, fits func(t sched.TypeID) bool) int {
	types := v.Jobs[j].Spec.Types
	for t := range l.Types() {
		if types.Has(sched.TypeID(t)) && fits(sched.TypeID(t)) {
			return t
		}
	}
	return -1
}

// Count takes any free GPUs, lowest ids first: placement does not matter, only numbers do.
type Count struct{}

var _ sched.Placer = Count{}

// Fits reports whether enough GPUs of one type are free.
func (Count) Fits(v *sched.View, l *sched.Ledger, j sched.JobID, n int) bool {
	types := v.Jobs[j].Spec.Types
	for t := range l.Types() {
		if types.Has(sched.TypeID(t)) && l.FreeOf(sched.TypeID(t)) >= n {
			return true
		}
	}
	return false
}

// Place takes the first n free GPUs.
func (Count) Place(v *sched.View, l *sched.Ledger, j sched.JobID, n int, dst []sched.GPUID) ([]sched.GPUID, bool) {
	t := firstType(v, l, j, func(t sched.TypeID) bool { return l.FreeOf(t) >= n })
	if t < 0 {
		return dst, false
	}
	return l.TakeAny(sched.TypeID(t), n, dst), true
}

// bestFit returns the node of type t with the fewest free GPUs among those with at least n and room for job j, or None.
func bestFit(l *sched.Ledger, t sched.TypeID, j sched.JobID, n int) sched.NodeID {
	for f := n; f <= l.MaxFree(t); f++ {
		for node := l.NextNode(t, f, 0); node != sched.None; node = l.NextNode(t, f, node+1) {
			if l.Room(node, j, n) {
				return node
			}
		}
	}
	return sched.None
}

// Packed puts a gang on the node with the fewest free GPUs that hold it, else takes what the nodes with most free GPUs
// have: it prefers one node, and never waits for one. Source: Packed of the PAL artifact (Blox), SC'24.
type Packed struct{}

var _ sched.Placer = Packed{}

// Fits reports whether enough GPUs of one type are free on nodes with room.
func (Packed) Fits(v *sched.View, l *sched.Ledger, j sched.JobID, n int) bool {
	if !l.Counted() {
		return Count{}.Fits(v, l, j, n)
	}
	return firstType(v, l, j, func(t sched.TypeID) bool { _, ok := packed(l, t, j, n, nil); return ok }) >= 0
}

// Place places the gang.
func (Packed) Place(v *sched.View, l *sched.Ledger, j sched.JobID, n int, dst []sched.GPUID) ([]sched.GPUID, bool) {
	for t := range l.Types() {
		if v.Jobs[j].Spec.Types.Has(sched.TypeID(t)) && l.FreeOf(sched.TypeID(t)) >= n {
			if gpus, ok := packed(l, sched.TypeID(t), j, n, dst); ok {
				return gpus, true
			}
		}
	}
	return dst, false
}

func packed(l *sched.Ledger, t sched.TypeID, j sched.JobID, n int, dst []sched.GPUID) ([]sched.GPUID, bool) {
	if n <= l.MaxFree(t) {
		if node := bestFit(l, t, j, n); node != sched.None {
			return l.TakeFrom(node, n, dst), true
		}
	}
	return spread(l, t, j, n, l.MaxFree(t), dst)
}

// spread takes GPUs from the nodes with most free ones, at most most on any, until it has n.
func spread(l *sched.Ledger, t sched.TypeID, j sched.JobID, n, most int, dst []sched.GPUID) ([]sched.GPUID, bool) {
	from := len(dst)
	for f := most; f > 0; f-- {
		for node := l.NextNode(t, f, 0); node != sched.None; node = l.NextNode(t, f, node+1) {
			k := min(f, n)
			for k > 0 && !l.Room(node, j, k) {
				k--
			}
			dst = l.TakeFrom(node, k, dst)
			if n -= k; n == 0 {
				return dst, true
			}
		}
	}
	return dst[:from], false
}
