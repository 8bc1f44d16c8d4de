package price

import (
	"math"
	"math/rand"
	"testing"
)

// Ensure that a distribution of many Poissons has their mean and variance and the probabilities counted by hand.
func TestHolding(t *testing.T) {
	for _, loads := range [][]Load{{{1, 3}}, {{16, 0.5}, {1, 2}}, {{4, 900}, {8, 30}, {3, 0}}, {{1, 1e5}}, nil} {
		p, err := Holding(loads)
		if err != nil {
			t.Fatal(err)
		}
		mean, square, want, variance := 0.0, 0.0, 0.0, 0.0
		for n, x := range p {
			mean += float64(n) * x
		}
		for n, x := range p {
			square += (float64(n) - mean) * (float64(n) - mean) * x
		}
		for _, l := range loads {
			want += float64(l.GPUs) * l.Jobs
			variance += float64(l.GPUs*l.GPUs) * l.Jobs
		}
		check(t, "mean", mean, want, 1e-9)
		check(t, "variance", square, variance, 1e-8)
	}
	p, _ := Holding([]Load{{1, 1}, {2, 0.5}})
	check(t, "P(2)", p[2], math.Exp(-1.5)*(0.5+0.5), 1e-12) // two of one GPU, or one of two
	if _, err := Holding([]Load{{1, 1e7}}); err == nil {
		t.Error("ten million GPUs counted")
	}
}

// Ensure that the split is the cheapest of all.
func TestReserve(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for range 100 {
		p, err := Holding([]Load{{1, 5 * rng.Float64()}, {4, 5 * rng.Float64()}})
		if err != nil {
			t.Fatal(err)
		}
		reserved := rng.Float64() * 1.2
		cost := func(r int) (cost, rented float64) {
			for n, x := range p {
				rented += float64(max(n-r, 0)) * x
			}
			return float64(r)*reserved + rented, rented
		}
		s := Reserve(p, reserved, 1)
		least, rented := cost(s.Reserved)
		check(t, "rented", s.Rented, rented, 1e-9)
		for r := range p {
			if c, _ := cost(r); c < least-1e-9 || math.Abs(c-least) < 1e-12 && r < s.Reserved {
				t.Fatalf("%+v costs %v, %d reserved %v", s, least, r, c)
			}
		}
	}
}

// Ensure that what a plan holds is what it uses.
func TestLoads(t *testing.T) {
	rng := rand.New(rand.NewSource(2))
	for range 100 {
		classes := randomClasses(rng, 1)
		for i := range classes {
			for j := range classes[i].Configs {
				classes[i].Configs[j].Price = 1
			}
		}
		x := prepared(t, classes)
		p, held := planAt(t, x.At, between(x.Frontier(), rng.Float64())), 0.0
		for typ := range 2 {
			for _, l := range p.Loads(classes, typ) {
				held += float64(l.GPUs) * l.Jobs
			}
		}
		check(t, "GPUs held", held, p.Usage, 1e-9)
	}
}
