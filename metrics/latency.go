package metrics

import (
	"math"
	"math/bits"
)

// Latency is a histogram of durations in nanoseconds, exact to 1/16 of the value. The zero value is ready to use.
type Latency struct {
	count [64 * 16]uint64
	total uint64
}

// Add counts one duration; a negative one counts as 0.
func (l *Latency) Add(ns int64) {
	l.count[slot(uint64(max(ns, 0)))]++
	l.total++
}

// slot is the value itself below 16, then four bits behind the leading one.
func slot(x uint64) int {
	if x < 16 {
		return int(x)
	}
	e := bits.Len64(x) - 5
	return e*16 + int(x>>e)
}

// Quantile returns the lower edge of the bucket that holds the q-quantile by nearest rank, in microseconds; 0 if
// nothing was added. q is in 0..1.
func (l *Latency) Quantile(q float64) float64 {
	want := max(uint64(math.Ceil(q*float64(l.total))), 1) - 1 // durations below it
	for i, n := range l.count {
		if n > want {
			return float64(edge(i)) / 1e3
		}
		want -= n
	}
	return 0
}

func edge(i int) uint64 {
	if i < 32 {
		return uint64(i)
	}
	e := i/16 - 1
	return uint64(i%16+16) << e
}
