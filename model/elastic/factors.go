package elastic

import "math"

// Factors appends to dst the scaling factors of a job by width from 0: its speed on k GPUs over that on one. speed[k]
// is its throughput, or goodput, on k GPUs at the best batch size there, 0 = not possible; speed[0] is not looked at.
// Being relative to the job itself makes jobs of different models comparable.
//
// Where one GPU cannot hold the job, a GPU's share of the speed at the smallest possible width stands for it. If no
// width is possible, all factors are 0. Speeds that are no positive finite number are not possible, and factors beyond
// MaxFactor, which only a speed of nearly nothing at the smallest width can have, count as MaxFactor: whatever was
// measured, a row can be divided.
//
// Source: our reading of "scaling efficiency" in the paper's abstract; specification, section 2.1.
func Factors(dst, speed []float64) []float64 {
	one := 0.0
	for k, x := range speed {
		if k > 0 && possible(x) {
			one = x / float64(k)
			break
		}
	}
	for k, x := range speed {
		if k == 0 || !possible(x) {
			dst = append(dst, 0)
			continue
		}
		dst = append(dst, min(x/one, MaxFactor))
	}
	return dst
}

func possible(speed float64) bool { return speed > 0 && speed <= math.MaxFloat64 }

// DefaultFairness is a weight for Fair that shares out what the sum leaves open and little else: with it the sum of a
// thousand jobs is at most one or two GPUs' worth from the best for each factor of e between their shares.
const DefaultFairness = 1.0 / (1 << 10)

// Fair appends to dst the factors s plus weight ln(1 + s), by width; impossible widths stay so. weight > 0.
//
// The plain sum of scaling factors is indifferent to who gets the GPUs: of two jobs that scale perfectly the later gets
// its minimum, as any split has the same sum. The logarithm's gain falls as a share grows, so that among splits of
// about the same sum the even one wins, and the answer costs the sum at most weight × Σ (ln(1+best share) - ln(1+its
// share)). Concave rows stay concave. A large weight comes near to proportional fairness, the largest product of (1 +
// S).
//
// An option of ours; the paper knows only the sum.
func Fair(dst, s []float64, weight float64) []float64 {
	for k, x := range s {
		if k == 0 || x <= 0 {
			dst = append(dst, 0)
			continue
		}
		dst = append(dst, x+float64(weight*math.Log1p(x)))
	}
	return dst
}
