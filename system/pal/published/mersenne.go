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
	m := &mersenne{next: 624}
	s := &m.state
	s[0] = 19650218
	for i := uint32(1); i < 624; i++ {
		s[i] = 1812433253*(s[i-1]^s[i-1]>>30) + i
	}
	i := 1
	step := func(factor, plus uint32) {
		s[i] = (s[i] ^ (s[i-1]^s[i-1]>>30)*factor) + plus
		if i++; i == 624 {
			s[0], i = s[623], 1
		}
	}
	for range 624 {
		step(1664525, seed)
	}
	for range 623 {
		step(1566083941, -uint32(i))
	}
	s[0] = 1 << 31
	return m
}

func (m *mersenne) refill() {
	s := &m.state
	for i := range s {
		y := s[i]&(1<<31) | s[(i+1)%624]&(1<<31-1)
		s[i] = s[(i+397)%624] ^ y>>1 ^ (y&1)*0x9908b0df
	}
	m.next = 0
}

func (m *mersenne) uint32() uint32 {
	if m.next == 624 {
		m.refill()
	}
	y := m.state[m.next]
	m.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

// float64 is random.random(): 53 bits in [0, 1).
func (m *mersenne) float64() float64 {
	a, b := m.uint32()>>5, m.uint32()>>6
	return (float64(a)*(1<<26) + float64(b)) / (1 << 53)
}

// below is random._randbelow(n), and the index that random.choice takes from a list of n; 0 < n < 1<<31.
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

// sample is random.sample(pool, n), n <= len(pool): it calls take with each element. It may reorder pool.
func (m *mersenne) sample(pool []int, n int, take func(int)) {
	if len(pool) > sampleByPool(n) {
		m.sampleBySet(pool, n, take)
		return
	}
	for left := len(pool); left > len(pool)-n; left-- {
		k := m.below(left)
		take(pool[k])
		pool[k] = pool[left-1]
	}
}

// sampleByPool is the length up to which Python draws n elements from a copy of the list.
func sampleByPool(n int) int {
	if n <= 5 {
		return 21
	}
	power := 1
	for power < 3*n {
		power *= 4
	}
	return 21 + power
}

func (m *mersenne) sampleBySet(pool []int, n int, take func(int)) {
	taken := make([]bool, len(pool))
	for range n {
		k := m.below(len(pool))
		for taken[k] {
			k = m.below(len(pool))
		}
		taken[k] = true
		take(pool[k])
	}
}
