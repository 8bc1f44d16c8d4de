package step

import "math"

// Job is what the prices of a job's steps follow from.
type Job struct {
	Speed   []float64 // by width from 0, in seconds of work per second; 0 = not possible. Speed[0] is not looked at
	Work    float64   // left, > 0, in seconds at speed 1
	Restart float64   // seconds that another width than Held costs, >= 0
	Held    int       // width that it has, 0 = none
	Shrinks bool      // widths below Held cost no restart: it is weighed apart
	Weight  float64   // job-seconds that a second of delay costs, > 0
}

// Market is what is the same for all jobs that ask for GPUs of a type.
type Market struct {
	Floor   float64 // price that a GPU has in any case, >= 0
	Horizon float64 // seconds in which the backlog drains, >= 0; 0 and +Inf are the limits
}

// Step is a step of a job's hull.
type Step struct {
	From, To int
	Price    float64 // up to which the job wants it, nu; +Inf = at any
}

// Curve is a job in a market. Its zero value is ready for Set; memory is used again.
type Curve struct {
	weight, floor float64
	speed         []float64 // effective, by width
	fade          []float64 // 1 - phi, by width
	tau           []float64 // seconds until the job ends, by width
	chain         []int
}

// Set makes c that of job j in a market.
func (c *Curve) Set(j *Job, m Market) {
	n := len(j.Speed)
	c.weight, c.floor = j.Weight, m.Floor
	c.speed, c.fade, c.tau = fill(c.speed, n), fill(c.fade, n), fill(c.tau, n)
	for k := 1; k < n; k++ {
		if !(j.Speed[k] > 0) {
			continue
		}
		tau := j.Work / j.Speed[k]
		if k > j.Held || k < j.Held && !j.Shrinks {
			tau += j.Restart
		}
		c.tau[k], c.speed[k], c.fade[k] = tau, j.Work/tau, 1
		if m.Horizon > 0 {
			c.fade[k] = Fade(tau / m.Horizon)
		}
	}
}

// fill returns a slice of n zeros.
func fill(s []float64, n int) []float64 {
	if cap(s) < n {
		return make([]float64, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// Speed returns the effective speed on k GPUs; 0 = not possible.
func (c *Curve) Speed(k int) float64 {
	if k >= len(c.speed) {
		return 0
	}
	return c.speed[k]
}

// Ends returns the seconds until the job ends on k GPUs, which must be possible.
func (c *Curve) Ends(k int) float64 { return c.tau[k] }

// Steps appends the steps of the upper hull from width from, which must be 0 or possible, up to at most most GPUs.
// Their prices never rise.
func (c *Curve) Steps(dst []Step, from, most int) []Step {
	c.hull(from, most)
	last := math.Inf(1)
	for i := 1; i < len(c.chain); i++ {
		k0, k1 := c.chain[i-1], c.chain[i]
		last = min(last, c.price(k0, k1)) // rounding must not turn two steps round
		dst = append(dst, Step{k0, k1, last})
	}
	return dst
}

// Next is the first of Steps; false if there is none.
func (c *Curve) Next(from, most int) (Step, bool) {
	c.hull(from, most)
	if len(c.chain) < 2 {
		return Step{}, false
	}
	return Step{from, c.chain[1], c.price(from, c.chain[1])}, true
}

// hull leaves in chain the widths of the upper hull. Those that are no faster than narrower ones are not on it, nor
// those on a line between two others.
func (c *Curve) hull(from, most int) {
	c.chain = append(c.chain[:0], from)
	for k := from + 1; k <= min(most, len(c.speed)-1); k++ {
		if n := len(c.chain); c.speed[k] <= c.speed[c.chain[n-1]] {
			continue
		}
		for n := len(c.chain); n >= 2 && !c.above(c.chain[n-2], c.chain[n-1], k); n-- {
			c.chain = c.chain[:n-1]
		}
		c.chain = append(c.chain, k)
	}
}

// above reports whether b lies above the line from a to d, a < b < d.
func (c *Curve) above(a, b, d int) bool {
	return float64((c.speed[b]-c.speed[a])*float64(d-b)) > float64((c.speed[d]-c.speed[b])*float64(b-a))
}

// price returns nu of the step k0 -> k1.
func (c *Curve) price(k0, k1 int) float64 {
	slope := float64(k1-k0) / (c.speed[k1] - c.speed[k0])
	nu := math.Inf(1)
	for k := 1; k < len(c.speed); k++ {
		if c.speed[k] == 0 {
			continue
		}
		ends := float64(float64(k) * c.fade[k])
		over := float64(slope*c.speed[k]) - float64(k)
		if k0 == 0 && k == k1 {
			over = 0 // exactly; else all short jobs look alike
		}
		if less := over + ends; less > 0 {
			nu = min(nu, (c.weight+float64(c.floor*ends))/less)
		}
	}
	return nu
}

// Worth returns v, what a second of the job's work is worth at a price of a GPU, >= the floor.
func (c *Curve) Worth(price float64) float64 {
	v := math.Inf(1)
	for k := 1; k < len(c.speed); k++ {
		if c.speed[k] > 0 {
			later := c.floor + float64((price-c.floor)*(1-c.fade[k]))
			v = min(v, (c.weight+float64(later*float64(k)))/c.speed[k])
		}
	}
	return v
}
