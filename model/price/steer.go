package price

import (
	"math"

	steps "github.com/trainyard/trainyard/model/price/step"
)

// most a price changes by in one step: a doubling. A wrong reading must not send it where it takes days to come back
// from.
const maxNudge = math.Ln2

// Steer returns the price after a period in which spent was spent and target should have been: price x exp(gain x
// (spent - target) / target), at most doubled or halved. The gain belongs to the length of the period. Where the target
// is 0 or less the price doubles.
//
// It needs to know neither rates nor sizes, which only the price depends on, never what a job takes at a price.
//
// Source: specs of BOA, section 3.3.
func Steer(price, gain, spent, target float64) float64 {
	if !(target > 0) {
		return price * 2
	}
	return price * steps.Exp(max(-maxNudge, min(gain*(spent-target)/target, maxNudge)))
}
