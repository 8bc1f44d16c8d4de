package place

import "github.com/trainyard/trainyard/sched"

// Consolidate puts a gang on as few nodes as an empty cluster would need, or makes it wait: up to the size of a node on
// the single node with the fewest free GPUs that hold it; wider gangs on wholly free nodes of the widest kind, lowest
// ids first, and what remains on the other node with most free GPUs.
//
// Source: consolidated placement of HeliosArtifact (Hu et al., SC'21), which knows 8-GPU nodes only. Where a type has
// too few nodes of the widest kind for a gang, we take nodes by falling number of free GPUs, as long as they are no
// more than on the empty cluster.
type Consolidate struct{}

var (
	_ sched.Placer    = Consolidate{}
	_ sched.NodeBound = Consolidate{}
)

// Fits reports whether the gang can be consolidated now.
func (Consolidate) Fits(v *sched.View, l *sched.Ledger, j sched.JobID, n int) bool {
	types := v.Jobs[j].Spec.Types
	for i := range l.Types() {
		t := sched.TypeID(i)
		if !types.Has(t) || l.FreeOf(t) < n {
			continue
		}
		size := l.Widest(t) // above 0, as some are free
		if !l.Counted() && (n <= size || l.NodesOf(t, size) >= (n+size-1)/size) {
			if fitsNodes(l, t, n, size) {
				return true
			}
			continue
		}
		if _, ok := consolidated(l, t, j, n, nil); ok {
			return true
		}
	}
	return false
}

// fitsNodes reports whether a gang fits by the numbers of free GPUs alone: one node up to size, that of the widest of
// type t, else wholly free ones of these and another for what remains.
func fitsNodes(l *sched.Ledger, t sched.TypeID, n, size int) bool {
	if n <= size {
		return l.MaxFree(t) >= n
	}
	rest, spare := n%size, l.NodesWith(t, size)-n/size
	for f := size - 1; spare == 0 && rest > 0 && f >= rest; f-- {
		spare = l.NodesWith(t, f)
	}
	return spare > 0 || spare == 0 && rest == 0
}

// Need says that a gang up to the size of a node needs one, and a wider one whole nodes.
func (Consolidate) Need(v *sched.View, l *sched.Ledger, j sched.JobID, n int) sched.NodeNeed {
	if l.Types() > 1 || l.Counted() || !v.Jobs[j].Spec.Types.Has(0) {
		return sched.NodeNeed{}
	}
	size := l.Widest(0)
	if n <= size {
		return sched.NodeNeed{One: true}
	}
	if size == 0 || l.NodesOf(0, size) < (n+size-1)/size {
		return sched.NodeNeed{}
	}
	return sched.NodeNeed{Whole: n / size, Size: size}
}

// Place places the gang.
func (Consolidate) Place(v *sched.View, l *sched.Ledger, j sched.JobID, n int, dst []sched.GPUID) ([]sched.GPUID,
	bool) {
	types := v.Jobs[j].Spec.Types
	for t := range l.Types() {
		if types.Has(sched.TypeID(t)) && l.FreeOf(sched.TypeID(t)) >= n {
			if gpus, ok := consolidated(l, sched.TypeID(t), j, n, dst); ok {
				return gpus, true
			}
		}
	}
	return dst, false
}

func consolidated(l *sched.Ledger, t sched.TypeID, j sched.JobID, n int, dst []sched.GPUID) ([]sched.GPUID, bool) {
	size := l.Widest(t)
	if n <= size {
		node := bestFit(l, t, j, n)
		if node == sched.None {
			return dst, false
		}
		return l.TakeFrom(node, n, dst), true
	}
	if l.NodesOf(t, size) < (n+size-1)/size {
		return fewestNodes(l, t, j, n, dst)
	}
	return wholeNodes(l, t, j, n, size, dst)
}

// wholeNodes takes n/size wholly free nodes and the remainder from the other node with most free GPUs.
func wholeNodes(l *sched.Ledger, t sched.TypeID, j sched.JobID, n, size int, dst []sched.GPUID) ([]sched.GPUID, bool) {
	from := len(dst)
	node := sched.NodeID(-1)
	for ; n >= size; n -= size {
		for node = l.NextNode(t, size, node+1); node != sched.None && !l.Room(node, j, size); {
			node = l.NextNode(t, size, node+1)
		}
		if node == sched.None {
			return dst[:from], false
		}
		dst = l.TakeFrom(node, size, dst)
	}
	if n == 0 {
		return dst, true
	}
	after := node + 1 // whole nodes up to here are taken
	for f := size; f >= n; f-- {
		for node = l.NextNode(t, f, after); node != sched.None; node = l.NextNode(t, f, node+1) {
			if l.Room(node, j, n) {
				return l.TakeFrom(node, n, dst), true
			}
		}
		after = 0
	}
	return dst[:from], false
}

// fewestNodes takes GPUs from the nodes with most free ones, if that takes no more nodes than the empty cluster would.
func fewestNodes(l *sched.Ledger, t sched.TypeID, j sched.JobID, n int, dst []sched.GPUID) ([]sched.GPUID, bool) {
	from, limit := len(dst), 0
	for left, size := n, l.Widest(t); left > 0; size-- {
		if size == 0 {
			return dst, false // wider than the cluster
		}
		k := min((left+size-1)/size, l.NodesOf(t, size))
		left -= k * size
		limit += k
	}
	for f := l.MaxFree(t); f > 0; f-- {
		for node := l.NextNode(t, f, 0); node != sched.None; node = l.NextNode(t, f, node+1) {
			k := min(f, n)
			if !l.Room(node, j, k) {
				continue
			}
			if limit--; limit < 0 {
				return dst[:from], false
			}
			dst = l.TakeFrom(node, k, dst)
			if n -= k; n == 0 {
				return dst, true
			}
		}
	}
	return dst[:from], false
}
