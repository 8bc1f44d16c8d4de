package place

import (
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
)

// index keeps nodes in buckets by how many GPUs of each bin they have free, for one class and ledger. It follows the
// ledger: an update costs what changed since the last one.
type index struct {
	bin  []int // of each GPU, as far as it goes
	bins int
	wide int // GPUs of the widest node
	next int // change of the ledger to look at next

	count []uint16         // [node*bins+b] free GPUs of bin b
	free  [][]int          // [type][b] free GPUs of bin b
	exact [][]sched.Bitset // [b][k] nodes with exactly k free GPUs of bin b, k > 0
	upTo  [][]sched.Bitset // [b][k] nodes with at least k free GPUs of bins 0..b, k > 0
}

// update brings the index up to what l says.
func (x *index) update(v *sched.View, l *sched.Ledger) {
	nodes, next, known := l.Changes(x.next)
	x.next = next
	if !known {
		x.reset(v, l.Types())
		for n := range v.Nodes {
			x.recount(v, l, sched.NodeID(n))
		}
		return
	}
	for _, n := range nodes {
		x.recount(v, l, n)
	}
}

// reset leaves an index in which nothing is free.
func (x *index) reset(v *sched.View, types int) {
	x.wide = 0
	for n := range v.Nodes {
		x.wide = max(x.wide, v.Nodes[n].Spec.GPUs)
	}
	x.count, x.free = make([]uint16, len(v.Nodes)*x.bins), make([][]int, types)
	for t := range x.free {
		x.free[t] = make([]int, x.bins)
	}
	x.exact, x.upTo = x.buckets(len(v.Nodes)), x.buckets(len(v.Nodes))
}

// buckets returns an empty set of nodes for each bin and number of GPUs.
func (x *index) buckets(nodes int) [][]sched.Bitset {
	words := len(sched.NewBitset(nodes))
	all := make(sched.Bitset, x.bins*(x.wide+1)*words)
	list := make([][]sched.Bitset, x.bins)
	for b := range list {
		list[b] = make([]sched.Bitset, x.wide+1)
		for k := range list[b] {
			list[b][k], all = all[:words:words], all[words:]
		}
	}
	return list
}

// recount puts node n into its buckets.
func (x *index) recount(v *sched.View, l *sched.Ledger, n sched.NodeID) {
	var found [variability.MaxBins]uint16
	spec := &v.Nodes[n].Spec
	first := int(v.Nodes[n].First)
	for g := first; g < min(first+spec.GPUs, len(x.bin)); g++ {
		if l.IsFree(sched.GPUID(g)) {
			found[x.bin[g]]++
		}
	}
	was, now := 0, 0
	for b, count := range x.count[int(n)*x.bins : int(n+1)*x.bins] {
		if found[b] != count {
			x.move(b, int(n), int(count), int(found[b]))
			x.free[spec.Type][b] += int(found[b]) - int(count)
		}
		was, now = was+int(count), now+int(found[b])
		for k := was; k > now; k-- {
			x.upTo[b][k].Clear(int(n))
		}
		for k := was + 1; k <= now; k++ {
			x.upTo[b][k].Set(int(n))
		}
	}
}

// move takes a node from one bucket of bin b to another.
func (x *index) move(b, node, from, to int) {
	if from > 0 {
		x.exact[b][from].Clear(node)
	}
	if to > 0 {
		x.exact[b][to].Set(node)
	}
	x.count[node*x.bins+b] = uint16(to)
}

// with returns the nodes with exactly k free GPUs of bin b; nil if there cannot be any.
func (x *index) with(b, k int) sched.Bitset {
	if k < 1 || k > x.wide {
		return nil
	}
	return x.exact[b][k]
}

// enough reports whether n GPUs of type t are free in bins 0..last.
func (x *index) enough(t sched.TypeID, last, n int) bool {
	for b := 0; b <= last && n > 0; b++ {
		n -= x.free[t][b]
	}
	return n <= 0
}
