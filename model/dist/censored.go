package dist

import (
	"slices"
	"sort"
)

// Censored is a distribution of sizes of which some are only known to be larger than what was seen. It is immutable.
// Above the largest size that was seen whole it goes on as a Pareto tail of exponent 1: what has lasted so long lasts
// twice as long with probability 1/2.
type Censored struct {
	at   []float64 // ascending, > 0
	left []float64 // left[i] = P(X > at[i])
	area []float64 // area[i] = integral of P(X > x) from 0 to at[i]
	last int       // number of points up to the largest size that was seen whole
}

// Points of a tail: so many, each tailRatio times the one before. Together they reach 2^10 times the last size.
const (
	tailPoints = 40
	tailRatio  = 1.189207115002721 // 2^(1/4)
)

// KaplanMeier returns the distribution of sizes of which ended were seen whole and running are lower bounds. All are >=
// 0 and need no order. A size that ends where another is cut off comes first.
//
// Source: Kaplan and Meier, "Nonparametric estimation from incomplete observations", 1958.
func KaplanMeier(ended, running []float64) *Censored {
	ends, cuts := slices.Sorted(slices.Values(ended)), slices.Sorted(slices.Values(running))
	c, left, cut := &Censored{}, 1.0, 0
	for i := 0; i < len(ends); {
		n := i
		for n < len(ends) && ends[n] == ends[i] {
			n++
		}
		for cut < len(cuts) && cuts[cut] < ends[i] {
			cut++
		}
		risk := len(ends) - i + len(cuts) - cut
		left = float64(left*float64(risk-(n-i))) / float64(risk)
		c.add(ends[i], left)
		i = n
	}
	c.last = len(c.at)
	if c.last == 0 || left == 0 {
		return c
	}
	end := c.at[c.last-1]
	for x, i := end, 0; i < tailPoints; i++ {
		x = float64(x * tailRatio)
		c.add(x, float64(left*end)/x)
	}
	return c
}

// Lomax returns the prior of a size of which nothing is known: larger than x with probability scale / (scale + x).
// scale > 0.
func Lomax(scale float64) *Censored {
	c := &Censored{}
	for x, i := scale/32, 0; i < 2*tailPoints; i++ {
		c.add(x, scale/(scale+x))
		x = float64(x * tailRatio)
	}
	return c
}

// Weighted is a part of a mixture.
type Weighted struct {
	Of     *Censored
	Weight float64 // >= 0
}

// Mixture returns the distribution whose chances to last are those of its parts, by weights that add up to 1.
func Mixture(parts []Weighted) *Censored {
	var at []float64
	end := 0.0
	for _, p := range parts {
		at = append(at, p.Of.at...)
		if n := p.Of.last; n > 0 {
			end = max(end, p.Of.at[n-1])
		}
	}
	slices.Sort(at)
	at = slices.Compact(at)
	c, next := &Censored{}, make([]int, len(parts))
	for _, x := range at {
		left := 0.0
		for i, p := range parts {
			for next[i] < len(p.Of.at) && p.Of.at[next[i]] <= x {
				next[i]++
			}
			left += float64(p.Weight * p.Of.before(next[i]))
		}
		c.add(x, left)
		if x <= end {
			c.last = len(c.at)
		}
	}
	return c
}

// add appends a point. A size of 0 is no point: it is not larger than 0.
func (c *Censored) add(x, left float64) {
	n := len(c.at)
	from, chance, area := 0.0, 1.0, 0.0
	if n > 0 {
		from, chance, area = c.at[n-1], c.left[n-1], c.area[n-1]
	}
	c.at, c.left = append(c.at, x), append(c.left, left)
	c.area = append(c.area, area+float64(chance*(x-from)))
}

// before returns the chance to be larger than the first n points.
func (c *Censored) before(n int) float64 {
	if n == 0 {
		return 1
	}
	return c.left[n-1]
}

// Beyond returns the sizes that there are above a, with the chance to be larger than each and the area below these
// chances up to it, and both at a: it is what a conditional expectation is made of. The slices are not to be changed.
func (c *Censored) Beyond(a float64) (at, left, area []float64, chance, below float64) {
	i := sort.Search(len(c.at), func(i int) bool { return c.at[i] > a })
	chance, below = c.before(i), a
	if i > 0 {
		below = c.area[i-1] + float64(chance*(a-c.at[i-1]))
	}
	return c.at[i:], c.left[i:], c.area[i:], chance, below
}

// Longest returns the largest size that was seen whole, 0 if none was.
func (c *Censored) Longest() float64 {
	if c.last == 0 {
		return 0
	}
	return c.at[c.last-1]
}

// Mean returns the mean of what is left of a size larger than a: E[X - a | X > a], of which what is larger than the
// longest counts as twice that. It is a itself, at least, where no size is known to be larger.
func (c *Censored) Mean(a float64) float64 {
	if a >= c.Longest() {
		return a
	}
	_, _, _, chance, below := c.Beyond(a)
	if !(chance > 0) {
		return a
	}
	n := c.last - 1
	return (c.area[n] - below + float64(c.left[n]*c.at[n])) / chance
}
