package trace

import (
	"fmt"
	"math/rand/v2"
)

// Fixed is the law of a constant duration in seconds.
type Fixed float64

var _ Law = Fixed(0)

// Mean returns f.
func (f Fixed) Mean() float64 { return float64(f) }

// Above returns all or nothing.
func (f Fixed) Above(x float64) (share, seconds float64) {
	if float64(f) > x {
		return 1, float64(f)
	}
	return 0, 0
}

// Draw returns f.
func (f Fixed) Draw(*rand.Rand) float64 { return float64(f) }

// Validate wants a duration from 0 to 100 years.
func (f Fixed) Validate() error {
	if !(f >= 0 && float64(f) <= MaxTime.Seconds()) {
		return fmt.Errorf("fixed duration %v s, want 0 to %v", float64(f), MaxTime.Seconds())
	}
	return nil
}
