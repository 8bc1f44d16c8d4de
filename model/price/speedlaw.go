package price

import "math"

// Law is a speedup curve for any width, fractions included.
type Law interface {
	// Speed returns the speed on k >= 1 GPUs relative to one.
	Speed(k float64) float64
	// Width returns the k >= 1 that makes (l+k)/Speed(k) least; it may be +Inf. l > 0 is how many GPUs a waiting job is
	// worth: its weight over the price of a GPU.
	Width(l float64) float64
}

// Power is k^Exponent.
type Power struct{ Exponent float64 } // in [0, 1)

// Speed is k^Exponent.
func (p Power) Speed(k float64) float64 { return math.Pow(k, p.Exponent) }

// Width is where s/s' - k = l, see specs of BOA, section 4.2.
func (p Power) Width(l float64) float64 { return max(1, l*p.Exponent/(1-p.Exponent)) }

// Amdahl is a job of which a share runs in parallel and the rest does not.
type Amdahl struct{ Parallel float64 } // in [0, 1)

// Speed is Amdahl's law.
func (a Amdahl) Speed(k float64) float64 { return 1 / (1 - a.Parallel + a.Parallel/k) }

// Width is where s/s' - k = l, see specs of BOA, section 4.3.
func (a Amdahl) Width(l float64) float64 {
	return max(1, math.Sqrt(l*a.Parallel/(1-a.Parallel)))
}

// Table is a curve known at some widths. Between those that lie on its concave hull a mixture of the two has the speed
// on the line between them, so that a fraction of a GPU has a meaning; widths before the most efficient one are never
// used.
type Table struct {
	hull []Point // of a unit of work; Option is the width
}

// NewTable returns the curve with speeds[i] > 0 on widths[i] >= 1 GPUs.
func NewTable(widths []int, speeds []float64) Table {
	points := make([]Point, len(widths))
	for i, k := range widths {
		points[i] = Point{float64(k) / speeds[i], 1 / speeds[i], k}
	}
	return Table{Hull(points)}
}

// Width returns the corner of the hull; of two the narrower.
func (t Table) Width(l float64) float64 {
	return float64(t.hull[At(t.hull, l, 1)].Option)
}

// Speed returns the speed on the hull; outside of its corners that of the nearest.
func (t Table) Speed(k float64) float64 {
	a := t.hull[0]
	for _, b := range t.hull {
		if k <= float64(b.Option) {
			if b.Option == a.Option {
				break
			}
			share := (k - float64(a.Option)) / float64(b.Option-a.Option)
			return 1/a.Delay + share*(1/b.Delay-1/a.Delay)
		}
		a = b
	}
	return 1 / a.Delay
}
