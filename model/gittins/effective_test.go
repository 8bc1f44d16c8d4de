package gittins_test

import (
	"math"
	"math/rand"
	"testing"

	"github.com/trainyard/trainyard/model/dist"
	"github.com/trainyard/trainyard/model/gittins"
	"github.com/trainyard/trainyard/model/gittins/gittinstest"
)

// Ensure that the effective work of jobs comes out of sizes seen whole and in part as worked out by hand: example 7 of
// docs/papers/combined.md.
func TestEffectiveExamples(t *testing.T) {
	for _, c := range []struct {
		ended, running []float64
		a, want        float64
	}{
		{[]float64{1, 9}, nil, 0, 2},
		{[]float64{1, 9}, nil, 1, 8},
		{[]float64{2, 5}, []float64{3}, 0, 4},
		{[]float64{2, 5}, []float64{3}, 3, 2},
		{[]float64{2, 5}, nil, 0, 3.5},
		{[]float64{1, 1, 10}, []float64{4}, 0, 2},
		{[]float64{1, 1, 10}, nil, 0, 1.5},
		{[]float64{1, 1, 10}, nil, 10, 10},
		{nil, []float64{4}, 7, 7},
		{[]float64{0, 0}, nil, 0, 0},
	} {
		got := gittins.Effective(dist.KaplanMeier(c.ended, c.running), c.a)
		if math.Abs(got-c.want) > 1e-6 {
			t.Errorf("ended %v, running %v: e(%v) = %v, want %v", c.ended, c.running, c.a, got, c.want)
		}
	}
}

// Ensure that effective work is the inverse of the largest index over all quanta, and at most the mean.
func TestEffectiveIsTheBestIndex(t *testing.T) {
	rng := rand.New(rand.NewSource(7))
	for range 500 {
		sizes := make([]float64, 1+rng.Intn(40))
		for i := range sizes {
			sizes[i] = math.Exp(3 * rng.NormFloat64())
		}
		e, err := dist.NewEmpirical(sizes)
		if err != nil {
			t.Fatal(err)
		}
		law, a, best := dist.KaplanMeier(sizes, nil), rng.Float64()*e.Max(), 0.0
		for _, s := range sizes {
			if s > a {
				best = max(best, gittinstest.Index(e, a, s-a))
			}
		}
		got := gittins.Effective(law, a)
		if math.Abs(got*best-1) > 1e-9 {
			t.Fatalf("%v at %v: %v, want %v", sizes, a, got, 1/best)
		}
		if mean := law.Mean(a); got > mean*(1+1e-9) {
			t.Fatalf("%v at %v: %v is above the mean %v", sizes, a, got, mean)
		}
	}
}

// Ensure that a mixture mixes chances to last, not effective works, and that a tail only lengthens what is left.
func TestMixture(t *testing.T) {
	short, long := dist.KaplanMeier([]float64{1}, nil), dist.KaplanMeier([]float64{9}, nil)
	both := dist.Mixture([]dist.Weighted{{Of: short, Weight: 0.5}, {Of: long, Weight: 0.5}})
	if e0, e1 := gittins.Effective(both, 0), gittins.Effective(both, 1); e0 != 2 || e1 != 8 || both.Mean(0) != 5 {
		t.Errorf("e(0) = %v, e(1) = %v, mean %v, want 2, 8 and 5", e0, e1, both.Mean(0))
	}
	cut := dist.KaplanMeier([]float64{1, 2, 3}, []float64{5, 5, 5})
	if e := gittins.Effective(cut, 0); !(e > gittins.Effective(dist.KaplanMeier([]float64{1, 2, 3}, nil), 0)) {
		t.Errorf("e(0) = %v, no more than where nothing was cut off", e)
	}
	unknown := dist.Lomax(60)
	mixed := dist.Mixture([]dist.Weighted{{Of: unknown, Weight: 0.5}, {Of: short, Weight: 0.5}})
	if e := gittins.Effective(mixed, 0); !(e >= 1 && e < 2.1) {
		t.Errorf("e(0) = %v where half end at 1", e)
	}
	if e := gittins.Effective(mixed, 500); e != 500 {
		t.Errorf("e(500) = %v, want 500: none was seen to last so long", e)
	}
}
