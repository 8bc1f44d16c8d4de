package sched

import "math/bits"

// typeBooks holds the nodes of each GPU type, by TypeID.
type typeBooks []typeBook

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

// grow ensures that there is a book of type t, with buckets for nodes of so many GPUs and places for so many nodes.
func (b *typeBooks) grow(t TypeID, gpus, nodes int) *typeBook {
	for int(t) >= len(*b) {
		*b = append(*b, typeBook{})
	}
	book := &(*b)[t]
	for len(book.bucket) <= gpus {
		book.bucket = append(book.bucket, nil)
		book.count = append(book.count, 0)
		book.size = append(book.size, 0)
	}
	for f := range book.bucket {
		book.bucket[f] = book.bucket[f].Grow(nodes)
	}
	book.nodes = book.nodes.Grow(nodes)
	return book
}

// enter puts an up node into the sums and buckets.
func (t *typeBook) enter(n NodeID, b *nodeBook) {
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

// leave takes an up node out of the sums and buckets. What is widest is brought up to date by enter.
func (t *typeBook) leave(n NodeID, b *nodeBook) {
	if b.up {
		t.nodes.Clear(int(n))
		t.bucket[b.free].Clear(int(n))
		t.count[b.free]--
		t.size[b.usable]--
		t.free -= int(b.free)
		t.usable -= int(b.usable)
	}
}

// move puts an up node that had was free GPUs into the bucket of those with free ones.
func (t *typeBook) move(n NodeID, was, free int32) {
	t.bucket[was].Clear(int(n))
	t.count[was]--
	t.bucket[free].Set(int(n))
	t.count[free]++
	t.free += int(free - was)
	t.maxFree = max(t.maxFree, int(free))
}

// Free returns the number of free GPUs of the given types.
func (b typeBooks) Free(types TypeSet) int {
	if len(b) == 1 {
		return b[0].free
	}
	n := 0
	for t := range b {
		if types.Has(TypeID(t)) {
			n += b[t].free
		}
	}
	return n
}

// Usable returns the number of GPUs of type t that are up, free or not.
func (b typeBooks) Usable(t TypeID) int { return b[t].usable }

// FreeOf returns the number of free GPUs of type t.
func (b typeBooks) FreeOf(t TypeID) int { return b[t].free }

// Types returns how many GPU types the cluster has; they are numbered from 0.
func (b typeBooks) Types() int { return len(b) }

// Widest returns the number of usable GPUs of the widest node of type t.
func (b typeBooks) Widest(t TypeID) int { return b[t].widest }

// MaxFree returns the largest number of free GPUs on one node of type t.
func (b typeBooks) MaxFree(t TypeID) int {
	book := &b[t]
	for book.maxFree > 0 && book.count[book.maxFree] == 0 {
		book.maxFree--
	}
	return book.maxFree
}

// NodesOf returns how many nodes of type t have exactly n usable GPUs, free or not.
func (b typeBooks) NodesOf(t TypeID, n int) int {
	if n >= len(b[t].size) {
		return 0
	}
	return int(b[t].size[n])
}

// NodesWith returns how many nodes of type t that are up have exactly f free GPUs.
func (b typeBooks) NodesWith(t TypeID, f int) int {
	if f >= len(b[t].count) {
		return 0
	}
	return int(b[t].count[f])
}

// NextNode returns the first node of type t, from node from on, with exactly f free GPUs, or None.
func (b typeBooks) NextNode(t TypeID, f int, from NodeID) NodeID {
	if f >= len(b[t].bucket) || b[t].count[f] == 0 {
		return None
	}
	return NodeID(b[t].bucket[f].Next(int(from)))
}

// NextNodeIn is NextNode among the nodes of set, which has as many bits as one likes.
func (b typeBooks) NextNodeIn(set Bitset, t TypeID, f int, from NodeID) NodeID {
	if f >= len(b[t].bucket) || b[t].count[f] == 0 {
		return None
	}
	return NodeID(nextOfBoth(set, b[t].bucket[f], int(from)))
}

// NextUp returns the first node of type t, from node from on, that is up, or None.
func (b typeBooks) NextUp(t TypeID, from NodeID) NodeID { return NodeID(b[t].nodes.Next(int(from))) }

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
