package sched

import "math/bits"

// Bitset is a set of small non-negative integers, iterated in increasing order.
type Bitset []uint64

// NewBitset returns an empty set for 0..n-1.
func NewBitset(n int) Bitset { return make(Bitset, (n+63)/64) }

// Set adds i.
func (b Bitset) Set(i int) { b[i>>6] |= 1 << (i & 63) }

// Clear removes i.
func (b Bitset) Clear(i int) { b[i>>6] &^= 1 << (i & 63) }

// Has reports whether i is in the set.
func (b Bitset) Has(i int) bool { return b[i>>6]>>(i&63)&1 == 1 }

// Next returns the smallest member >= i, or -1.
func (b Bitset) Next(i int) int {
	w := i >> 6
	if w >= len(b) {
		return -1
	}
	if x := b[w] >> (i & 63); x != 0 {
		return i + bits.TrailingZeros64(x)
	}
	for w++; w < len(b); w++ {
		if b[w] != 0 {
			return w<<6 + bits.TrailingZeros64(b[w])
		}
	}
	return -1
}

// From returns i, i+1, ... i+63 as bits, the first lowest; what is beyond the set is not in it.
func (b Bitset) From(i int) uint64 {
	w := i >> 6
	if w >= len(b) {
		return 0
	}
	x := b[w] >> (i & 63)
	if i&63 != 0 && w+1 < len(b) {
		x |= b[w+1] << (64 - i&63)
	}
	return x
}

// SetFrom adds i, i+1, ... i+n-1; n is at most 64.
func (b Bitset) SetFrom(i, n int) {
	low, high := spread(i, n)
	if b[i>>6] |= low; high != 0 {
		b[i>>6+1] |= high
	}
}

// ClearFrom removes i, i+1, ... i+n-1; n is at most 64.
func (b Bitset) ClearFrom(i, n int) {
	low, high := spread(i, n)
	if b[i>>6] &^= low; high != 0 {
		b[i>>6+1] &^= high
	}
}

// spread returns the bits of i, i+1, ... i+n-1 in the word of i and in the one after it.
func spread(i, n int) (low, high uint64) {
	all := ^uint64(0) >> (64 - n)
	return all << (i & 63), all >> 1 >> (63 - i&63)
}

// Grow returns b with room for 0..n-1.
func (b Bitset) Grow(n int) Bitset {
	for len(b) < (n+63)/64 {
		b = append(b, 0)
	}
	return b
}
