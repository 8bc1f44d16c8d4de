package gittins

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/trainyard/trainyard/model/dist"
)

// DefaultBuckets is the number of edges NewTable uses when asked for 0: 0 and the largest sample, 31 quantiles and 31
// points evenly spaced in the logarithm.
const DefaultBuckets = 64

// Table holds the Gittins index of one sample and one quantum, exact at its edges and constant from each edge up to the
// next. What it says never changes; the indices are worked out as they are asked for, as few ever are.
//
// Edges are, without repeats:
//   - 0 and the largest sample, from which on the index is 0;
//   - quantiles of the sample at even steps, which resolve the sizes that most jobs have;
//   - points evenly spaced in the logarithm, from an eighth of the smallest positive sample to the largest, which
//     resolve the few long jobs of a heavy tail, and the rise of the index before the first sample.
type Table struct {
	edges []float64 // ascending, edges[0] == 0
	index []float64 // index[i] is the index at edges[i]; the last is 0; below 0: not asked for yet
	sizes []float64 // ascending
	sums  []wide    // sums[n] is that of the first n sizes
	delta float64
}

// NewTables is NewTable for several quanta at little more than the price of one.
func NewTables(e *dist.Empirical, deltas []float64, buckets int) []*Table {
	if buckets == 0 {
		buckets = DefaultBuckets
	}
	if buckets < 2 {
		panic(fmt.Sprintf("gittins: %d buckets, want at least 2", buckets))
	}
	edges, sums := edgesOf(e, buckets), sumsOf(e.Sizes())
	tables := make([]*Table, 0, len(deltas))
	for _, delta := range deltas {
		checkDelta(delta)
		index := make([]float64, len(edges))
		for i := range index {
			index[i] = -1
		}
		tables = append(tables, &Table{edges, index, e.Sizes(), sums, delta})
	}
	return tables
}

// sumsOf returns the sums of sizes[:i], for i up to len(sizes).
func sumsOf(sizes []float64) []wide {
	sums := make([]wide, len(sizes)+1)
	for i, s := range sizes {
		sums[i+1] = sums[i].add(s)
	}
	return sums
}

// At returns the index at the lower edge of the bucket that holds a: at the largest edge <= a. An a below 0 counts
// as 0. It is 0 for a >= the largest sample.
func (t *Table) At(a float64) float64 {
	i := max(t.above(a)-1, 0)
	if t.index[i] < 0 {
		t.index[i] = t.indexOf(t.edges[i])
	}
	return t.index[i]
}

// NextEdge returns the smallest edge > a, where At changes next, or +Inf when there is none, that is for a >= the
// largest sample. A job attains it at a later instant than a: whoever turns the distance into a time rounds up, or the
// job is looked at again just before the edge.
func (t *Table) NextEdge(a float64) float64 {
	if i := t.above(a); i < len(t.edges) {
		return t.edges[i]
	}
	return math.Inf(1)
}

// above returns the number of edges <= a.
func (t *Table) above(a float64) int {
	return sort.Search(len(t.edges), func(i int) bool { return t.edges[i] > a })
}

// edgesOf chooses at most n edges, n >= 2. It uses square roots and no logarithm, so that every machine gets the same.
func edgesOf(e *dist.Empirical, n int) []float64 {
	depth := 0 // the geometric half has 2^depth - 1 points
	for (2<<depth)-1 <= (n-2)/2 {
		depth++
	}
	quantiles := n - 2 - (1<<depth - 1)
	edges := []float64{0, e.Max()}
	for i := range quantiles {
		edges = append(edges, e.Quantile(float64(i+1)/float64(quantiles+1)))
	}
	if positive := e.Sizes()[e.AtMost(0):]; len(positive) > 0 {
		edges = appendGeometric(edges, positive[0]/8, e.Max(), depth)
	}
	slices.Sort(edges)
	return slices.Compact(edges)
}

// appendGeometric appends the 2^depth - 1 points that cut lo..hi into 2^depth parts of equal ratio.
func appendGeometric(dst []float64, lo, hi float64, depth int) []float64 {
	if depth == 0 {
		return dst
	}
	mid := min(max(math.Sqrt(lo)*math.Sqrt(hi), lo), hi)
	dst = appendGeometric(dst, lo, mid, depth-1)
	return appendGeometric(append(dst, mid), mid, hi, depth-1)
}

// indexOf evaluates the index at edge a: of the ascending sizes, those before i are <= a and those before k are
// finished within the quantum.
func (t *Table) indexOf(a float64) float64 {
	i := sort.Search(len(t.sizes), func(n int) bool { return t.sizes[n] > a })
	k := i + sort.Search(len(t.sizes)-i, func(n int) bool { return t.sizes[i+n]-a > t.delta })
	if k == i {
		return 0 // nothing finishes
	}
	spent := t.sums[k].add(-t.sums[i].hi).add(-t.sums[i].lo).addProduct(-a, float64(k-i))
	if k < len(t.sizes) {
		spent = spent.addProduct(t.delta, float64(len(t.sizes)-k))
	}
	return float64(k-i) / spent.hi
}

func checkDelta(delta float64) {
	if !(delta > 0) {
		panic(fmt.Sprintf("gittins: quantum %v, want > 0", delta))
	}
}
