package dist

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
)

// MaxSize is the largest size a sample may hold, in its own unit. It keeps sums over a sample finite.
const MaxSize = 1e30

// MaxSamples is the largest number of samples that Read takes: 128 MiB of memory.
const MaxSamples = 1 << 24

// Empirical is the distribution that gives each size of a sample the same weight. It is immutable, and sizes that
// occur more than once count as often as they occur.
type Empirical struct {
	sizes []float64 // ascending, len >= 1, each finite and in 0..MaxSize
}

// NewEmpirical returns the distribution of sizes, which it copies. sizes needs no order, at least one element, and
// elements in 0..MaxSize; the error names the first index that is wrong.
func NewEmpirical(sizes []float64) (*Empirical, error) {
	if len(sizes) == 0 {
		return nil, errors.New("dist: no sizes, want at least one")
	}
	for i, s := range sizes {
		if wanted := wrong(s); wanted != "" {
			return nil, fmt.Errorf("dist: size %d is %v, want %s", i, s, wanted)
		}
	}
	return sorted(slices.Clone(sizes)), nil
}

// wrong returns what s should be, or "" if it is a size.
func wrong(s float64) string {
	switch {
	case !(s >= 0) || math.IsInf(s, 1):
		return "a number >= 0"
	case s > MaxSize:
		return fmt.Sprintf("a number <= %g", MaxSize)
	}
	return ""
}

// sorted takes over sizes, which have been checked.
func sorted(sizes []float64) *Empirical {
	for i := range sizes {
		sizes[i] += 0 // a negative zero becomes zero
	}
	slices.Sort(sizes)
	return &Empirical{sizes}
}

// Count returns the number of samples, >= 1.
func (e *Empirical) Count() int { return len(e.sizes) }

// Sizes returns the samples in ascending order, len == Count(). The caller must not modify them.
func (e *Empirical) Sizes() []float64 { return e.sizes }

// Max returns the largest sample.
func (e *Empirical) Max() float64 { return e.sizes[len(e.sizes)-1] }

// Mean returns the average of the samples.
func (e *Empirical) Mean() float64 {
	sum := 0.0
	for _, s := range e.sizes {
		sum += s
	}
	return sum / float64(len(e.sizes))
}

// AtMost returns the number of samples <= x, which is also the index in Sizes of the first one > x.
// NaN compares like a value below all.
func (e *Empirical) AtMost(x float64) int {
	if math.IsNaN(x) {
		return 0
	}
	return sort.Search(len(e.sizes), func(i int) bool { return e.sizes[i] > x })
}

// Quantile returns the smallest sample v with CDF(v) >= q: the nearest rank, never a value between two samples.
// A q below 0 counts as 0 and one above 1 as 1, so that Quantile(0) is the smallest sample and Quantile(1) the largest.
// It panics if q is not a number.
func (e *Empirical) Quantile(q float64) float64 {
	if math.IsNaN(q) {
		panic("dist: quantile NaN, want 0..1")
	}
	n := float64(len(e.sizes))
	rank := int(math.Ceil(min(max(q, 0), 1) * n))
	// The product above is rounded: move to the rank for which CDF, rounded as it is there, first reaches q.
	for rank > 1 && float64(rank-1)/n >= q {
		rank--
	}
	for rank < len(e.sizes) && float64(rank)/n < q {
		rank++
	}
	return e.sizes[max(rank, 1)-1]
}
