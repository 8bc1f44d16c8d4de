// Package mersenne is the generator of Python's module random, MT19937, with the draws that published simulators make
// of it: runs that must repeat theirs to the digit need the same numbers. Whoever needs randomness for anything else
// takes math/rand/v2.
//
// Source: Matsumoto and Nishimura, "Mersenne Twister", ACM TOMACS 8(1), 1998, with their seeding by array of 2002;
// CPython, Modules/_randommodule.c and Lib/random.py, 3.2 to 3.11.
package mersenne

// length is the number of words of the state; middle is how far ahead the word is that each new one is mixed with.
const (
	length = 624
	middle = 397
)

// Generator draws numbers; make it by New.
type Generator struct {
	state [length]uint32
	next  int
}

// New is random.seed(seed).
func New(seed uint32) *Generator {
	m := &Generator{next: length}
	s := &m.state
	s[0] = 19650218
	for i := uint32(1); i < length; i++ {
		s[i] = 1812433253*(s[i-1]^s[i-1]>>30) + i
	}
	i := 1
	step := func(factor, plus uint32) {
		s[i] = (s[i] ^ (s[i-1]^s[i-1]>>30)*factor) + plus
		if i++; i == length {
			s[0], i = s[length-1], 1
		}
	}
	for range length {
		step(1664525, seed)
	}
	for range length - 1 {
		step(1566083941, -uint32(i))
	}
	s[0] = 1 << 31
	return m
}

func (m *Generator) refill() {
	s := &m.state
	for i := range s {
		y := s[i]&(1<<31) | s[(i+1)%length]&(1<<31-1)
		s[i] = s[(i+middle)%length] ^ y>>1 ^ (y&1)*0x9908b0df
	}
	m.next = 0
}

// Uint32 returns the next 32 bits.
func (m *Generator) Uint32() uint32 {
	if m.next == length {
		m.refill()
	}
	y := m.state[m.next]
	m.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

// Float64 is random.random(): 53 bits in [0, 1).
func (m *Generator) Float64() float64 {
	a, b := m.Uint32()>>5, m.Uint32()>>6
	return (float64(a)*(1<<26) + float64(b)) / (1 << 53)
}

// Below is random._randbelow(n), and the index that random.choice takes from a list of n; 0 < n < 1<<31.
func (m *Generator) Below(n int) int {
	shift := 32
	for k := n; k > 0; k >>= 1 {
		shift--
	}
	for {
		if x := int(m.Uint32() >> shift); x < n {
			return x
		}
	}
}

// Sample is random.sample(pool, n), 0 <= n <= len(pool): it calls take with each element drawn. It may reorder pool.
func Sample[T any](m *Generator, pool []T, n int, take func(T)) {
	if len(pool) > longestPool(n) {
		sampleBySet(m, pool, n, take)
		return
	}
	for left := len(pool); left > len(pool)-n; left-- {
		k := m.Below(left)
		take(pool[k])
		pool[k] = pool[left-1]
	}
}

// longestPool is the length up to which Python draws n elements from a copy of the list.
func longestPool(n int) int {
	if n <= 5 {
		return 21
	}
	power := 1
	for power < 3*n {
		power *= 4
	}
	return 21 + power
}

func sampleBySet[T any](m *Generator, pool []T, n int, take func(T)) {
	taken := make([]bool, len(pool))
	for range n {
		k := m.Below(len(pool))
		for taken[k] {
			k = m.Below(len(pool))
		}
		taken[k] = true
		take(pool[k])
	}
}
