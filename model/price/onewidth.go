package price

import (
	"math"
	"slices"
)

// EqualWidth returns the plan of least value within the budget that gives all jobs the same number of GPUs: in each
// phase the configuration with most GPUs up to that number, or the one with fewest where there is none; of several
// types the cheapest. The error is an *InfeasibleError.
func EqualWidth(classes []Class, budget float64) (*Plan, error) {
	if err := validate(classes); err != nil {
		return nil, err
	}
	least := 0.0
	var best *Plan
	for i, width := range widths(classes) {
		p := &Plan{Classes: make([]Mix, len(classes))}
		for j := range classes {
			p.Classes[j].Path = classes[j].upTo(width)
		}
		p.sum(classes)
		if i == 0 || p.Usage < least {
			least = p.Usage
		}
		if p.Usage <= budget*(1+equal) && (best == nil || p.Value < best.Value) {
			best = p
		}
	}
	if best == nil {
		return nil, &InfeasibleError{budget, least}
	}
	return best, nil
}

// widths returns the numbers of GPUs of all configurations, ascending.
func widths(classes []Class) []int {
	var list []int
	for i := range classes {
		for _, k := range classes[i].Configs {
			list = append(list, k.GPUs)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// upTo returns the path of EqualWidth for a number of GPUs.
func (c *Class) upTo(width int) Path {
	path := make(Path, len(c.Times))
	for e := range path {
		path[e] = -1
		for i := range c.Configs {
			if !math.IsInf(c.Times[e][i], 1) && (path[e] < 0 || c.nearer(e, i, path[e], width)) {
				path[e] = i
			}
		}
	}
	return path
}

// nearer reports whether configuration i rather than j is the one for so many GPUs in phase e.
func (c *Class) nearer(e, i, j, width int) bool {
	a, b := c.Configs[i].GPUs, c.Configs[j].GPUs
	if a == b {
		return c.Configs[i].perTime()*c.Times[e][i] < c.Configs[j].perTime()*c.Times[e][j]
	}
	if a > width || b > width {
		return a < b
	}
	return a > b
}
