package trace

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Law is a distribution of durations in seconds.
type Law interface {
	// Mean is the expectation in seconds, in closed form.
	Mean() float64
	// Above returns the probability of more than x seconds, and how much of the expectation that is: E[X; X > x].
	Above(x float64) (share, seconds float64)
	// Draw returns one duration in seconds, >= 0.
	Draw(r *rand.Rand) float64
	// Validate names the first field that is wrong, its value and what is wanted.
	Validate() error
}

// Pareto is the bounded Pareto law on [Min, Max] seconds: P(X > x) is proportional to x^-Shape less Max^-Shape.
type Pareto struct{ Shape, Min, Max float64 }

var _ Law = Pareto{}

// Mean is the integral of x dF. With a = Shape, L = Min, H = Max: a/(a-1) L^a (L^(1-a) - H^(1-a)) / (1 - (L/H)^a), and
// L ln(H/L) / (1 - L/H) for a = 1.
func (p Pareto) Mean() float64 {
	if p.Min == p.Max {
		return p.Min
	}
	share := 1 - math.Pow(p.Min/p.Max, p.Shape)
	b := 1 - p.Shape // near 0 the difference of powers cancels: expm1 keeps it
	log := math.Log(p.Max / p.Min)
	spread := log
	if b != 0 {
		spread = math.Expm1(b*log) / b
	}
	return p.Shape * p.Min * spread / share
}

// Above is the tail's probability times its mean: what lies above x is again bounded Pareto.
func (p Pareto) Above(x float64) (share, seconds float64) {
	switch {
	case x < p.Min:
		return 1, p.Mean()
	case x >= p.Max:
		return 0, 0
	}
	end := math.Pow(p.Min/p.Max, p.Shape)
	share = (math.Pow(p.Min/x, p.Shape) - end) / (1 - end)
	return share, share * Pareto{p.Shape, x, p.Max}.Mean()
}

// Draw inverts the distribution function.
func (p Pareto) Draw(r *rand.Rand) float64 {
	u := r.Float64() * (1 - math.Pow(p.Min/p.Max, p.Shape))
	return min(p.Max, p.Min*math.Pow(1-u, -1/p.Shape))
}

// Validate wants Shape > 0 and 0 < Min <= Max <= 100 years.
func (p Pareto) Validate() error {
	switch {
	case !(p.Shape > 0) || math.IsInf(p.Shape, 0):
		return fmt.Errorf("pareto shape %v, want > 0", p.Shape)
	case !(p.Min > 0 && p.Min <= p.Max && p.Max <= MaxTime.Seconds()):
		return fmt.Errorf("pareto bounds %v..%v s, want 0 < min <= max <= %v", p.Min, p.Max, MaxTime.Seconds())
	}
	return nil
}

// Lognormal is a mixture of lognormal laws, every draw above Max seconds being Max; Max 0 means 100 years. Mixtures of
// three fit the durations of published GPU clusters within a few percent (Kolmogorov-Smirnov distance).
type Lognormal struct {
	Parts []Part
	Max   float64
}

// Part of a mixture: log(seconds) is normal with mean Mu and standard deviation Sigma. Weights need not add up to 1.
type Part struct{ Weight, Mu, Sigma float64 }

var _ Law = Lognormal{}

// Mean is all of the expectation.
func (l Lognormal) Mean() float64 {
	_, mean := l.Above(0)
	return mean
}

// Above adds up P(X > x) = Φ(-y) and E[min(X, c); X > x] = exp(mu + sigma²/2) (Φ(z - sigma) - Φ(y - sigma)) + c Φ(-z)
// with y = (ln x - mu)/sigma and z = (ln c - mu)/sigma over the parts, where c is Max.
func (l Lognormal) Above(x float64) (share, seconds float64) {
	weights, c := 0.0, l.max()
	for _, p := range l.Parts {
		weights += p.Weight
	}
	if x >= c {
		return 0, 0
	}
	for _, p := range l.Parts {
		if p.Sigma == 0 {
			if d := min(math.Exp(p.Mu), c); d > x {
				share, seconds = share+p.Weight, seconds+p.Weight*d
			}
			continue
		}
		y, z := (math.Log(x)-p.Mu)/p.Sigma, (math.Log(c)-p.Mu)/p.Sigma // ln 0 is -Inf
		share += p.Weight * normalCDF(-y)
		seconds += p.Weight * (math.Exp(p.Mu+p.Sigma*p.Sigma/2)*(normalCDF(z-p.Sigma)-normalCDF(y-p.Sigma)) +
			c*normalCDF(-z))
	}
	return share / weights, seconds / weights
}

// Draw picks a part by weight, then draws from it.
func (l Lognormal) Draw(r *rand.Rand) float64 {
	weights := 0.0
	for _, p := range l.Parts {
		weights += p.Weight
	}
	u := r.Float64() * weights
	pick := l.Parts[len(l.Parts)-1]
	for _, p := range l.Parts {
		if u -= p.Weight; u < 0 {
			pick = p
			break
		}
	}
	return min(l.max(), math.Exp(pick.Mu+pick.Sigma*r.NormFloat64()))
}

// Validate wants at least one part, weights > 0, sigmas >= 0, and a Max from 0 to 100 years.
func (l Lognormal) Validate() error {
	if len(l.Parts) == 0 {
		return fmt.Errorf("lognormal with 0 parts, want > 0")
	}
	for i, p := range l.Parts {
		finite := !math.IsNaN(p.Mu) && !math.IsInf(p.Mu, 0)
		if !(p.Weight > 0 && p.Weight <= 1e9) || !finite || !(p.Sigma >= 0 && p.Sigma <= 10) {
			return fmt.Errorf("lognormal part %d is weight %v, mu %v, sigma %v, want weight > 0, sigma 0 to 10",
				i, p.Weight, p.Mu, p.Sigma)
		}
	}
	if !(l.Max >= 0 && l.Max <= MaxTime.Seconds()) {
		return fmt.Errorf("lognormal max %v s, want 0 to %v", l.Max, MaxTime.Seconds())
	}
	return nil
}

func (l Lognormal) max() float64 {
	if l.Max == 0 {
		return MaxTime.Seconds()
	}
	return l.Max
}

func normalCDF(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
