package pollux

import "math/bits"

// Rows of states are words of eight bytes, a byte for each node, so that eight nodes are looked at together. Bytes stay
// far below 128: the highest bit of each is free for comparisons.

// lanes is the number of nodes in a word.
const lanes = 8

const (
	ones  = 0x0101010101010101
	tops  = 0x8080808080808080
	rests = tops - ones // 127 in each byte
)

// occupied returns the highest bit of each byte that is above 0.
func occupied(x uint64) uint64 { return (x + rests) & tops }

// above returns the highest bit of each byte that is above n.
func above(x uint64, n int) uint64 { return (x + ones*uint64(127-n)) & tops }

// notFull returns the highest bit of each byte that is below n.
func notFull(x uint64, n int) uint64 { return ^(x + ones*uint64(128-n)) & tops }

// whole fills the bytes whose highest bit is set in mask.
func whole(mask uint64) uint64 { return mask >> 7 * 255 }

func bits8(mask uint64) int { return bits.OnesCount64(mask) }

// laneOf returns the number of the first byte with a bit set.
func laneOf(x uint64) int { return bits.TrailingZeros64(x) / 8 }

// count returns how many bytes of a row are above 0, and their sum.
func count(row []uint64) (nodes, gpus int) {
	for _, x := range row {
		nodes += bits8(occupied(x))
		gpus += int(x * ones >> 56)
	}
	return nodes, gpus
}

// at returns byte n of a row.
func at(row []uint64, n int) int { return int(row[n/lanes] >> (n % lanes * 8) & 255) }

// add adds to byte n of a row; what comes out must fit.
func add(row []uint64, n, gpus int) { row[n/lanes] += uint64(gpus) << (n % lanes * 8) }

// fit8 cuts each byte of x so that with that of used it is at most n.
func fit8(x, used uint64, n int) (y uint64) {
	for shift := 0; shift < 64; shift += 8 {
		g, free := int(x>>shift&255), n-int(used>>shift&255)
		y |= uint64(min(g, free)) << shift
	}
	return y
}
