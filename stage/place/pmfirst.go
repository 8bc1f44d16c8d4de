package place

import (
	"cmp"
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// PMFirst gives a gang the GPUs that are fastest for its class, wherever they are. Among GPUs of one bin it prefers those
// of a node that has as many of them free as the gang is wide, or nearly so; ties go to the lower number. It fails only
// where fewer GPUs are free.
//
// Source: PM-First of Jain et al., SC'24, as released (hal-uw/blox-pal, tag artifact-v1.4).
type PMFirst struct{ Scores *Scores }

var _ sched.Placer = PMFirst{}

// Fits reports whether enough GPUs of one type are free on nodes with room.
func (PMFirst) Fits(v *sched.View, l *sched.Ledger, j sched.JobID, n int) bool {
	return Packed{}.Fits(v, l, j, n)
}

// Place places the gang. Where nodes have too little room for what was picked, it is packed.
func (p PMFirst) Place(v *sched.View, l *sched.Ledger, j sched.JobID, n int, dst []sched.GPUID) ([]sched.GPUID, bool) {
	t := firstType(v, l, j, func(t sched.TypeID) bool { return l.FreeOf(t) >= n })
	if t < 0 {
		return dst, false
	}
	c := p.Scores.Class(v, j)
	return p.Scores.settle(v, l, j, n, p.Scores.fastest(l, c, len(p.Scores.sets[c])-1, sched.TypeID(t), n, dst), dst)
}

// settle returns what was picked, if it is a gang of n and its nodes have room, else packs it.
func (s *Scores) settle(v *sched.View, l *sched.Ledger, j sched.JobID, n int, picked, dst []sched.GPUID) ([]sched.GPUID, bool) {
	gang := picked[len(dst):]
	if len(gang) < n || l.Counted() && !roomy(l, j, gang) {
		return Packed{}.Place(v, l, j, n, dst)
	}
	return picked, true
}

// roomy reports whether every node of the gang has room for its part.
func roomy(l *sched.Ledger, j sched.JobID, gang []sched.GPUID) bool {
	count := make(map[sched.NodeID]int, len(gang))
	for _, g := range gang {
		count[l.NodeOf(g)]++
	}
	for node, k := range count {
		if !l.Room(node, j, k) {
			return false
		}
	}
	return true
}

// fastest appends the n free GPUs of type t that PM-First picks among those of class c in bins 0..last; fewer if there are
// not as many.
func (s *Scores) fastest(l *sched.Ledger, c, last int, t sched.TypeID, n int, dst []sched.GPUID) []sched.GPUID {
	left := n
	for b := 0; b <= last && left > 0; b++ {
		from := len(dst)
		dst = s.free(l, c, b, t, dst)
		if found := dst[from:]; len(found) > left {
			byMatch(l, found, n)
			dst = dst[:from+left]
		}
		left -= len(dst) - from
	}
	return dst
}

// byMatch sorts GPUs of one bin, which are in order of number, by how near the number of them on their node is to n.
func byMatch(l *sched.Ledger, gpus []sched.GPUID, n int) {
	count := make(map[sched.NodeID]int)
	for _, g := range gpus {
		count[l.NodeOf(g)]++
	}
	miss := func(g sched.GPUID) int {
		d := count[l.NodeOf(g)] - n
		return max(d, -d)
	}
	slices.SortStableFunc(gpus, func(a, b sched.GPUID) int { return cmp.Compare(miss(a), miss(b)) })
}
