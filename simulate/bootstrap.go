package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// resamples is how often a bootstrap draws: enough for the second digit of a 95 % interval.
const resamples = 10_000

// Interval is a mean over paired seeds with its 95 % interval; Low and High are NaN where there is none.
type Interval struct{ Mean, Low, High float64 }

// String prints the mean and, where there is one, the interval.
func (e Interval) String() string {
	if math.IsNaN(e.Low) {
		return fmt.Sprintf("%.3f", e.Mean)
	}
	return fmt.Sprintf("%.3f [%.3f, %.3f]", e.Mean, e.Low, e.High)
}

// MarshalJSON writes mean, low and high; mean alone where there is no interval.
func (e Interval) MarshalJSON() ([]byte, error) {
	if math.IsNaN(e.Low) {
		return fmt.Appendf(nil, `{"mean":%v}`, e.Mean), nil
	}
	return fmt.Appendf(nil, `{"mean":%v,"low":%v,"high":%v}`, e.Mean, e.Low, e.High), nil
}

// RatioOf estimates the mean of got[i]/base[i] over seeds i. Both ran on the same trace of the seed, so what the trace
// does to both cancels. len(got) == len(base) > 0, all base[i] > 0.
func RatioOf(got, base []float64) Interval {
	ratios := make([]float64, len(got))
	for i := range got {
		ratios[i] = got[i] / base[i]
	}
	return Bootstrap(ratios)
}

// Bootstrap returns the mean of values and its 95 % percentile interval: the 2.5 % and 97.5 % quantiles, by nearest
// rank, of the means of samples of the same size drawn with repeats. It is deterministic. One value has no interval:
// Low and High are NaN. len(values) > 0.
//
// Source: Efron, "Bootstrap methods: another look at the jackknife", 1979.
func Bootstrap(values []float64) Interval {
	e := Interval{Mean: mean(values), Low: math.NaN(), High: math.NaN()}
	if len(values) == 1 {
		return e
	}
	r := rand.New(rand.NewPCG(1, uint64(len(values))))
	means := make([]float64, resamples)
	for i := range means {
		sum := 0.0
		for range values {
			sum += values[r.IntN(len(values))]
		}
		means[i] = sum / float64(len(values))
	}
	slices.Sort(means)
	e.Low, e.High = means[resamples*25/1000-1], means[resamples*975/1000-1]
	return e
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, x := range values {
		sum += x
	}
	return sum / float64(len(values))
}

// Scaled returns e in another unit.
func (e Interval) Scaled(by float64) Interval { return Interval{e.Mean * by, e.Low * by, e.High * by} }
