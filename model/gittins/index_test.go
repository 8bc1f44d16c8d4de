package gittins

import (
	"math"
	"math/rand"
	"testing"

	"github.com/trainyard/trainyard/model/dist"
	"github.com/trainyard/trainyard/model/gittins/gittinstest"
)

func sample(t testing.TB, sizes ...float64) *dist.Empirical {
	t.Helper()
	e, err := dist.NewEmpirical(sizes)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// near reports whether x equals y up to a relative error of tol.
func near(x, y, tol float64) bool {
	return x == y || math.Abs(x-y) <= tol*max(math.Abs(x), math.Abs(y))
}

// Ensure that the definition gives what can be worked out by hand. The first rows are the worked example of Tiresias's
// slides (services 4, 8 and 12) with quantum 4: the index rises, so jobs run to completion in the textbook order.
func TestIndex(t *testing.T) {
	inf := math.Inf(1)
	slides := []float64{4, 8, 12}
	tests := []struct {
		name           string
		sizes          []float64
		a, delta, want float64
	}{
		{"slides", slides, 0, 4, 1. / 12},
		{"slides", slides, 1, 4, 1. / 11},
		{"slides", slides, 2, 4, 1. / 10},
		{"slides", slides, 3, 4, 1. / 9},
		{"slides", slides, 4, 4, 1. / 8},
		{"slides", slides, 5, 4, 1. / 7},
		{"slides", slides, 8, 4, 1. / 4},
		{"slides", slides, 9, 4, 1. / 3},
		{"slides", slides, 11, 4, 1},
		{"slides, at the largest", slides, 12, 4, 0},
		{"slides, beyond", slides, 13, inf, 0},
		{"slides, no limit", slides, 0, inf, 3. / 24},
		{"slides, no limit", slides, 4, inf, 2. / 12},
		{"quantum too short to finish", slides, 0, 3.9, 0},
		{"ties", []float64{5, 5, 9}, 0, 5, 2. / 15},
		{"ties, just attained", []float64{5, 5, 9}, 5, 4, 1. / 4},
		{"point mass", []float64{6, 6, 6}, 2, inf, 1. / 4},
		{"point mass, attained", []float64{6, 6, 6}, 6, inf, 0},
		{"one sample", []float64{10}, 0, inf, 1. / 10},
		{"one sample", []float64{10}, 9.5, 1, 2},
		{"sizes of 0 are over at once", []float64{0, 0, 4}, 0, 4, 1. / 4},
		{"nothing but 0", []float64{0, 0}, 0, inf, 0},
	}
	for _, tt := range tests {
		if got := gittinstest.Index(sample(t, tt.sizes...), tt.a, tt.delta); !near(got, tt.want, 1e-15) {
			t.Errorf("%s: Index(%v, %v, %v) = %v, want %v", tt.name, tt.sizes, tt.a, tt.delta, got, tt.want)
		}
	}
}

// Ensure that SupIndex is the largest index over the quanta that end at a sample, and that no other quantum beats it.
func TestSupIndexAgainstDefinition(t *testing.T) {
	rng := rand.New(rand.NewSource(4))
	for range 300 {
		e := randomSample(t, rng, 1+rng.Intn(40))
		for range 10 {
			a := rng.Float64() * e.Max() * 1.1
			want := 0.0
			for _, s := range e.Sizes() {
				if s > a {
					want = max(want, gittinstest.Index(e, a, s-a))
				}
			}
			got := SupIndex(e, a)
			if !near(got, want, 1e-12) {
				t.Fatalf("SupIndex(%v, %v) = %v, want %v", e.Sizes(), a, got, want)
			}
			if other := gittinstest.Index(e, a, e.Max()*rng.Float64()+1e-9); other > got*(1+1e-12) {
				t.Fatalf("%v at %v: a quantum gives %v, above the supremum %v", e.Sizes(), a, other, got)
			}
		}
	}
}

func TestSupIndexByHand(t *testing.T) {
	for _, tt := range []struct {
		sizes   []float64
		a, want float64
	}{
		{[]float64{4, 8, 12}, 0, 1. / 8},    // all: 3/24 beats 1/12 and 2/20
		{[]float64{4, 8, 12}, 4, 1. / 6},    // all: 2/12 beats 1/8
		{[]float64{1, 100, 100}, 0, 1. / 3}, // the short one alone
		{[]float64{1, 100, 100}, 1, 1. / 99},
		{[]float64{7}, 7, 0},
	} {
		if got := SupIndex(sample(t, tt.sizes...), tt.a); !near(got, tt.want, 1e-15) {
			t.Errorf("SupIndex(%v, %v) = %v, want %v", tt.sizes, tt.a, got, tt.want)
		}
	}
}

func TestPanics(t *testing.T) {
	e := sample(t, 1)
	for name, f := range map[string]func(){
		"negative service": func() { gittinstest.Index(e, -1, 1) },
		"NaN service":      func() { SupIndex(e, math.NaN()) },
		"no quantum":       func() { gittinstest.Index(e, 0, 0) },
		"NaN quantum":      func() { NewTable(e, math.NaN(), 0) },
		"one bucket":       func() { NewTable(e, 1, 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

// randomSample draws n sizes of one of several shapes: ties, a heavy tail, close neighbours far from 0, zeros.
func randomSample(t testing.TB, rng *rand.Rand, n int) *dist.Empirical {
	sizes := make([]float64, n)
	shape := rng.Intn(4)
	for i := range sizes {
		switch shape {
		case 0:
			sizes[i] = float64(rng.Intn(12))
		case 1:
			sizes[i] = 100 * math.Exp(3*rng.NormFloat64())
		case 2:
			sizes[i] = 1e9 + rng.Float64()*1e-3
		case 3:
			sizes[i] = rng.ExpFloat64() * 3600
		}
	}
	return sample(t, sizes...)
}

// SupIndex returns the supremum of the index (e, a, delta) over all delta > 0, in O(n): that when the quantum is free.
// It is 0 where no sample is larger than a. a must be >= 0, otherwise it panics.
//
// Between two samples the number of jobs done stays and the service spent on them grows with the quantum, so the
// supremum is reached at a quantum that ends exactly at a sample.
//
// Source: Gittins, "Bandit processes and dynamic allocation indices", 1979.
func SupIndex(e *dist.Empirical, a float64) float64 {
	if !(a >= 0) {
		panic("want a >= 0")
	}
	above := e.Sizes()[e.AtMost(a):]
	best, finished := 0.0, 0.0
	for i, s := range above {
		finished += s - a
		spent := finished + float64(float64(len(above)-i-1)*(s-a))
		best = max(best, float64(i+1)/spent)
	}
	return best
}
