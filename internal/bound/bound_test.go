package bound_test

import (
	"math"
	"testing"

	"github.com/trainyard/trainyard/internal/bound"
)

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		x, low, high float64
		want         bool
	}{
		{1, 1, 2, true}, {2, 1, 2, true}, {1.5, 1, 2, true}, {.9, 1, 2, false}, {2.1, 1, 2, false}, {1, 2, 1, false},
		{math.NaN(), math.Inf(-1), math.Inf(1), false}, {math.Inf(1), 0, math.MaxFloat64, false},
	} {
		if got := bound.Within(c.x, c.low, c.high); got != c.want {
			t.Errorf("Within(%v, %v, %v) = %v, want %v", c.x, c.low, c.high, got, c.want)
		}
	}
}
