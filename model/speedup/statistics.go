package speedup

// Gain returns what an update is worth whose batch is scale times as large as the one that sqr and variance, the
// squared norm of the gradient and the variance of a gradient, belong to: in updates of that one. It rises with scale
// from 1, and stays below 1 + variance/sqr. Both must be >= 0, one of them > 0, and scale > 0.
//
// Source: AdaScale (arXiv 2007.05105); specification of BOA, 3.5.
func Gain(sqr, variance, scale float64) float64 {
	return (variance + sqr) / (variance/scale + sqr)
}

// NoiseScale returns phi, the batch size at which noise and signal of a gradient are even: m0*variance/sqr, with sqr
// > 0.
func NoiseScale(sqr, variance, m0 float64) float64 { return m0 * variance / sqr }

// Efficiency returns the statistical efficiency of batch size m against m0, at noise scale phi: how much progress a
// sample makes. It is 1 at m0, and m/m0 times it is the Gain.
func Efficiency(phi, m0, m float64) float64 { return (phi + m0) / (phi + m) }

// Noise is a Worth that follows from the noise scale alone. Its unit of progress is a sample at batch size Start.
type Noise struct {
	Start  int // batch size with efficiency 1, > 0
	Phases []NoisePhase
}

// NoisePhase is a part of a training in which the noise scale does not change.
type NoisePhase struct {
	Samples float64 // that it takes at batch size Start, > 0
	Scale   float64 // phi, > 0
}

var _ Worth = (*Noise)(nil)

// Sizes returns the samples of each phase.
func (n *Noise) Sizes() []float64 {
	sizes := make([]float64, len(n.Phases))
	for i := range n.Phases {
		sizes[i] = n.Phases[i].Samples
	}
	return sizes
}

// Gain returns the samples of an update times their Efficiency.
func (n *Noise) Gain(phase, batch int) float64 {
	return float64(batch) * Efficiency(n.Phases[phase].Scale, float64(n.Start), float64(batch))
}
