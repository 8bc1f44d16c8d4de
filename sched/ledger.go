package sched

import (
	"fmt"
	"math/bits"
	"slices"
)

// Ledger is the scratch book of who is to hold which GPU: targets, not processes. A walk books and releases
// tentatively, goes back to a mark when a gang does not fit, and commits when it is done. It keeps nodes in buckets by
// their number of free GPUs, so that the usual questions of a Placer cost a few words, not a scan of the cluster.
//
// A GPU is free when it is usable and has no tenant. All orders are by NodeID, then GPUID.
type Ledger struct {
	typeBooks
	tenancy
	bookings
	changes

	view    *View
	free    Bitset // by GPU
	usable  Bitset // by GPU
	low     int    // no GPU below is free
	node    []nodeBook
	counted bool // some node counts CPUs or memory
	journal []entry
	logging bool
}

type nodeBook struct {
	free, usable int32
	up           bool
	typ          TypeID
	cpus, memGB  float32 // left
	allCPUs      float32 // of the machine in the slot
	allMemGB     float32
}

type entry struct {
	job    JobID
	gpus   []GPUID
	booked bool
}

// NewLedger returns the book of v's targets.
func NewLedger(v *View) *Ledger {
	l := &Ledger{view: v}
	l.Rebuild()
	return l
}

// Rebuild forgets everything and books the targets of the view again.
func (l *Ledger) Rebuild() {
	v := l.view
	l.free, l.usable = NewBitset(len(v.GPUs)), NewBitset(len(v.GPUs))
	l.tenancy = newTenancy(len(v.GPUs), max(v.ShareLimit, 1))
	l.node = make([]nodeBook, len(v.Nodes))
	l.typeBooks = l.typeBooks[:0]
	l.journal, l.logging, l.counted, l.low = l.journal[:0], false, false, 0
	l.changes.forget()
	for i := range v.Nodes {
		l.addNode(NodeID(i))
	}
	l.bookings.clear()
	for j := range v.Jobs {
		if t := v.Jobs[j].Target; len(t) > 0 {
			l.Book(JobID(j), append([]GPUID(nil), t...))
		}
	}
}

func (l *Ledger) addNode(id NodeID) {
	n := &l.view.Nodes[id]
	t := l.typeBooks.grow(n.Spec.Type, n.Spec.GPUs, len(l.view.Nodes))
	b := nodeBook{typ: n.Spec.Type, up: n.Open(), cpus: n.Spec.CPUs, memGB: n.Spec.MemoryGB,
		allCPUs: n.Spec.CPUs, allMemGB: n.Spec.MemoryGB}
	l.counted = l.counted || n.Spec.CPUs > 0 || n.Spec.MemoryGB > 0
	for g := n.First; g < n.First+GPUID(n.Spec.GPUs); g++ {
		if b.up && l.view.GPUs[g].Usable() {
			l.usable.Set(int(g))
			l.free.Set(int(g))
			b.free, b.usable = b.free+1, b.usable+1
		}
	}
	l.node[id] = b
	t.enter(id, &l.node[id])
}

// Refresh brings the book of node n up to the view after its state, or that of its GPUs, changed. It reports false if
// the node is new to the book or of another kind than before: then Rebuild.
func (l *Ledger) Refresh(n NodeID) bool {
	v := l.view
	if int(n) >= len(l.node) || l.node[n].typ != v.Nodes[n].Spec.Type {
		return false
	}
	b, spec := &l.node[n], &v.Nodes[n].Spec
	b.cpus, b.allCPUs = b.cpus+spec.CPUs-b.allCPUs, spec.CPUs
	b.memGB, b.allMemGB = b.memGB+spec.MemoryGB-b.allMemGB, spec.MemoryGB
	l.counted = l.counted || spec.CPUs > 0 || spec.MemoryGB > 0
	if !b.up && !v.Nodes[n].Open() {
		return true // none of its GPUs is usable, as before
	}
	t := &l.typeBooks[b.typ]
	t.leave(n, b)
	b.up, b.free, b.usable = v.Nodes[n].Open(), 0, 0
	for g := v.Nodes[n].First; g < v.Nodes[n].First+GPUID(spec.GPUs); g++ {
		l.usable.Clear(int(g))
		l.free.Clear(int(g))
		if !b.up || !v.GPUs[g].Usable() {
			continue
		}
		b.usable++
		l.usable.Set(int(g))
		if l.tenants[g] == 0 {
			b.free++
			l.free.Set(int(g))
			l.low = min(l.low, int(g))
		}
	}
	t.enter(n, b)
	l.changes.note(n)
	return true
}

// FreeOn returns the number of free GPUs of node n.
func (l *Ledger) FreeOn(n NodeID) int { return int(l.node[n].free) }

