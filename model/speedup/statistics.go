package speedup

// Gain returns what an update is worth whose batch is scale times as large as the one that sqr and variance, the
// squared norm of the gradient and the variance of a gradient, belong to: in updates of that one. It rises with scale
// from 1, and stays below 1 + variance/sqr. Both must be >= 0, one of them > 0, and scale > 0.
//
// Source: AdaScale (arXiv 2007.05105); specification of BOA, 3.5.
func Gain(sqr, variance, scale float64) float64 {
	return (variance + sqr) / (variance/scale + sqr)
}
