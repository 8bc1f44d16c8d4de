package simulate

import (
	"math"
	"testing"
)

// Ensure that the interval covers the mean of the law the values come from about as often as it says, and that one
// value has none.
func TestBootstrap(t *testing.T) {
	if e := Bootstrap([]float64{3}); e.Mean != 3 || !math.IsNaN(e.Low) || e.String() != "3.000" {
		t.Errorf("one value: %+v", e)
	}
	if e := Bootstrap([]float64{2, 2, 2}); e != (Interval{2, 2, 2}) {
		t.Errorf("equal values: %+v", e)
	}
	// 1..100: the mean's standard error is 28.866/10, so 50.5 -+ 1.96*2.887 within a few hundredths of that.
	values := make([]float64, 100)
	for i := range values {
		values[i] = float64(i + 1)
	}
	e := Bootstrap(values)
	if e.Mean != 50.5 || math.Abs(e.Low-44.84) > 0.2 || math.Abs(e.High-56.16) > 0.2 {
		t.Errorf("1..100: %+v, want 50.5 in 44.84..56.16", e)
	}
}