// UsableOn returns the number of GPUs of node n that may be used.
func (l *Ledger) UsableOn(n NodeID) int { return int(l.node[n].usable) }

// IsFree reports whether GPU g is free.
func (l *Ledger) IsFree(g GPUID) bool { return l.free.Has(int(g)) }

// FreeFrom returns which of GPUs g, g+1, ... g+63 are free, as bits, the first lowest.
func (l *Ledger) FreeFrom(g GPUID) uint64 { return l.free.From(int(g)) }

// IsUsable reports whether GPU g may be used, free or not.
func (l *Ledger) IsUsable(g GPUID) bool { return l.usable.Has(int(g)) }

// Counted reports whether some node counts CPUs or memory, so that Room may say no.
func (l *Ledger) Counted() bool { return l.counted }

// Room reports whether node n has CPUs and memory for k more GPUs of job j.
func (l *Ledger) Room(n NodeID, j JobID, k int) bool {
	if !l.counted {
		return true
	}
	s, spec := l.view.Jobs[j].Spec, &l.view.Nodes[n].Spec
	return (spec.CPUs == 0 || l.node[n].cpus >= s.CPUs*float32(k)) &&
		(spec.MemoryGB == 0 || l.node[n].memGB >= s.MemoryGB*float32(k))
}

// TakeFrom appends k free GPUs of node n to dst in order; the caller knows that there are as many. They are the first
// ones, but for those of attempts that are still leaving, which are taken if there are no others.
func (l *Ledger) TakeFrom(n NodeID, k int, dst []GPUID) []GPUID {
	if k == int(l.node[n].free) {
		return l.takeAll(n, dst)
	}
	node := &l.view.Nodes[n]
	return l.take(int(node.First), int(node.First)+node.Spec.GPUs, k, dst, func(int) bool { return true })
}

// takeAll appends the free GPUs of node n to dst, in order.
func (l *Ledger) takeAll(n NodeID, dst []GPUID) []GPUID {
	node := &l.view.Nodes[n]
	for g, left := node.First, node.Spec.GPUs; left > 0; g, left = g+64, left-64 {
		free := l.FreeFrom(g)
		if left < 64 {
			free &= 1<<left - 1
		}
		if n := min(left, 64); bits.OnesCount64(free) == n { // nearly always
			for h := g; h < g+GPUID(n); h++ {
				dst = append(dst, h)
			}
			continue
		}
		for ; free != 0; free &= free - 1 {
			dst = append(dst, g+GPUID(bits.TrailingZeros64(free)))
		}
	}
	return dst
}

// TakeAny appends k free GPUs of type t to dst in order, as TakeFrom does; the caller knows that there are as many.
func (l *Ledger) TakeAny(t TypeID, k int, dst []GPUID) []GPUID {
	l.low = max(l.free.Next(l.low), 0)
	return l.take(l.low, len(l.view.GPUs), k, dst, func(g int) bool {
		return len(l.typeBooks) == 1 || l.node[l.view.GPUs[g].Node].typ == t
	})
}

// take appends k free GPUs from first to below end that will do to dst, in order: those that attempts are leaving last.
func (l *Ledger) take(first, end, k int, dst []GPUID, do func(g int) bool) []GPUID {
	was := len(dst)
	for _, left := range [2]bool{false, true} {
		for g := l.free.Next(first); k > 0 && g >= 0 && g < end; g = l.free.Next(g + 1) {
			if l.isLeft(g) == left && do(g) {
				dst = append(dst, GPUID(g))
				k--
			}
		}
		if k == 0 {
			break
		}
	}
	slices.Sort(dst[was:])
	return dst
}

// isLeft reports whether an attempt is still on GPU g that was to leave it before this decision: it may take its grace.
func (l *Ledger) isLeft(g int) bool { return l.view.GPUs[g].Holders > l.view.GPUs[g].Targets }

// Alone returns how many of gpus, all of node n and booked by job j, may be used and have no other tenant.
func (l *Ledger) Alone(n NodeID, j JobID, gpus []GPUID) (count int) {
	if l.limit == 1 && int(l.node[n].usable) == l.view.Nodes[n].Spec.GPUs {
		return len(gpus)
	}
	for _, g := range gpus {
		if l.IsUsable(g) && l.Owner(g) == j {
			count++
		}
	}
	return count
}

// NodeOf returns the node of GPU g.
func (l *Ledger) NodeOf(g GPUID) NodeID { return l.view.GPUs[g].Node }

// Lead is that of the view.
func (l *Ledger) Lead(gpus []GPUID) int { return l.view.Lead(gpus) }

