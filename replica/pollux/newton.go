package pollux

// Limits of the quasi-Newton method.
const (
	maxSteps   = 200
	maxHalving = 30
	flatness   = 1e-7 // improvement of a step, relative, below which it ends
)

// minimize moves x to a minimum of value between low and high: BFGS on the parameters that are not fixed nor held by a
// bound, each step cut back to the bounds and halved until it gains enough.
func (f *fitting) minimize() {
	value, gradient := f.value(&f.x)
	var inverse [parameters]vector
	held := f.held(&gradient)
	reset(&inverse)
	calm := 0
	for range maxSteps {
		next, nextValue, ok := f.search(&inverse, &gradient, held, value)
		if !ok {
			if calm++; calm > 1 {
				return
			}
			reset(&inverse) // steepest descent once more
			continue
		}
		_, nextGradient := f.value(&next)
		var moved, changed vector
		for i := range moved {
			moved[i], changed[i] = next[i]-f.x[i], nextGradient[i]-gradient[i]
		}
		gained := value - nextValue
		f.x, value, gradient = next, nextValue, nextGradient
		if now := f.held(&gradient); now != held {
			held = now
			reset(&inverse)
		} else {
			update(&inverse, &moved, &changed)
		}
		if gained > flatness*max(value, 1e-6) {
			calm = 0
		} else if calm++; calm > 2 {
			return
		}
	}
}

// held returns which parameters cannot follow the gradient.
func (f *fitting) held(gradient *vector) (held [parameters]bool) {
	for i, g := range gradient {
		held[i] = f.fixed[i] || f.x[i] <= f.low[i] && g > 0 || f.x[i] >= f.high[i] && g < 0
	}
	return held
}

// search returns a better point along the quasi-Newton direction.
func (f *fitting) search(inverse *[parameters]vector, gradient *vector, held [parameters]bool,
	value float64) (next vector, at float64, ok bool) {
	var direction vector
	slope, longest := 0.0, 0.0
	for i := range direction {
		if held[i] {
			continue
		}
		for k := range direction {
			if !held[k] {
				direction[i] -= float64(inverse[i][k] * gradient[k])
			}
		}
		slope += float64(direction[i] * gradient[i])
		longest = max(longest, direction[i], -direction[i])
	}
	if slope >= 0 {
		return next, 0, false
	}
	step := min(1, 2/longest) // at most e² of a parameter
	for range maxHalving {
		for i := range next {
			next[i] = min(max(f.x[i]+float64(step*direction[i]), f.low[i]), f.high[i])
			if held[i] {
				next[i] = f.x[i]
			}
		}
		if at, _ = f.value(&next); at < value+float64(1e-4*step*slope) {
			return next, at, true
		}
		step /= 2
	}
	return next, at, false
}

func reset(inverse *[parameters]vector) {
	*inverse = [parameters]vector{}
	for i := range inverse {
		inverse[i][i] = 1
	}
}

// update is the BFGS formula for the inverse of the Hessian. It is left out where curvature is not positive.
func update(inverse *[parameters]vector, moved, changed *vector) {
	curvature, inner := 0.0, 0.0
	var h vector // inverse × changed
	for i := range moved {
		curvature += float64(moved[i] * changed[i])
		for k := range changed {
			h[i] += float64(inverse[i][k] * changed[k])
		}
		inner += float64(h[i] * changed[i])
	}
	if curvature <= 1e-12 {
		return
	}
	for i := range moved {
		for k := range moved {
			inverse[i][k] += float64((1+inner/curvature)*moved[i]*moved[k]/curvature) - float64(
				(h[i]*moved[k]+moved[i]*h[k])/curvature)
		}
	}
}
