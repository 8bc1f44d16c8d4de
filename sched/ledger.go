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
	view    *View
	free    Bitset  // by GPU
	usable  Bitset  // by GPU
	tenants []int16 // by GPU
	limit   int     // tenants a GPU may have
	tenant  []JobID // limit places for each GPU, of which the first tenants[g] are taken, in order of JobID
	low     int     // no GPU below is free
	byType  []typeBook
	node    []nodeBook
	counted bool      // some node counts CPUs or memory
	set     [][]GPUID // by job: what it has booked
	holders []JobID   // jobs that have booked something, in no particular order
	place   []int32   // by job: index in holders
	journal []entry
	logging bool

	followed bool     // somebody asks for Changes
	changed  []NodeID // whose free GPUs changed: changes number since, since+1, ...
	since    int
}

// typeBook holds the nodes of one GPU type.
type typeBook struct {
	free, usable int
	nodes        Bitset   // all of the type that are up
	bucket       []Bitset // [f] nodes with f free GPUs
	count        []int32  // members of bucket[f]
	size         []int32  // [n] nodes with n usable GPUs
	widest       int      // usable GPUs of the widest node
	maxFree      int      // upper bound on the index of the last bucket in use
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

// Rebuild forgets everything and books the targets of the view anew.
func (l *Ledger) Rebuild() {
	v := l.view
	l.free, l.usable = NewBitset(len(v.GPUs)), NewBitset(len(v.GPUs))
	l.limit = max(v.ShareLimit, 1)
	l.tenants, l.tenant = make([]int16, len(v.GPUs)), make([]JobID, len(v.GPUs)*l.limit)
	l.node = make([]nodeBook, len(v.Nodes))
	l.byType = l.byType[:0]
	l.journal, l.logging, l.counted, l.low = l.journal[:0], false, false, 0
	l.forgetChanges()
	for i := range v.Nodes {
		l.addNode(NodeID(i))
	}
	clear(l.set)
	l.holders = l.holders[:0]
	for j := range v.Jobs {
		if t := v.Jobs[j].Target; len(t) > 0 {
			l.Book(JobID(j), append([]GPUID(nil), t...))
		}
	}
}

func (l *Ledger) addNode(id NodeID) {
	n := &l.view.Nodes[id]
	for int(n.Spec.Type) >= len(l.byType) {
		l.byType = append(l.byType, typeBook{})
	}
	t := &l.byType[n.Spec.Type]
	for len(t.bucket) <= n.Spec.GPUs {
		t.bucket = append(t.bucket, nil)
		t.count = append(t.count, 0)
		t.size = append(t.size, 0)
	}
	for f := range t.bucket {
		t.bucket[f] = t.bucket[f].Grow(len(l.view.Nodes))
	}
	t.nodes = t.nodes.Grow(len(l.view.Nodes))
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
	l.enter(id, &l.node[id])
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
	t := &l.byType[b.typ]
	if b.up {
		t.nodes.Clear(int(n))
		t.bucket[b.free].Clear(int(n))
		t.count[b.free]--
		t.size[b.usable]--
		t.free -= int(b.free)
		t.usable -= int(b.usable)
	}
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
	l.enter(n, b)
	l.note(n)
	return true
}

// maxChanges is how many changes are remembered. Who is further behind had better look at the whole cluster.
const maxChanges = 1 << 12

// Changes returns the nodes whose free GPUs changed from change number from on, some of them several times, and the
// number of the next change; 0 is before the first. It reports false where it no longer knows them: look at all nodes.
// The nodes are valid until the ledger changes.
func (l *Ledger) Changes(from int) (nodes []NodeID, next int, known bool) {
	next, known = l.since+len(l.changed), l.followed && from >= l.since
	l.followed = true
	if !known {
		return nil, next, false
	}
	return l.changed[from-l.since:], next, true
}

func (l *Ledger) note(n NodeID) {
	if !l.followed {
		return
	}
	if len(l.changed) == maxChanges {
		l.forgetChanges()
	}
	l.changed = append(l.changed, n)
}

// forgetChanges leaves everybody behind.
func (l *Ledger) forgetChanges() { l.since, l.changed = l.since+len(l.changed)+1, l.changed[:0] }

// enter puts an up node into the sums and buckets of its type.
func (l *Ledger) enter(n NodeID, b *nodeBook) {
	t := &l.byType[b.typ]
	if b.up {
		t.nodes.Set(int(n))
		t.bucket[b.free].Set(int(n))
		t.count[b.free]++
		t.size[b.usable]++
		t.free += int(b.free)
		t.usable += int(b.usable)
		t.maxFree = max(t.maxFree, int(b.free))
	}
	t.widest = len(t.size) - 1
	for t.widest > 0 && t.size[t.widest] == 0 {
		t.widest--
	}
}

// Free returns the number of free GPUs of the given types.
func (l *Ledger) Free(types TypeSet) int {
	if len(l.byType) == 1 {
		return l.byType[0].free
	}
	n := 0
	for t := range l.byType {
		if types.Has(TypeID(t)) {
			n += l.byType[t].free
		}
	}
	return n
}

// Usable returns the number of GPUs of type t that are up, free or not.
func (l *Ledger) Usable(t TypeID) int { return l.byType[t].usable }

// FreeOf returns the number of free GPUs of type t.
func (l *Ledger) FreeOf(t TypeID) int { return l.byType[t].free }

// Types returns how many GPU types the cluster has; they are numbered from 0.
func (l *Ledger) Types() int { return len(l.byType) }

// Widest returns the number of usable GPUs of the widest node of type t.
func (l *Ledger) Widest(t TypeID) int { return l.byType[t].widest }

// MaxFree returns the largest number of free GPUs on one node of type t.
func (l *Ledger) MaxFree(t TypeID) int {
	b := &l.byType[t]
	for b.maxFree > 0 && b.count[b.maxFree] == 0 {
		b.maxFree--
	}
	return b.maxFree
}

// NodesWith returns how many nodes of type t have exactly f free GPUs.
func (l *Ledger) NodesWith(t TypeID, f int) int {
	if f >= len(l.byType[t].count) {
		return 0
	}
	return int(l.byType[t].count[f])
}

// NodesOf returns how many nodes of type t have exactly n usable GPUs, free or not.
func (l *Ledger) NodesOf(t TypeID, n int) int {
	if n >= len(l.byType[t].size) {
		return 0
	}
	return int(l.byType[t].size[n])
}

// NextNode returns the first node of type t, from node from on, with exactly f free GPUs, or None.
func (l *Ledger) NextNode(t TypeID, f int, from NodeID) NodeID {
	if f >= len(l.byType[t].bucket) || l.byType[t].count[f] == 0 {
		return None
	}
	return NodeID(l.byType[t].bucket[f].Next(int(from)))
}

// NextNodeIn is NextNode among the nodes of set, which has as many bits as one likes.
func (l *Ledger) NextNodeIn(set Bitset, t TypeID, f int, from NodeID) NodeID {
	if f >= len(l.byType[t].bucket) || l.byType[t].count[f] == 0 {
		return None
	}
	return NodeID(nextOfBoth(set, l.byType[t].bucket[f], int(from)))
}

// NextUp returns the first node of type t, from node from on, that is up, or None.
func (l *Ledger) NextUp(t TypeID, from NodeID) NodeID {
	return NodeID(l.byType[t].nodes.Next(int(from)))
}

// FreeOn returns the number of free GPUs of node n.
func (l *Ledger) FreeOn(n NodeID) int { return int(l.node[n].free) }

// UsableOn returns the number of GPUs of node n that may be used.
func (l *Ledger) UsableOn(n NodeID) int { return int(l.node[n].usable) }

// NextFree returns the first GPU of set, from GPU from on, that is free, or None. set has as many bits as one likes.
func (l *Ledger) NextFree(set Bitset, from GPUID) GPUID {
	return GPUID(nextOfBoth(set, l.free, int(from)))
}

// nextOfBoth returns the smallest member of a and b, from from on, or -1.
func nextOfBoth(a, b Bitset, from int) int {
	for w := from >> 6; w < min(len(a), len(b)); w++ {
		x := a[w] & b[w]
		if w == from>>6 {
			x &= ^uint64(0) << (from & 63)
		}
		if x != 0 {
			return w<<6 + bits.TrailingZeros64(x)
		}
	}
	return -1
}

// TypeOf returns the type of GPU g.
func (l *Ledger) TypeOf(g GPUID) TypeID { return l.node[l.view.GPUs[g].Node].typ }

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
	node := &l.view.Nodes[n]
	return l.take(int(node.First), int(node.First)+node.Spec.GPUs, k, dst, func(int) bool { return true })
}

