package power

import (
	"math"

	"github.com/trainyard/trainyard/sched"
)

// Fit returns the curve of the Fan-Weber-Barroso shape nearest to samples in least squares, its exponent a multiple of
// 0.001 from 1 to 2. ok is false where samples say too little: fewer than three uses, or power that falls.
func Fit(samples []sched.PowerPoint) (idle sched.Watts, c sched.PowerCurve, ok bool) {
	uses := make(map[float64]bool)
	for _, s := range samples {
		uses[s.Use] = true
	}
	if len(uses) < 3 {
		return 0, c, false
	}
	best := math.Inf(1)
	for i := range 1001 {
		r := 1 + float64(i)/1000
		a, b, err := fitLine(samples, func(u float64) float64 { return 2*u - math.Pow(u, r) })
		if err < best && a >= 0 && b > 0 {
			best, idle, c = err, sched.Watts(a), sched.PowerCurve{Scale: sched.Watts(b), Exponent: r}
		}
	}
	return idle, c, !math.IsInf(best, 1)
}

// fitLine returns a and b for which watts is nearest to a + b x(use), and the sum of squares that is left.
func fitLine(samples []sched.PowerPoint, x func(float64) float64) (a, b, left float64) {
	var n, sx, sy, sxx, sxy float64
	for _, s := range samples {
		u, w := x(s.Use), float64(s.Watts)
		n, sx, sy, sxx, sxy = n+1, sx+u, sy+w, sxx+u*u, sxy+u*w
	}
	b = (n*sxy - sx*sy) / (n*sxx - sx*sx)
	a = (sy - b*sx) / n
	for _, s := range samples {
		d := float64(s.Watts) - a - b*x(s.Use)
		left += d * d
	}
	return a, b, left
}
