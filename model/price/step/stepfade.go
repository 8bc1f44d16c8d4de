package step

import "math"

// ln2 in two parts, the first with 21 zero bits at its end: its product with a small integer is exact.
const (
	ln2Hi = 6.93147180369123816490e-01
	ln2Lo = 1.90821492927058770002e-10
	// past is where exp(-x) is below half a unit in the last place of 1.
	past = 40
)

// Fade returns 1 - exp(-x) for x >= 0, with a relative error of at most 1e-15 or so. It is the same on every processor.
// Fade(+Inf) is 1.
func Fade(x float64) float64 {
	if x >= past {
		return 1
	}
	n := math.Floor(float64(x*math.Log2E) + 0.5)
	rest := (x - float64(n*ln2Hi)) - float64(n*ln2Lo)
	lost := lossOf(rest)
	if n == 0 {
		return lost
	}
	left := math.Float64frombits(uint64(1023-int64(n)) << 52) // 2^-n
	return (1 - left) + float64(left*lost)
}

// lossOf returns 1 - exp(-r) for |r| <= ln2/2 by its series.
func lossOf(r float64) float64 {
	sum := 0.0
	for i := terms; i > 1; i-- {
		sum = float64(r*(1-sum)) / float64(i)
	}
	return float64(r * (1 - sum))
}

// terms of the series: the next is below 1e-18 of the first.
const terms = 15

// Exp returns exp(x) for |x| <= 1, the same on every processor.
func Exp(x float64) float64 {
	if x >= 0 {
		return 1 / (1 - Fade(x))
	}
	return 1 - Fade(-x)
}
