package dist

import (
	"math"
	"math/rand"
	"slices"
	"testing"
)

// Ensure that the constructor names the index and the value it refuses.
func TestNewEmpiricalRefuses(t *testing.T) {
	tests := []struct {
		sizes []float64
		want  string
	}{
		{nil, "dist: no sizes, want at least one"},
		{[]float64{1, -2}, "dist: size 1 is -2, want a number >= 0"},
		{[]float64{math.NaN()}, "dist: size 0 is NaN, want a number >= 0"},
		{[]float64{0, 0, math.Inf(1)}, "dist: size 2 is +Inf, want a number >= 0"},
		{[]float64{1, 2e30}, "dist: size 1 is 2e+30, want a number <= 1e+30"},
	}
	for _, tt := range tests {
		if _, err := NewEmpirical(tt.sizes); err == nil || err.Error() != tt.want {
			t.Errorf("NewEmpirical(%v): %v, want %s", tt.sizes, err, tt.want)
		}
	}
}

func TestEmpirical(t *testing.T) {
	in := []float64{8, 4, 12, 4}
	e, err := NewEmpirical(in)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(in, []float64{8, 4, 12, 4}) {
		t.Errorf("the argument was reordered: %v", in)
	}
	if e.Count() != 4 || e.Max() != 12 || e.Mean() != 7 {
		t.Errorf("count %d, max %v, mean %v, want 4, 12, 7", e.Count(), e.Max(), e.Mean())
	}
	for _, tt := range []struct{ x, want float64 }{
		{-1, 0}, {0, 0}, {3.9, 0}, {4, 0.5}, {7, 0.5}, {8, 0.75}, {12, 1}, {math.Inf(1), 1}, {math.NaN(), 0},
	} {
		if got := e.CDF(tt.x); got != tt.want {
			t.Errorf("CDF(%v) = %v, want %v", tt.x, got, tt.want)
		}
	}
	for _, tt := range []struct{ q, want float64 }{
		{-1, 4}, {0, 4}, {0.5, 4}, {0.51, 8}, {0.75, 8}, {0.76, 12}, {1, 12}, {2, 12},
	} {
		if got := e.Quantile(tt.q); got != tt.want {
			t.Errorf("Quantile(%v) = %v, want %v", tt.q, got, tt.want)
		}
	}
}

// Ensure that Quantile is the inverse of CDF that its comment promises, whatever rounding does to q*n.
func TestQuantileInvertsCDF(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for n := 1; n <= 200; n++ {
		sizes := make([]float64, n)
		for i := range sizes {
			sizes[i] = float64(rng.Intn(n)) // with ties
		}
		e, err := NewEmpirical(sizes)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i <= n; i++ {
			for _, q := range []float64{float64(i) / float64(n), rng.Float64()} {
				v := e.Quantile(q)
				below := e.CDF(math.Nextafter(v, -1))
				if e.CDF(v) < q || (q > 0 && below >= q) {
					t.Fatalf("n %d: Quantile(%v) = %v, CDF there %v, just below %v", n, q, v, e.CDF(v), below)
				}
			}
		}
	}
}

func TestQuantilePanicsOnNaN(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	(&Empirical{[]float64{1}}).Quantile(math.NaN())
}

func TestNegativeZero(t *testing.T) {
	e, err := NewEmpirical([]float64{math.Copysign(0, -1)})
	if err != nil || math.Signbit(e.Max()) {
		t.Errorf("max %v, error %v, want +0", e.Max(), err)
	}
}

// CDF returns the share of samples <= x, in 0..1.
func (e *Empirical) CDF(x float64) float64 { return float64(e.AtMost(x)) / float64(len(e.sizes)) }
