package published

import (
	"math/big"
	"slices"
)

// rankTable is the Gittins index of the released simulator, tabulated just below each sample.
type rankTable struct {
	samples []int64 // GPU-seconds, ascending
	index   []float64
}

func newRankTable(samples []int64, delta int64) *rankTable {
	t := &rankTable{samples: slices.Sorted(slices.Values(samples))}
	sums := make([]int64, len(samples)+1) // sums[i]: of the first i samples
	for i, s := range t.samples {
		sums[i+1] = sums[i] + s
	}
	for _, s := range t.samples {
		t.index = append(t.index, indexAt(t.samples, sums, s-1, delta))
	}
	return t
}

// at returns the rank of a job with the given attained service in GPU-seconds, and the service up to which it is valid:
// the index just below the smallest larger sample and that sample, 0 from the largest sample on.
func (t *rankTable) at(service int64) (index float64, until int64) {
	if i := countUpTo(t.samples, service); i < len(t.index) {
		return t.index[i], t.samples[i]
	}
	return 0, never
}

// indexAt is the released formula. p: chance to finish within delta. e: expected service in that time, in which the
// total size of a job stands where the remaining size belongs, divided in integers. The last sample never counts as
// finishing. sums as in newRankTable; all samples and delta > 0, which keeps e > 0.
func indexAt(samples, sums []int64, service, delta int64) float64 {
	n := len(samples)
	i := countUpTo(samples, service)
	k := n - 1
	if service+delta <= samples[n-1]-1 {
		k = countUpTo(samples, service+delta)
	}
	p := roundHalfAway(float64(k-i)/float64(n-i), 5)
	e := (sums[k] - sums[i] + delta*int64(n-k)) / int64(n-i)
	return roundHalfAway(p*1e6/float64(e), 4)
}

// countUpTo returns how many of the ascending samples are at most limit.
func countUpTo(samples []int64, limit int64) int {
	i, _ := slices.BinarySearch(samples, limit+1)
	return i
}

// roundHalfAway is Python 2's round for x >= 0: to the given number of decimals, with the exact binary value of x
// deciding and an exact half going up. Python 3 rounds an exact half to even, which gives other schedules.
func roundHalfAway(x float64, decimals int64) float64 {
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(decimals), nil)
	scaled := new(big.Rat).Mul(new(big.Rat).SetFloat64(x), new(big.Rat).SetInt(scale))
	scaled.Add(scaled, big.NewRat(1, 2))
	whole := new(big.Int).Quo(scaled.Num(), scaled.Denom())
	rounded, _ := new(big.Rat).SetFrac(whole, scale).Float64()
	return rounded
}
