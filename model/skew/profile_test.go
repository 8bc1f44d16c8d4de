package skew

import (
	"fmt"
	"math"
	"testing"
)

func TestSkew(t *testing.T) {
	for _, tt := range []struct {
		tensors []float64
		want    float64
	}{
		{nil, 0}, {[]float64{0, 0}, 0}, {[]float64{5}, 1}, {[]float64{1, 2, 1}, 0.5}, {[]float64{3, 3, 3, 3}, 0.25},
	} {
		if got := (Profile{tt.tensors}).Skew(); got != tt.want {
			t.Errorf("skew of %v is %v, want %v", tt.tensors, got, tt.want)
		}
	}
}

func TestPSImbalanceByHand(t *testing.T) {
	for _, tt := range []struct {
		tensors []float64
		k       int
		want    float64
	}{
		{[]float64{1, 2, 3}, 1, 1},
		{[]float64{1, 2, 3}, 2, 4. / 3},
		{[]float64{6, 1, 1}, 3, 6. / (8. / 3)},
		{[]float64{6, 1, 1}, 6, 4.5}, // three servers have nothing
		{[]float64{2, 2, 2, 2}, 4, 1},
		{nil, 3, 1},
		{[]float64{0}, 2, 1},
	} {
		if got := PSImbalance(tt.tensors, tt.k); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("PSImbalance(%v, %d) = %v, want %v", tt.tensors, tt.k, got, tt.want)
		}
	}
}

func TestPSImbalancePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic for 0 servers")
		}
	}()
	PSImbalance([]float64{1}, 0)
}

// Ensure that the share of the largest tensor bounds the imbalance, and is reached once each tensor has its own server.
func TestPSImbalanceAgainstSkew(t *testing.T) {
	for name, p := range architectures() {
		for k := 1; k <= 200; k++ {
			got, bound := PSImbalance(p.Tensors, k), p.Skew()*float64(k)
			if got < 1-1e-12 || got > float64(k)+1e-12 || got < bound-1e-9 {
				t.Errorf("%s: imbalance %v on %d servers, want in 1..%d and at least %v", name, got, k, k, bound)
			}
			if k >= len(p.Tensors) && math.Abs(got-bound) > 1e-9 {
				t.Errorf("%s: imbalance %v on %d servers, want %v", name, got, k, bound)
			}
		}
	}
}

// PSImbalance returns the load of the busiest of k parameter servers over their mean load when tensors (sizes in any
// unit, >= 0) are dealt to them round-robin in the order given: 1 is even, k is all on one. Servers that get no tensor
// count. It is 1 if there is nothing to deal, and panics unless k > 0.
//
// Source: Gu et al., NSDI'19, released simulator, which deals tensors so to as many servers as the job has GPUs.
func PSImbalance(tensors []float64, k int) float64 {
	if k < 1 {
		panic(fmt.Sprintf("skew: %d parameter servers, want > 0", k))
	}
	load := make([]float64, min(k, max(len(tensors), 1)))
	busiest, total := 0.0, 0.0
	for i, t := range tensors {
		load[i%k] += t
		busiest, total = max(busiest, load[i%k]), total+t
	}
	if !(total > 0) {
		return 1
	}
	return busiest / (total / float64(k))
}
