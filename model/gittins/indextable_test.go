package gittins

import (
	"math"
	"math/rand"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/model/dist"
	"github.com/trainyard/trainyard/model/gittins/gittinstest"
)

// Ensure that the table equals the definition at every edge, keeps that value up to the next edge, names the next edge,
// and respects the number of edges asked for.
func TestTableAgainstDefinition(t *testing.T) {
	rng := rand.New(rand.NewSource(5))
	for range 400 {
		e := randomSample(t, rng, 1+rng.Intn(300))
		buckets := 2 + rng.Intn(80)
		delta := []float64{math.Inf(1), e.Max() * rng.Float64(), 3250, 1e-4, 1e300}[rng.Intn(5)]
		if !(delta > 0) {
			delta = 1
		}
		table := NewTable(e, delta, buckets)
		edges := table.Edges()
		if len(edges) > buckets || edges[0] != 0 || edges[len(edges)-1] != e.Max() {
			t.Fatalf("%d buckets of %v: edges %v", buckets, e.Sizes(), edges)
		}
		for i, a := range edges {
			want, next := gittinstest.Index(e, a, delta), math.Inf(1)
			if i+1 < len(edges) {
				next = edges[i+1]
			}
			for _, x := range []float64{a, math.Nextafter(next, 0), a + (next-a)*rng.Float64()} {
				if x < a || x >= next {
					continue
				}
				if got := table.At(x); !near(got, want, 1e-12) {
					t.Fatalf("At(%v) = %v, want %v as at edge %v (delta %v)", x, got, want, a, delta)
				}
				if got := table.NextEdge(x); got != next {
					t.Fatalf("NextEdge(%v) = %v, want %v", x, got, next)
				}
			}
		}
	}
}

// Ensure that the cancellation of prefix sums costs no digits: a few samples close together, far from 0, above many.
func TestTableKeepsDigits(t *testing.T) {
	var sizes []float64
	for i := range 3000 {
		sizes = append(sizes, 1e6+float64(i))
	}
	for i := range 20 {
		sizes = append(sizes, 1e12+float64(i)/1024)
	}
	e := sample(t, sizes...)
	for _, delta := range []float64{0.01, 1, 5000, 2e12} {
		table := NewTable(e, delta, 4000)
		for _, a := range table.Edges() {
			if got, want := table.At(a), gittinstest.Index(e, a, delta); !near(got, want, 1e-12) {
				t.Errorf("At(%v) = %v, want %v (delta %v)", a, got, want, delta)
			}
		}
	}
}

// Ensure that a job which has attained the largest size ranks last, for ever, and one just below it does not.
func TestTableAtTheTop(t *testing.T) {
	table := NewTable(sample(t, 4, 8, 12), 4, 0)
	if got := table.At(math.Nextafter(12, 0)); !(got > 0) {
		t.Errorf("just below the largest: %v, want > 0", got)
	}
	for _, a := range []float64{12, 13, math.Inf(1)} {
		if table.At(a) != 0 || !math.IsInf(table.NextEdge(a), 1) {
			t.Errorf("At(%v) = %v, next edge %v, want 0 and +Inf", a, table.At(a), table.NextEdge(a))
		}
	}
	if got, want := table.At(-1), table.At(0); got != want {
		t.Errorf("At(-1) = %v, want %v as at 0", got, want)
	}
}

// Ensure that one sample, a point mass and a sample of nothing but 0 make sensible tables.
func TestTableDegenerate(t *testing.T) {
	zero := NewTable(sample(t, 0, 0), math.Inf(1), 0)
	if !slices.Equal(zero.Edges(), []float64{0}) || zero.At(0) != 0 || !math.IsInf(zero.NextEdge(0), 1) {
		t.Errorf("only zeros: edges %v, index %v", zero.Edges(), zero.At(0))
	}
	for _, sizes := range [][]float64{{6}, {6, 6, 6}} {
		table := NewTable(sample(t, sizes...), math.Inf(1), 0)
		last := 0.0
		for a := 0.0; a < 6; a = table.NextEdge(a) {
			if got := table.At(a); !near(got, 1/(6-a), 1e-15) || got <= last {
				t.Errorf("%v: At(%v) = %v after %v, want %v", sizes, a, got, last, 1/(6-a))
			}
			last = table.At(a)
		}
		if last < 1 {
			t.Errorf("%v: the last edge before the end has index %v, want one that saw the rise", sizes, last)
		}
	}
}

