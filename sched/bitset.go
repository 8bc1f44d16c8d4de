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

// Grow returns b with room for 0..n-1.
func (b Bitset) Grow(n int) Bitset {
	for len(b) < (n+63)/64 {
		b = append(b, 0)
	}
	return b
}