// Book makes job j, which has nothing booked, a tenant of gpus, in GPUID order. The ledger keeps gpus: they must not
// change until released.
func (l *Ledger) Book(j JobID, gpus []GPUID) {
	if l.logging {
		l.journal = append(l.journal, entry{j, gpus, true})
	}
	l.book(j, gpus)
}

func (l *Ledger) book(j JobID, gpus []GPUID) {
	if l.Set(j) != nil {
		panic(fmt.Sprintf("sched: ledger: job %d books twice, version %d", j, l.view.Version))
	}
	l.bookings.add(j, gpus, cap(l.view.Jobs))
	l.apply(j, gpus, 1)
}

// Release ends the tenancy of job j and returns what it had booked.
func (l *Ledger) Release(j JobID) []GPUID {
	gpus := l.Set(j)
	if l.logging {
		l.journal = append(l.journal, entry{j, gpus, false})
	}
	l.release(j)
	return gpus
}

func (l *Ledger) release(j JobID) {
	gpus := l.Set(j)
	if gpus == nil {
		panic(fmt.Sprintf("sched: ledger: job %d releases nothing, version %d", j, l.view.Version))
	}
	l.bookings.remove(j)
	l.apply(j, gpus, -1)
}

// Mark starts, or goes on with, a tentative part and returns where it stands.
func (l *Ledger) Mark() int {
	l.logging = true
	return len(l.journal)
}

// Undo takes back everything since mark, last first.
func (l *Ledger) Undo(mark int) {
	for i := len(l.journal) - 1; i >= mark; i-- {
		e := &l.journal[i]
		if e.booked {
			l.release(e.job)
		} else {
			l.book(e.job, e.gpus)
		}
	}
	l.journal = l.journal[:mark]
}

// Commit ends the tentative part: nothing before can be undone any more.
func (l *Ledger) Commit() {
	l.journal, l.logging = l.journal[:0], false
}

// apply enters job j among the tenants of gpus where d is 1, strikes it out where d is -1, and moves nodes between
// buckets.
func (l *Ledger) apply(j JobID, gpus []GPUID, d int) {
	for len(gpus) > 0 {
		n, k := l.view.GPUs[gpus[0]].Node, l.view.Lead(gpus)
		b, first := &l.node[n], int(gpus[0])
		was := b.free
		if d > 0 {
			l.occupy(b, j, first, k)
		} else {
			l.vacate(b, j, first, k)
		}
		if l.counted {
			spec := l.view.Jobs[j].Spec
			b.cpus -= spec.CPUs * float32(d) * float32(k)
			b.memGB -= spec.MemoryGB * float32(d) * float32(k)
		}
		if b.up && b.free != was {
			l.typeBooks[b.typ].move(n, was, b.free)
			l.changes.note(n)
		}
		gpus = gpus[k:]
	}
}

// occupy makes job j a tenant of n GPUs from first on, which are on the node of b.
func (l *Ledger) occupy(b *nodeBook, j JobID, first, n int) {
	if l.sole(l.free, first, n) { // nearly always
		l.tenancy.enterAll(j, first, n)
		l.free.ClearFrom(first, n)
		b.free -= int32(n)
		return
	}
	for g := first; g < first+n; g++ {
		if !l.tenancy.enter(j, g) {
			panic(fmt.Sprintf("sched: ledger: job %d books GPU %d, which has %d tenants, version %d", j, g,
				l.tenants[g], l.view.Version))
		}
		if l.tenants[g] == 1 && l.usable.Has(g) {
			l.free.Clear(g)
			b.free--
		}
	}
}

// sole reports whether no two share a GPU, and n from first on are all in set.
func (l *Ledger) sole(set Bitset, first, n int) bool {
	return l.limit == 1 && n <= 64 && bits.OnesCount64(set.From(first)<<(64-n)) == n
}

// vacate ends the tenancy of job j of n GPUs from first on, which are on the node of b.
func (l *Ledger) vacate(b *nodeBook, j JobID, first, n int) {
	freed := b.free
	if l.sole(l.usable, first, n) && l.tenancy.leaveAll(j, first, n) { // nearly always
		l.free.SetFrom(first, n)
		b.free += int32(n)
	} else {
		l.vacateEach(b, j, first, n)
	}
	if b.free > freed {
		l.low = min(l.low, first)
	}
}

// vacateEach is vacate GPU by GPU.
func (l *Ledger) vacateEach(b *nodeBook, j JobID, first, n int) {
	for g := first; g < first+n; g++ {
		if !l.tenancy.leave(j, g) {
			panic(fmt.Sprintf("sched: ledger: job %d releases GPU %d, which it has not, version %d", j, g,
				l.view.Version))
		}
		if l.tenants[g] == 0 && l.usable.Has(g) {
			l.free.Set(g)
			b.free++
		}
	}
}
