package published

// mersenne is the generator of Python's module random: MT19937.
//
// Source: Matsumoto and Nishimura, "Mersenne Twister", ACM TOMACS 8(1), 1998, with their seeding by array of 2002;
// CPython, Modules/_randommodule.c and Lib/random.py, 3.2 and newer.
type mersenne struct {
	state [624]uint32
	next  int
}

// newMersenne is random.seed(seed).
func newMersenne(seed uint32) *mersenne {
	m := &mersenne{next: len(mersenne{}.state)}
	s := &m.state
	s[0] = 19650218
	for i := 1; i < len(s); i++ {
		s[i] = 1812433253*(s[i-1]^s[i-1]>>30) + uint32(i)
	}
	i := 1
	mix := func(factor, plus uint32) {
		s[i] = (s[i] ^ (s[i-1]^s[i-1]>>30)*factor) + plus
		if i++; i == len(s) {
			s[0], i = s[len(s)-1], 1
		}
	}
	for range len(s) {
		mix(1664525, seed)
	}
	for range len(s) - 1 {
		mix(1566083941, -uint32(i))
	}
	s[0] = 1 << 31
	return m
}

// uint32 returns the next 32 bits.
func (m *mersenne) uint32() uint32 {
	s := &m.state
	if m.next == len(s) {
		for i := range s {
			y := s[i]&(1<<31) | s[(i+1)%len(s)]&(1<<31-1)
			s[i] = s[(i+397)%len(s)] ^ y>>1 ^ (y&1)*0x9908b0df
		}
		m.next = 0
	}
	y := s[m.next]
	m.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

// below returns a number from 0 to n-1 as random draws indices.
func (m *mersenne) below(n int) int {
	shift := 32
	for k := n; k > 0; k >>= 1 {
		shift--
	}
	for {
		if x := int(m.uint32() >> shift); x < n {
			return x
		}
	}
}

// two returns the indices of random.sample(list of n, 2). Of short lists it draws from a copy in which the last takes the place
// of the first that was drawn.
func (m *mersenne) two(n int) (a, b int) {
	const short = 21
	a = m.below(n)
	if n <= short {
		if b = m.below(n - 1); b == a {
			b = n - 1
		}
		return a, b
	}
	for b = m.below(n); b == a; {
		b = m.below(n)
	}
	return a, b
}
