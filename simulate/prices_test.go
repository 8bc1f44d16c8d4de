package simulate

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/sched"
)

// tariff is a Pricer of one price.
type tariff float64

func (p *tariff) Prices(say func(sched.TypeID, float64)) { say(0, float64(*p)) }

func (*tariff) Bids(*sched.View, sched.JobID, func(sched.JobID, sched.Bid)) {}

// Ensure that means and median are over time, that parts cut it evenly, and that where nothing has a price there is
// nothing to say.
func TestPrices(t *testing.T) {
	price := tariff(0)
	p := &Prices{by: &price}
	for _, at := range []struct {
		now   sched.Time
		price float64
	}{{10, 4}, {10, 4}, {30, 1}, {60, 0}, {110, math.Inf(1)}} {
		p.Log(&sched.View{Now: at.now}, nil)
		price = tariff(at.price)
	}
	want := PriceLine{Type: "a", Mean: 1.1, Median: 0, Parts: []float64{(4*20 + 5) / 25., 1, 0, 0}}
	lines := p.Lines([]string{"a"}, 4)
	if len(lines) != 1 || lines[0].Type != "a" || math.Abs(lines[0].Mean-want.Mean) > 1e-12 ||
		lines[0].Median != want.Median || !near(lines[0].Parts, want.Parts) {
		t.Errorf("%+v, want %+v", lines, want)
	}
	none := &Prices{}
	none.Log(&sched.View{Now: 1}, nil)
	none.Log(&sched.View{Now: 2}, nil)
	if lines := none.Lines(nil, 4); lines != nil {
		t.Errorf("%+v without a price", lines)
	}
}

func near(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Abs(x-y) <= 1e-9*max(1, math.Abs(y)) })
}

// Ensure that means equal those of all instants one by one, and that the mean of the parts is that of the whole.
func TestPricesTwin(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		price := tariff(0)
		p := &Prices{by: &price}
		now, first, second := sched.Time(r.IntN(50)), sched.Time(0), []float64(nil)
		p.Log(&sched.View{Now: now}, nil)
		first = now
		for range 1 + r.IntN(30) {
			step := sched.Time(r.IntN(20))
			for range step {
				second = append(second, float64(price))
			}
			now += step
			p.Log(&sched.View{Now: now}, nil)
			price = tariff(r.IntN(4))
		}
		if now == first {
			continue
		}
		line := p.Lines(nil, 1)[0]
		var sum, parts float64
		for _, x := range second {
			sum += x / float64(len(second))
		}
		n := 1 + r.IntN(13)
		for _, x := range p.Lines(nil, n)[0].Parts {
			parts += x / float64(n)
		}
		slices.Sort(second)
		middle := second[(len(second)-1)/2]
		if !near([]float64{line.Mean, line.Parts[0], parts}, []float64{sum, sum, sum}) || line.Median != middle {
			t.Fatalf("seed %d: %+v, parts %v; want mean %v, median %v", seed, line, parts, sum, middle)
		}
	}
}
