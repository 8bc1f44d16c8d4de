package simulate

import "math"

// confidence is the share of intervals that hold what they estimate.
const confidence = 0.95

// Students returns the mean of values and its 95 % interval by Student's t: of the few means of independent
// simulations, each of which is nearly normal, a bootstrap would be too narrow. One value has no interval: Low and High
// are NaN. len(values) > 0.
func Students(values []float64) Interval {
	n := float64(len(values))
	e := Interval{Mean: mean(values), Low: math.NaN(), High: math.NaN()}
	if n == 1 {
		return e
	}
	half := studentQuantile((1+confidence)/2, len(values)-1) * deviation(values, e.Mean) / math.Sqrt(n)
	e.Low, e.High = e.Mean-half, e.Mean+half
	return e
}

// deviation returns the standard deviation of what values are a sample of.
func deviation(values []float64, mean float64) float64 {
	sum := 0.0
	for _, x := range values {
		sum += (x - mean) * (x - mean)
	}
	return math.Sqrt(sum / float64(len(values)-1))
}

// studentQuantile returns the number below which a share p, 0.5 to 1, of Student's t with so many degrees of freedom
// is, at most 1e6.
func studentQuantile(p float64, freedom int) float64 {
	low, high := 0.0, 1e6
	for range 100 {
		if mid := (low + high) / 2; 1-studentAbove(mid, freedom) < p {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// studentAbove returns the probability that Student's t with so many degrees of freedom, > 0, is above t.
//
// Source: Abramowitz and Stegun, 26.7.3 and 26.7.4.
func studentAbove(t float64, freedom int) float64 {
	angle := math.Atan(math.Abs(t) / math.Sqrt(float64(freedom)))
	sin, cos := math.Sincos(angle)
	from := freedom % 2 // 0: 1 + 1/2 cos^2 + ..., 1: cos + 2/3 cos^3 + ...
	term, sum := 1.0, 0.0
	if from == 1 {
		term = cos
	}
	for k := from; k <= freedom-2; k += 2 {
		sum += term
		term *= cos * cos * float64(k+1) / float64(k+2)
	}
	inside := sin * sum
	if from == 1 {
		inside = 2 / math.Pi * (angle + inside)
	}
	if t < 0 {
		return (1 + inside) / 2
	}
	return (1 - inside) / 2
}

// StudentRatio returns the exponential of a mean of logarithms with its 95 % interval; variance is that of the mean,
// NaN where there is no interval.
func StudentRatio(mean, variance float64, freedom int) Interval {
	e := Interval{Mean: math.Exp(mean), Low: math.NaN(), High: math.NaN()}
	if freedom > 0 && !math.IsNaN(variance) {
		half := studentQuantile((1+confidence)/2, freedom) * math.Sqrt(variance)
		e.Low, e.High = math.Exp(mean-half), math.Exp(mean+half)
	}
	return e
}

// StudentBeyond returns the probability that Student's t with so many degrees of freedom, > 0, is beyond -t or t.
func StudentBeyond(t float64, freedom int) float64 { return 2 * studentAbove(math.Abs(t), freedom) }
