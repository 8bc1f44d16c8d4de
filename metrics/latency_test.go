package metrics_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/metrics"
)

// Ensure that a quantile is at most 1/16 below the nearest rank of the sorted durations, and never above it.
func TestLatencyAgainstSorting(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 400 {
		var l metrics.Latency
		var all []int64
		for range 1 + n {
			ns := int64(math.Exp(r.Float64() * math.Log(math.MaxInt64/2))) // any magnitude
			if r.IntN(4) == 0 {
				ns = int64(r.IntN(40))
			}
			l.Add(ns)
			all = append(all, ns)
		}
		slices.Sort(all)
		for _, permille := range []int{0, 1, 250, 500, 950, 990, 999, 1000} {
			exact := float64(all[max((len(all)*permille+999)/1000, 1)-1])
			got := 1e3 * l.Quantile(float64(permille)/1000)
			if got > exact*(1+1e-12) || got < exact*15/16*(1-1e-12) {
				t.Fatalf("%d durations: quantile %d/1000 is %v ns, want %v or up to 1/16 less", len(all), permille, got,
					exact)
			}
		}
	}
}

// Ensure that the ends of the range are counted where they belong: small ones exactly, negative ones as 0.
func TestLatencyEnds(t *testing.T) {
	var none metrics.Latency
	if got := none.Quantile(0.5); got != 0 {
		t.Errorf("%v with nothing added, want 0", got)
	}
	for ns, want := range map[int64]float64{-5: 0, 0: 0, 1: 1, 15: 15, 16: 16, 31: 31, 33: 32,
		math.MaxInt64: 31 << 58} {
		var l metrics.Latency
		l.Add(ns)
		for _, q := range []float64{0, 0.5, 1} {
			if got := 1e3 * l.Quantile(q); math.Abs(got-want) > 1e-9*want {
				t.Errorf("%d ns: quantile %v is %v ns, want %v", ns, q, got, want)
			}
		}
	}
}
