package skew

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// What a Limit calls slow, and how much it remembers. The numbers are ours.
const (
	SlowAbove  = 1.1  // slow-down of a spread gang above which it should have been consolidated
	MinPerSide = 8    // observations that must be slow, and that must not be, before a limit is fitted
	LimitCount = 1024 // newest observations that count
)

// Limit re-fits the limit of consolidation to what gangs spread over more nodes than needed turned out to suffer. The
// zero value is ready to use. Its state is a function of what was observed alone, the same after Save and Load.
//
// Source: Gu et al., NSDI'19, section 3: PACKLIMIT is fitted periodically by a linear classifier. On one feature, that
// is a threshold. What it is trained on in detail was not published.
type Limit struct {
	seen int64
	ring []outcome // observation number i is ring[i % LimitCount], for the last len(ring) numbers below seen
}

// outcome is one observation.
type outcome struct {
	skew float64
	slow bool
}

// Observe adds one gang that ran spread: the skew of its model, in 0..1, and how many times as long an iteration took
// as it would have taken on as few nodes as possible, > 0. Anything else panics.
func (l *Limit) Observe(skew, slowdown float64) {
	if !(skew >= 0 && skew <= 1) || !(slowdown > 0) || math.IsInf(slowdown, 1) {
		panic(fmt.Sprintf("skew: observation of skew %v, slow-down %v, want skew in 0..1 and slow-down > 0", skew,
			slowdown))
	}
	o := outcome{skew + 0, slowdown > SlowAbove} // adding 0 makes a negative zero positive
	if l.seen < LimitCount {
		l.ring = append(l.ring, o)
	} else {
		l.ring[l.seen%LimitCount] = o
	}
	l.seen++
}

// Count returns how many of the observations that count were slow and how many were not.
func (l *Limit) Count() (slow, fine int) {
	for _, o := range l.ring {
		if o.slow {
			slow++
		}
	}
	return slow, len(l.ring) - slow
}

// Fit returns the limit that misjudges the fewest observations, when a gang is taken for slow if its skew is > the
// limit. It is PackLimit until there are MinPerSide observations of either kind. O(n log n).
//
// Limits inside a gap between neighbouring skews misjudge the same; the middle of the gap is taken. Below the smallest
// skew the gap starts at 0, above the largest it ends at 1. Of several gaps that misjudge the same number the widest is
// taken, then the lowest. The limit is never below 0, so that a model without skew is never consolidated.
func (l *Limit) Fit() float64 {
	slow, fine := l.Count()
	if slow < MinPerSide || fine < MinPerSide {
		return PackLimit
	}
	all := slices.Clone(l.ring)
	slices.SortFunc(all, func(a, b outcome) int { return cmp.Compare(a.skew, b.skew) })
	wrong := fine // with the limit below all
	best, low, high := math.MaxInt, 0.0, 0.0
	consider := func(from, to float64) {
		if wrong < best || (wrong == best && to-from > high-low) {
			best, low, high = wrong, from, to
		}
	}
	if all[0].skew > 0 {
		consider(0, all[0].skew)
	}
	for i, o := range all {
		if o.slow {
			wrong++
		} else {
			wrong--
		}
		switch {
		case i+1 == len(all):
			consider(o.skew, 1)
		case all[i+1].skew > o.skew:
			consider(o.skew, all[i+1].skew)
		}
	}
	return middle(low, high)
}

// middle returns a number x with low <= x < high in the middle of them, or low if they are equal.
func middle(low, high float64) float64 {
	if mid := low + (high-low)/2; mid < high {
		return mid
	}
	return low
}

// limitFormat is the first byte that Save writes.
const limitFormat = 1

// Save appends the state to b: the format, the count as uvarint, then for each observation that counts, oldest first,
// the skew as 8 bytes and 1 or 0 for slow or not.
func (l *Limit) Save(b []byte) []byte {
	b = append(b, limitFormat)
	b = binary.AppendUvarint(b, uint64(l.seen))
	for i := l.seen - int64(len(l.ring)); i < l.seen; i++ {
		o := l.ring[i%LimitCount]
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(o.skew))
		if o.slow {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	return b
}

// Load replaces the state by one that Save wrote. On error the state stays as it was.
func (l *Limit) Load(b []byte) error {
	const each = 9
	if len(b) == 0 || b[0] != limitFormat {
		return fmt.Errorf("skew: load: %d bytes that do not start with format %d", len(b), limitFormat)
	}
	seen, n := binary.Uvarint(b[1:])
	if n <= 0 || seen > math.MaxInt64 {
		return errors.New("skew: load: the count is cut short or too large")
	}
	b = b[1+n:]
	next := Limit{seen: int64(seen), ring: make([]outcome, min(seen, LimitCount))}
	if len(b) != each*len(next.ring) {
		return fmt.Errorf("skew: load: %d bytes of observations, want %d", len(b), each*len(next.ring))
	}
	for i := next.seen - int64(len(next.ring)); i < next.seen; i, b = i+1, b[each:] {
		skew := math.Float64frombits(binary.LittleEndian.Uint64(b))
		if !(skew >= 0 && skew <= 1) || math.Signbit(skew) || b[8] > 1 {
			return errors.New("skew: load: an observation that is out of range")
		}
		next.ring[i%LimitCount] = outcome{skew, b[8] == 1}
	}
	*l = next
	return nil
}
