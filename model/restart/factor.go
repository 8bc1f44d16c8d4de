package restart

import (
	"math"

	"github.com/trainyard/trainyard/model/scaling"
	"github.com/trainyard/trainyard/model/speedup"
)

// Factor returns the factor on the learning rate at a batch size, where it was chosen for start; both > 0. sqr and
// variance are those of the gradient at start; both 0 = not known. A job that reports them (grad_sqr, grad_var) at
// another batch size has the same sqr, and at start a variance larger by that size over start.
func Factor(s scaling.Scaling, batch, start int, sqr, variance float64) float64 {
	switch known := sqr+variance > 0 && !math.IsInf(sqr+variance, 1); {
	case s == scaling.Linear:
		return speedup.LinearLR(batch, start)
	case s == scaling.AdaScale && known:
		return speedup.AdaScaleLR(batch, start, sqr, variance)
	case s == scaling.SquareRoot || s == scaling.AdaScale:
		return speedup.SquareRootLR(batch, start)
	}
	return 1
}
