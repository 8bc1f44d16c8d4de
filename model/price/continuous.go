package price

import (
	"fmt"
	"math"
)

// Smooth is a kind of work whose width may be any number of GPUs from 1 on.
type Smooth struct {
	Rate    float64 // > 0
	Weight  float64 // > 0
	Size    float64 // time on one GPU of speed 1, > 0
	Choices []Kind  // GPU types that can do it, at least one
}

// Kind is a GPU type as one kind of work sees it.
type Kind struct {
	Type  int
	Price float64 // of one GPU for a unit of time, > 0
	Speed float64 // of one GPU, > 0
	Law   Law
	Most  float64 // GPUs; 0 = any number
}

// Part is what a share of some work runs on.
type Part struct {
	Type  int
	GPUs  float64
	Share float64 // of the work
}

// Relaxed is the optimum where widths may be fractions.
type Relaxed struct {
	Parts [][]Part // Parts[u]: of work u; two where it is on two types
	Usage float64  // mean cost per unit of time
	Delay float64  // sum of rate x delay: the mean number present
	Value float64  // the same x weight
	Price float64  // weighted delay that one more unit of cost would save
}

// spot is where some work is at a price.
type spot struct {
	kind        int
	gpus        float64
	cost, delay float64
}

// Continuous returns the optimum for a budget. It looks for the price at which usage, which falls as the price rises,
// meets the budget, by bisection to the last bit; where usage jumps there, because a table or the type of a job
// changes, it mixes both sides. The error is an *InfeasibleError.
//
// Source: specs of BOA, section 3.1.
func Continuous(work []Smooth, budget float64) (*Relaxed, error) {
	for u := range work {
		if err := work[u].validate(u); err != nil {
			return nil, err
		}
	}
	if len(work) == 0 {
		return nil, fmt.Errorf("price: no work, want some")
	}
	dear, least := spots(work, math.MaxFloat64)
	if !(budget >= least*(1-equal)) {
		return nil, &InfeasibleError{budget, least}
	}
	// Exponents of 2: beyond these prices nothing changes that anyone could pay for.
	lo, hi := -200.0, 200.0
	cheap, most := spots(work, math.Exp2(lo))
	if budget >= most {
		return mixed(work, cheap, cheap, 0, 0), nil
	}
	for mid := lo + (hi-lo)/2; mid > lo && mid < hi; mid = lo + (hi-lo)/2 {
		at, usage := spots(work, math.Exp2(mid))
		if usage <= budget {
			hi, dear, least = mid, at, usage
		} else {
			lo, cheap, most = mid, at, usage
		}
	}
	share := 0.0
	if most > least {
		share = max(0, (budget-least)/(most-least))
	}
	return mixed(work, dear, cheap, share, math.Exp2(hi)), nil
}

func (s *Smooth) validate(u int) error {
	ok := s.Rate > 0 && s.Weight > 0 && s.Size > 0 && len(s.Choices) > 0
	for _, k := range s.Choices {
		ok = ok && k.Price > 0 && k.Speed > 0 && (k.Most == 0 || k.Most >= 1)
	}
	if !ok {
		return fmt.Errorf("price: work %d: %+v, want all of it > 0", u, *s)
	}
	return nil
}

// spots returns what all work does at a price, and the usage.
func spots(work []Smooth, price float64) ([]spot, float64) {
	list, usage := make([]spot, len(work)), 0.0
	for u := range work {
		list[u] = work[u].at(price)
		usage += work[u].Rate * list[u].cost
	}
	return list, usage
}

// at returns the best type and width at a price; of equal ones the first.
func (s *Smooth) at(price float64) spot {
	best, least := spot{}, math.Inf(1)
	for i, k := range s.Choices {
		p := s.on(i, min(k.Law.Width(s.Weight/(price*k.Price)), k.most()))
		if value := s.Weight/price*p.delay + p.cost; value < least {
			best, least = p, value
		}
	}
	return best
}

// unlimited keeps widths finite.
const unlimited = 1e15

func (k *Kind) most() float64 {
	if k.Most == 0 {
		return unlimited
	}
	return k.Most
}

// on returns what it costs and takes on so many GPUs of a kind.
func (s *Smooth) on(kind int, gpus float64) spot {
	k := &s.Choices[kind]
	delay := s.Size / (k.Speed * k.Law.Speed(gpus))
	return spot{kind, gpus, k.Price * gpus * delay, delay}
}

// mixed puts a share of every work on the second spot. On one type that is one width, since mixing goes along the
// concave hull of its speedup.
func mixed(work []Smooth, a, b []spot, share, price float64) *Relaxed {
	r := &Relaxed{Price: price}
	for u := range work {
		s, x, y := &work[u], a[u], b[u]
		cost, delay := x.cost+share*(y.cost-x.cost), x.delay+share*(y.delay-x.delay)
		parts := []Part{{s.Choices[x.kind].Type, cost / delay / s.Choices[x.kind].Price, 1}}
		if x.kind != y.kind && share > 0 {
			parts = []Part{{s.Choices[x.kind].Type, x.gpus, 1 - share}, {s.Choices[y.kind].Type, y.gpus, share}}
		}
		r.Parts = append(r.Parts, parts)
		r.Usage += s.Rate * cost
		r.Delay += s.Rate * delay
		r.Value += s.Rate * s.Weight * delay
	}
	return r
}