// TakeAny appends k free GPUs of type t to dst in order, as TakeFrom does; the caller knows that there are as many.
func (l *Ledger) TakeAny(t TypeID, k int, dst []GPUID) []GPUID {
	l.low = max(l.free.Next(l.low), 0)
	return l.take(l.low, len(l.view.GPUs), k, dst, func(g int) bool {
		return len(l.byType) == 1 || l.node[l.view.GPUs[g].Node].typ == t
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

// NodeOf returns the node of GPU g.
func (l *Ledger) NodeOf(g GPUID) NodeID { return l.view.GPUs[g].Node }

// Owner returns the one job that has booked GPU g, or None if none or several have.
func (l *Ledger) Owner(g GPUID) JobID {
	if l.tenants[g] != 1 {
		return None
	}
	return l.tenant[int(g)*l.limit]
}

// Tenants returns the jobs that have booked GPU g, in order of JobID. It is valid until the next change.
func (l *Ledger) Tenants(g GPUID) []JobID {
	return l.tenant[int(g)*l.limit:][:l.tenants[g]]
}

// Untaken reports whether no GPU of gpus has a tenant, usable or not: whether who left it can have it back.
func (l *Ledger) Untaken(gpus []GPUID) bool {
	for _, g := range gpus {
		if l.tenants[g] != 0 {
			return false
		}
	}
	return true
}

// Set returns what job j has booked, nil if nothing.
func (l *Ledger) Set(j JobID) []GPUID {
	if int(j) >= len(l.set) {
		return nil
	}
	return l.set[j]
}

// Holders returns the jobs that have booked something, in no particular order. It is valid until the next change.
func (l *Ledger) Holders() []JobID { return l.holders }

// Book makes job j, which has nothing booked, a tenant of gpus, in GPUID order. The ledger keeps gpus: they must not
// change until released.
func (l *Ledger) Book(j JobID, gpus []GPUID) {
	if l.logging {
		l.journal = append(l.journal, entry{j, gpus, true})
	}
	l.book(j, gpus)
}

func (l *Ledger) book(j JobID, gpus []GPUID) {
	if int(j) >= cap(l.set) {
		more := max(cap(l.view.Jobs), int(j)+1) - len(l.set)
		l.set, l.place = slices.Grow(l.set, more), slices.Grow(l.place, more)
	}
	for int(j) >= len(l.set) {
		l.set, l.place = append(l.set, nil), append(l.place, 0)
	}
	if l.set[j] != nil {
		panic(fmt.Sprintf("sched: ledger: job %d books twice, version %d", j, l.view.Version))
	}
	l.set[j] = gpus
	l.place[j] = int32(len(l.holders))
	l.holders = append(l.holders, j)
	l.apply(j, gpus, 1)
}

// Release ends the tenancy of job j and returns what it had booked.
func (l *Ledger) Release(j JobID) []GPUID {
	gpus := l.set[j]
	if l.logging {
		l.journal = append(l.journal, entry{j, gpus, false})
	}
	l.release(j)
	return gpus
}

func (l *Ledger) release(j JobID) {
	gpus := l.set[j]
	if gpus == nil {
		panic(fmt.Sprintf("sched: ledger: job %d releases nothing, version %d", j, l.view.Version))
	}
	l.set[j] = nil
	last := l.holders[len(l.holders)-1]
	l.holders[l.place[j]] = last
	l.place[last] = l.place[j]
	l.holders = l.holders[:len(l.holders)-1]
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

// apply adds d tenants to each GPU and moves nodes between buckets.
func (l *Ledger) apply(j JobID, gpus []GPUID, d int16) {
	for i := 0; i < len(gpus); {
		n := l.view.GPUs[gpus[i]].Node
		b := &l.node[n]
		was, first := b.free, i
		for ; i < len(gpus) && l.view.GPUs[gpus[i]].Node == n; i++ {
			g := int(gpus[i])
			switch { // the first two nearly always
			case l.limit == 1 && d > 0 && l.tenants[g] == 0:
				l.tenant[g], l.tenants[g] = j, 1
			case l.limit == 1 && d < 0 && l.tenants[g] == 1 && l.tenant[g] == j:
				l.tenants[g] = 0
			default:
				l.settle(j, g, d)
			}
			switch {
			case !l.usable.Has(g):
			case d > 0 && l.tenants[g] == 1:
				l.free.Clear(g)
				b.free--
			case d < 0 && l.tenants[g] == 0:
				l.free.Set(g)
				l.low = min(l.low, g)
				b.free++
			}
		}
		if l.counted {
			s := l.view.Jobs[j].Spec
			b.cpus -= s.CPUs * float32(d) * float32(i-first)
			b.memGB -= s.MemoryGB * float32(d) * float32(i-first)
		}
		if b.up && b.free != was {
			l.rebucket(n, was, b)
		}
	}
}

// settle enters job j among the tenants of GPU g, or strikes it out.
func (l *Ledger) settle(j JobID, g int, d int16) {
	n := int(l.tenants[g])
	all := l.tenant[g*l.limit : (g+1)*l.limit]
	i := 0
	for i < n && all[i] < j {
		i++
	}
	switch {
	case d > 0 && n == l.limit:
		panic(fmt.Sprintf("sched: ledger: job %d books GPU %d, which has %d tenants, version %d", j, g, n,
			l.view.Version))
	case d < 0 && (i == n || all[i] != j):
		panic(fmt.Sprintf("sched: ledger: job %d releases GPU %d, which it has not, version %d", j, g, l.view.Version))
	case d > 0:
		copy(all[i+1:], all[i:n])
		all[i] = j
	default:
		copy(all[i:], all[i+1:n])
	}
	l.tenants[g] += d
}

func (l *Ledger) rebucket(n NodeID, was int32, b *nodeBook) {
	t := &l.byType[b.typ]
	t.bucket[was].Clear(int(n))
	t.count[was]--
	t.bucket[b.free].Set(int(n))
	t.count[b.free]++
	t.free += int(b.free - was)
	t.maxFree = max(t.maxFree, int(b.free))
	l.note(n)
}
