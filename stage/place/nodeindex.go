package place

import (
	"math/bits"

	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
)

// index keeps nodes in buckets by how many GPUs of each bin they have free, for one class and ledger. It follows the
// ledger: an update costs what changed since the last one, and no more than one look at each node.
type index struct {
	bin  []int // of each GPU, as far as it goes
	bins int
	wide int // GPUs of the widest node
	next int // change of the ledger to look at next

	seats []seat         // of the nodes that the rest is made for
	seen  []uint64       // [node] its free GPUs with a bin, as last counted, the first lowest; of nodes up to 64 wide
	mask  []uint64       // [node*bins+b] its GPUs of bin b, likewise
	racks []sched.Bitset // [rack] its nodes; nil if the nodes are not known to be in several racks

	count []uint16         // [node*bins+b] free GPUs of bin b
	free  [][]int          // [type][b] free GPUs of bin b
	near  [][]int          // [rack*types+type][b] those of the rack; only with racks
	exact [][]sched.Bitset // [b][k] nodes with exactly k free GPUs of bin b, k > 0
	upTo  [][]sched.Bitset // [b][k] nodes with at least k free GPUs of bins 0..b, k > 0

	order []rackCount // scratch
}

// seat is what an index takes to be fixed of a node.
type seat struct {
	first sched.GPUID
	gpus  int32
	typ   sched.TypeID
	rack  int32
}

func seatOf(n *sched.Node) seat { return seat{n.First, int32(n.Spec.GPUs), n.Spec.Type, n.Spec.Rack} }

// update brings the index up to what l says.
func (x *index) update(v *sched.View, l *sched.Ledger) {
	nodes, next, known := l.Changes(x.next)
	x.next = next
	if known && len(nodes) < len(v.Nodes) {
		for _, n := range nodes {
			if int(n) >= len(x.seats) || x.seats[n] != seatOf(&v.Nodes[n]) {
				known = false
				break
			}
			x.recount(l, n)
		}
		if known {
			return
		}
	}
	if !x.fits(v, l.Types()) {
		x.reset(v, l.Types())
	}
	for n := range v.Nodes {
		x.recount(l, sched.NodeID(n))
	}
}

// fits reports whether the index is made for the nodes there are.
func (x *index) fits(v *sched.View, types int) bool {
	if len(x.seats) != len(v.Nodes) || len(x.free) != types {
		return false
	}
	for n := range v.Nodes {
		if x.seats[n] != seatOf(&v.Nodes[n]) {
			return false
		}
	}
	return true
}

// reset leaves an index in which nothing is free.
func (x *index) reset(v *sched.View, types int) {
	nodes := len(v.Nodes)
	x.wide, x.seats, x.racks = 0, make([]seat, nodes), nil
	racks := int32(0)
	for n := range v.Nodes {
		x.seats[n] = seatOf(&v.Nodes[n])
		x.wide, racks = max(x.wide, v.Nodes[n].Spec.GPUs), max(racks, x.seats[n].rack)
	}
	x.seen, x.mask = make([]uint64, nodes), make([]uint64, nodes*x.bins)
	for n := range x.seats {
		for g := range min(int(x.seats[n].gpus), 64, len(x.bin)-int(x.seats[n].first)) {
			x.mask[n*x.bins+x.bin[int(x.seats[n].first)+g]] |= 1 << g
		}
	}
	x.count, x.free, x.near = make([]uint16, nodes*x.bins), table(types, x.bins), nil
	if racks > 0 {
		x.racks, x.near = make([]sched.Bitset, racks+1), table((int(racks)+1)*types, x.bins)
		for r := range x.racks {
			x.racks[r] = sched.NewBitset(nodes)
		}
		for n := range x.seats {
			x.racks[x.seats[n].rack].Set(n)
		}
	}
	x.exact, x.upTo = x.buckets(nodes), x.buckets(nodes)
}

func table(rows, columns int) [][]int {
	list := make([][]int, rows)
	for i := range list {
		list[i] = make([]int, columns)
	}
	return list
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

// recount puts node n into its buckets. A node that is as it was costs one comparison.
func (x *index) recount(l *sched.Ledger, n sched.NodeID) {
	var found [variability.MaxBins]uint16
	s := &x.seats[n]
	if s.gpus <= 64 {
		free := l.FreeFrom(s.first) & (1<<s.gpus - 1) // a shift by 64 gives 0, hence all
		if free == x.seen[n] {
			return
		}
		x.seen[n] = free
		for b, mask := range x.mask[int(n)*x.bins : int(n+1)*x.bins] {
			found[b] = uint16(bits.OnesCount64(free & mask))
		}
	} else {
		x.look(l, s, &found)
	}
	was, now := 0, 0
	for b, count := range x.count[int(n)*x.bins : int(n+1)*x.bins] {
		if found[b] != count {
			x.move(b, int(n), int(count), int(found[b]))
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

// look counts the free GPUs of a node of any width, one by one.
func (x *index) look(l *sched.Ledger, s *seat, found *[variability.MaxBins]uint16) {
	for g := int(s.first); g < min(int(s.first)+int(s.gpus), len(x.bin)); g++ {
		if l.IsFree(sched.GPUID(g)) {
			found[x.bin[g]]++
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
	s := &x.seats[node]
	x.free[s.typ][b] += to - from
	if x.near != nil {
		x.near[int(s.rack)*len(x.free)+int(s.typ)][b] += to - from
	}
}

// with returns the nodes with exactly k free GPUs of bin b; nil if there cannot be any.
func (x *index) with(b, k int) sched.Bitset {
	if k < 1 || k > x.wide {
		return nil
	}
	return x.exact[b][k]
}

// freeOf returns the free GPUs of type t by bin, in a rack, or in all if that is everywhere.
func (x *index) freeOf(t sched.TypeID, rack int) []int {
	if rack == everywhere {
		return x.free[t]
	}
	return x.near[rack*len(x.free)+int(t)]
}

// everywhere stands for a rack where there is no such bound.
const everywhere = -1

// upToBin returns how many GPUs of type t are free in bins 0..last.
func (x *index) upToBin(t sched.TypeID, rack, last int) int {
	n := 0
	for _, k := range x.freeOf(t, rack)[:last+1] {
		n += k
	}
	return n
}