// quantileSample returns n evenly weighted quantiles of a distribution given by its inverse.
func quantileSample(n int, inverse func(u float64) float64) []float64 {
	sizes := make([]float64, n)
	for i := range sizes {
		sizes[i] = inverse((float64(i) + 0.5) / float64(n))
	}
	return sizes
}

// Ensure that the index falls where the hazard rate falls (a Lomax tail), so that 2D-Gittins behaves like 2D-LAS. The
// last samples are left out: near the end of any finite sample the index rises. Quanta are wide enough to hold many
// samples, so that counting them in whole numbers does not show.
func TestIndexFallsWithTheHazard(t *testing.T) {
	e := sample(t, quantileSample(20000, func(u float64) float64 { return 1000 * (math.Pow(1-u, -1/0.8) - 1) })...)
	for _, delta := range []float64{1000, 3250, 20000} {
		table := NewTable(e, delta, 0)
		last := math.Inf(1)
		for a := 0.0; a < e.Quantile(0.9); a = table.NextEdge(a) {
			if got := table.At(a); got > last*(1+1e-2) {
				t.Errorf("delta %v: index rises to %v at %v, from %v", delta, got, a, last)
			} else {
				last = got
			}
		}
	}
}

// Ensure that the index of a memoryless size is its rate, whatever was attained.
func TestIndexConstantForExponential(t *testing.T) {
	const mean = 100.0
	e := sample(t, quantileSample(4000, func(u float64) float64 { return -mean * math.Log(1-u) })...)
	for _, delta := range []float64{50, 200, math.Inf(1)} {
		table := NewTable(e, delta, 0)
		for a := 0.0; a < e.Quantile(0.8); a = table.NextEdge(a) {
			if got := table.At(a); !near(got, 1/mean, 0.02) {
				t.Errorf("delta %v: index %v at %v, want about %v", delta, got, a, 1/mean)
			}
		}
	}
}

// Ensure that the index scales: sizes and quantum times c give the index over c. Powers of two are exact.
func TestTableScales(t *testing.T) {
	rng := rand.New(rand.NewSource(6))
	e := randomSample(t, rng, 100)
	scaled := slices.Clone(e.Sizes())
	for i := range scaled {
		scaled[i] *= 8
	}
	one, eight := NewTable(e, 50, 0), NewTable(sample(t, scaled...), 400, 0)
	for _, a := range one.Edges() {
		if got, want := eight.At(8*a), one.At(a)/8; !near(got, want, 1e-12) {
			t.Errorf("at %v: %v, want %v", 8*a, got, want)
		}
	}
}

func BenchmarkNewTable(b *testing.B) {
	e := randomSample(b, rand.New(rand.NewSource(7)), 2048)
	for b.Loop() {
		NewTable(e, 3250, 0)
	}
}

func BenchmarkAt(b *testing.B) {
	table := NewTable(randomSample(b, rand.New(rand.NewSource(7)), 2048), 3250, 0)
	for b.Loop() {
		table.At(1234)
	}
}

// NewTable builds the table of e for quantum delta > 0 (or +Inf) with at most buckets edges, in O(n + buckets). buckets
// must be at least 2, 0 means DefaultBuckets. It panics if either is wrong.
func NewTable(e *dist.Empirical, delta float64, buckets int) *Table {
	return NewTables(e, []float64{delta}, buckets)[0]
}

// Edges returns the edges in ascending order, the first of them 0. The caller must not modify them.
func (t *Table) Edges() []float64 { return t.edges }
