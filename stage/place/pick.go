package place

import "github.com/trainyard/trainyard/sched"

// pick is the choice of GPUs for one gang.
type pick struct {
	*index
	v     *sched.View
	l     *sched.Ledger
	j     sched.JobID
	t     sched.TypeID
	n     int
	dst   []sched.GPUID
	begin int // the gang is dst[start:]
	rack  int // nodes of this rack only, or everywhere
}

func (s *Scores) pick(v *sched.View, l *sched.Ledger, j sched.JobID, t, n int, dst []sched.GPUID) pick {
	return pick{s.index(v, l, s.Class(v, j)), v, l, j, sched.TypeID(t), n, dst, len(dst), everywhere}
}

// left returns how many GPUs the gang lacks.
func (p *pick) left() int { return p.n - (len(p.dst) - p.begin) }

// done returns the gang, packed if none was picked.
func (p *pick) done() ([]sched.GPUID, bool) {
	if p.left() > 0 {
		return Packed{}.Place(p.v, p.l, p.j, p.n, p.dst[:p.begin])
	}
	return p.dst, true
}

// fastest picks as PM-First does among bins 0..last. It reports false, and picks nothing, if there is too little.
func (p *pick) fastest(last int) bool {
	free := p.freeOf(p.t, p.rack)
	if p.upToBin(p.t, p.rack, last) >= p.n {
		for b := 0; b <= last && p.left() > 0; b++ {
			if free[b] > 0 {
				p.nearest(b)
			}
		}
	}
	return p.whole()
}

// whole drops a gang that is not complete.
func (p *pick) whole() bool {
	if p.left() > 0 {
		p.dst = p.dst[:p.begin]
		return false
	}
	return true
}

// nearest takes GPUs of bin b, from those nodes first that have a number of them free near to n. Ties: lowest node.
func (p *pick) nearest(b int) {
	n := p.n
	for far := max(0, n-p.wide); far < max(n, p.wide-n+1); far++ {
		fewer, more := p.with(b, n-far), p.with(b, n+far)
		for node := nextOfEither(fewer, more, 0); node >= 0; node = nextOfEither(fewer, more, node+1) {
			if p.take(sched.NodeID(node), b, b, p.left()); p.left() == 0 {
				return
			}
		}
	}
}

// nextOfEither returns the smallest member of a or b, from from on, or -1.
func nextOfEither(a, b sched.Bitset, from int) int {
	x, y := a.Next(from), b.Next(from)
	if x < 0 || y >= 0 && y < x {
		return y
	}
	return x
}

// together picks n GPUs of one node in bins 0..last: that with the fewest free GPUs, then the lower number. It reports
// false if none has as many.
func (p *pick) together(last int) bool {
	for free := p.n; free <= p.l.MaxFree(p.t) && p.n <= p.wide; free++ {
		set := p.upTo[last][p.n]
		for node := p.l.NextNodeIn(set, p.t, free, 0); node != sched.None; node = p.l.NextNodeIn(set, p.t, free,
			node+1) {
			if p.l.Room(node, p.j, p.n) {
				p.take(node, 0, last, p.n)
				return true
			}
		}
	}
	return false
}

// fewest picks GPUs on few nodes in bins 0..last: nodes with most of them first, and last the one that has just enough
// left. It reports false, and picks nothing, if there is too little.
func (p *pick) fewest(last int) bool {
	if p.upToBin(p.t, p.rack, last) >= p.n {
		for k := p.wide; k > 0 && p.left() > 0; k-- {
			for node := p.having(last, k, 0); node >= 0 && p.left() > 0; node = p.having(last, k, node+1) {
				if p.left() < k {
					p.remainder(last, k, node)
				} else {
					p.take(sched.NodeID(node), 0, last, k)
				}
			}
		}
	}
	return p.whole()
}

// remainder takes what is left from the node that has just enough: of those with exactly most, nodes before node are
// taken.
func (p *pick) remainder(last, most, node int) {
	for k := p.left(); k < most; k++ {
		if small := p.having(last, k, 0); small >= 0 {
			node = small
			break
		}
	}
	p.take(sched.NodeID(node), 0, last, p.left())
}

// may reports whether a node is of the gang's type, and in its rack if it has one.
func (p *pick) may(node int) bool {
	s := &p.seats[node]
	return s.typ == p.t && (p.rack == everywhere || int(s.rack) == p.rack)
}

// having returns the first node that the gang may use, from node from on, with exactly k free GPUs in bins 0..last, or
// -1.
func (p *pick) having(last, k, from int) int {
	for node := p.upTo[last][k].Next(from); node >= 0; node = p.upTo[last][k].Next(node + 1) {
		more := k < p.wide && p.upTo[last][k+1].Has(node)
		if !more && p.may(node) {
			return node
		}
	}
	return -1
}

// take takes up to k free GPUs of a node in bins low..high, lowest numbers first: as many as it has room for. A node
// that the gang may not use has none.
func (p *pick) take(node sched.NodeID, low, high, k int) {
	if !p.may(int(node)) {
		return
	}
	k = p.roomFor(node, k)
	first := int(p.seats[node].first)
	for g := first; g < min(first+int(p.seats[node].gpus), len(p.bin)) && k > 0; g++ {
		if b := p.bin[g]; b >= low && b <= high && p.l.IsFree(sched.GPUID(g)) {
			p.dst = append(p.dst, sched.GPUID(g))
			k--
		}
	}
}

// roomFor returns how many GPUs, at most k, of a node the gang may take besides those it has taken there.
func (p *pick) roomFor(node sched.NodeID, k int) int {
	if !p.l.Counted() {
		return k
	}
	has := 0
	for _, g := range p.dst[p.begin:] {
		if p.l.NodeOf(g) == node {
			has++
		}
	}
	for k > 0 && !p.l.Room(node, p.j, has+k) {
		k--
	}
	return k
}
