package price

import (
	"math"
	"math/rand"
	"testing"
)

// Ensure that with tables only, fractions of GPUs are worth exactly what mixing widths is.
func TestContinuousTables(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for range 300 {
		var work []Smooth
		var classes []Class
		for range 1 + rng.Intn(4) {
			var widths []int
			var speeds []float64
			for k := 1; k <= 1+rng.Intn(9); k++ {
				widths, speeds = append(widths, k),
					append(speeds, math.Pow(float64(k), rng.Float64())*(0.5+rng.Float64()))
			}
			c := tableClass(0.1+rng.Float64(), widths, speeds)
			c.Weight = 0.5 + rng.Float64()
			classes = append(classes, c)
			work = append(work, smooth(c.Rate, c.Weight, 1, NewTable(widths, speeds)))
		}
		x := prepared(t, classes)
		budget := between(x.Frontier(), 1.1*rng.Float64())
		p, r, rate := planAt(t, x.At, budget), relaxed(t, budget, work...), 0.0
		for i := range classes {
			rate += classes[i].Rate
		}
		if !near(p.Usage, r.Usage, 1e-9) || !near(p.Value*rate, r.Value, 1e-9) || !near(p.Price, r.Price, 1e-9) {
			t.Fatalf("usage %v, value %v, price %v, by plan %v, %v, %v", r.Usage, r.Value, r.Price, p.Usage,
				p.Value*rate, p.Price)
		}
		for u := range work {
			table, k := work[u].Choices[0].Law, r.Parts[u][0].GPUs
			if s := table.Speed(k); !near(table.Speed(k*(1+1e-12)), s, 1e-9) || s <= 0 {
				t.Fatalf("speed %v on %v GPUs", s, k)
			}
		}
	}
}

// Ensure that the width of a law is the best there is, and that no width is best where it says so.
func TestLawWidth(t *testing.T) {
	table := NewTable([]int{1, 2, 4, 8}, []float64{1, 1.7, 3, 4})
	for _, law := range []Law{Power{0}, Power{0.3}, Power{0.9}, Amdahl{0}, Amdahl{0.5}, Amdahl{0.99}, table} {
		for _, l := range []float64{0.01, 0.5, 1, 3, 20, 1000} {
			best := law.Width(l)
			for k := 1.0; k < 1e5; k *= 1.01 {
				if (l+k)/law.Speed(k) < (l+best)/law.Speed(best)*(1-1e-12) {
					t.Fatalf("%#v: %v GPUs rather than %v at %v", law, k, best, l)
				}
			}
		}
	}
}

// Ensure that whole numbers of GPUs cost little, and that a limit on GPUs is kept.
func TestContinuousBound(t *testing.T) {
	var points []Point
	for k := 1; k <= 64; k++ {
		s := Amdahl{0.9}.Speed(float64(k))
		points = append(points, Point{float64(k) / s, 1 / s, k})
	}
	f := NewFrontier([]Unit{{1, 1, Hull(points)}})
	for _, budget := range []float64{1, 1.5, 2, 3, 5} {
		c, err := f.At(budget)
		if err != nil {
			t.Fatal(err)
		}
		delay := present(f, &c)
		if r := relaxed(t, budget, smooth(1, 1, 1, Amdahl{0.9})); r.Delay > delay+1e-12 || r.Delay < 0.99*delay {
			t.Errorf("budget %v: %v present, with whole GPUs %v", budget, r.Delay, delay)
		}
	}
	w := smooth(1, 1, 1, Power{0.5})
	w.Choices[0].Most = 9
	if r := relaxed(t, 100, w); r.Parts[0][0].GPUs != 9 || r.Price != 0 || r.Usage != 3 {
		t.Errorf("%+v", r)
	}
}

// Ensure that work on two types is on both where the budget falls between them.
func TestContinuousBetweenTypes(t *testing.T) {
	fast := Kind{1, 4, 2, Power{0}, 0} // twice as fast for four times the price, and no more of either helps
	r := relaxed(t, 1.5, Smooth{1, 1, 1, []Kind{{0, 1, 1, Power{0}, 0}, fast}})
	if p := r.Parts[0]; len(p) != 2 || !near(p[1].Share, 0.5, 1e-9) || !near(r.Delay, 0.75, 1e-9) ||
		!near(r.Price, 0.5, 1e-9) {
		t.Errorf("%+v", r)
	}
}
