package speedup

import "math"

// Power is the law k^p.
type Power struct{ Exponent float64 } // 0..1 for a concave curve

// At returns k^p.
func (p Power) At(gpus float64) float64 { return math.Pow(gpus, p.Exponent) }

// Proportional is the law of a job that is k times as fast on k GPUs.
type Proportional struct{}

// At returns gpus.
func (Proportional) At(gpus float64) float64 { return gpus }
