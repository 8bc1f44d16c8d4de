package price

import (
	"fmt"
	"math"
)

// Load says how many jobs hold so many GPUs at a time, on average.
type Load struct {
	GPUs int     // > 0
	Jobs float64 // >= 0
}

// Loads returns what the jobs of a plan hold of one GPU type. Restarts count as held.
func (p *Plan) Loads(classes []Class, typ int) []Load {
	var list []Load
	add := func(c *Class, path Path, rate float64) {
		last := -1
		for e, i := range path {
			t := c.Times[e][i]
			if i != last {
				t += c.Restart
			}
			if last = i; c.Configs[i].Type == typ {
				list = append(list, Load{c.Configs[i].GPUs, rate * t})
			}
		}
	}
	for i := range classes {
		c, m := &classes[i], &p.Classes[i]
		add(c, m.Path, c.Rate*(1-m.Share))
		if m.Other != nil {
			add(c, m.Other, c.Rate*m.Share)
		}
	}
	return list
}

// maxHolding bounds the numbers of GPUs that Holding counts to.
const maxHolding = 1 << 20

// Holding returns the distribution of the number of GPUs held: element n is the probability of n. Where nothing queues
// and arrivals are Poisson, numbers of jobs are independent and Poisson whatever the sizes, so this is a compound
// Poisson distribution; it ends twelve standard deviations and twenty of the widest gangs above the mean.
//
// It is Panjer's recursion n P(n) = sum over k of k jobs(k) P(n-k). The error says that there are more than 2^20 GPUs.
func Holding(loads []Load) ([]float64, error) {
	mean, variance, widest := 0.0, 0.0, 0
	for _, l := range loads {
		k := float64(l.GPUs)
		mean += k * l.Jobs
		variance += k * k * l.Jobs
		widest = max(widest, l.GPUs)
	}
	end := math.Ceil(mean + 12*math.Sqrt(variance) + 20*float64(widest))
	if !(end <= maxHolding) {
		return nil, fmt.Errorf("price: up to %.3g GPUs held, want at most %d", end, maxHolding)
	}
	held := make([]float64, widest+1) // GPUs in gangs of k
	for _, l := range loads {
		held[l.GPUs] += float64(l.GPUs) * l.Jobs
	}
	p := make([]float64, int(end)+1)
	p[0] = 1
	for n := 1; n < len(p); n++ {
		sum := 0.0
		for k := 1; k <= min(n, widest); k++ {
			sum += held[k] * p[n-k]
		}
		p[n] = sum / float64(n)
		if p[n] > 1e200 { // far below the mean: only ratios matter
			scale(p[:n+1], 1e-200)
		}
	}
	total := 0.0
	for _, x := range p {
		total += x
	}
	scale(p, 1/total)
	return p, nil
}

func scale(p []float64, by float64) {
	for i := range p {
		p[i] *= by
	}
}

// Split is how GPUs held are paid.
type Split struct {
	Reserved int     // GPUs paid for all the time
	Rented   float64 // mean GPUs rented on top
	Idle     float64 // mean GPUs reserved and not held
	Above    float64 // probability that more than the reserved ones are held
}

// Reserve returns the cheapest split: the fewest reserved GPUs such that more are held with at most the probability
// reserved price / rent price.
//
// Source: the newsvendor rule; specs of BOA, section 7.
func Reserve(holding []float64, reserved, rent float64) Split {
	mean, above := 0.0, 0.0
	for n, x := range holding {
		mean += float64(n) * x
		above += x
	}
	s := Split{Rented: mean}
	for r := 0; r < len(holding); r++ {
		above -= holding[r]
		s.Above = max(0, above)
		if s.Above*rent <= reserved {
			break
		}
		s.Reserved++
		s.Rented -= s.Above
	}
	s.Rented = max(0, s.Rented)
	s.Idle = float64(s.Reserved) - (mean - s.Rented)
	return s
}
