package speedup

import "math"

// Factors on the learning rate when training with a global batch size of batch where the learning rate was chosen for
// start; both > 0. They are what sched.Config.LRScale carries.
//
// Source: specification of elastic scaling, section 7.

// LinearLR keeps the learning rate per sample, as is usual for SGD with a warm-up.
func LinearLR(batch, start int) float64 { return float64(batch) / float64(start) }

// SquareRootLR keeps the noise of an update, as is usual for Adam.
func SquareRootLR(batch, start int) float64 { return math.Sqrt(float64(batch) / float64(start)) }

// AdaScaleLR is the Gain: an update is made as large as it is worth. The schedule of the learning rate is to advance by
// as much per update. sqr and variance are the squared norm of the gradient and the variance of a gradient at batch
// size start. It lies between 1 and LinearLR where batch >= start.
//
// Source: AdaScale (arXiv 2007.05105).
func AdaScaleLR(batch, start int, sqr, variance float64) float64 {
	return Gain(sqr, variance, float64(batch)/float64(start))
}
