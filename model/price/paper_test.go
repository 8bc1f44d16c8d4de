package price

import (
	"math"
	"testing"
)

// The exact check values of specs of BOA, section 4. Times are in hours.

func near(got, want, tolerance float64) bool {
	return math.Abs(got-want) <= tolerance*max(1, math.Abs(want))
}

func check(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !near(got, want, tolerance) {
		t.Errorf("%s is %.9g, want %.9g", what, got, want)
	}
}

// smooth is work on one GPU type at price 1.
func smooth(rate, weight, size float64, law Law) Smooth {
	return Smooth{rate, weight, size, []Kind{{Price: 1, Speed: 1, Law: law}}}
}

func relaxed(t *testing.T, budget float64, work ...Smooth) *Relaxed {
	t.Helper()
	r, err := Continuous(work, budget)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Section 4.1: one power law.
func TestPowerLaw(t *testing.T) {
	r := relaxed(t, 8, smooth(1, 1, 2, Power{0.5}))
	check(t, "width", r.Parts[0][0].GPUs, 16, 1e-12)
	check(t, "mean JCT", r.Delay, 0.5, 1e-12)
	check(t, "price", r.Price, 1./16, 1e-12)
	check(t, "usage", r.Usage, 8, 1e-12)
}

// Section 4.2: two power laws at 16 GPUs per waiting job.
func TestTwoPowerLaws(t *testing.T) {
	r := relaxed(t, 4+math.Pow(64, 0.2), smooth(1, 1, 1, Power{0.5}), smooth(1, 1, 1, Power{0.8}))
	check(t, "width", r.Parts[0][0].GPUs, 16, 1e-10)
	check(t, "width", r.Parts[1][0].GPUs, 64, 1e-10)
	check(t, "jobs present", r.Delay, 0.25+math.Pow(64, -0.8), 1e-10)
	check(t, "GPUs per job", 1/r.Price, 16, 1e-10)
}

// Section 4.3: one job by Amdahl's law.
func TestAmdahl(t *testing.T) {
	r := relaxed(t, 2, smooth(1, 1, 1, Amdahl{0.9}))
	check(t, "width", r.Parts[0][0].GPUs, 11, 1e-10)
	check(t, "mean JCT", r.Delay, 2./11, 1e-10)
	check(t, "GPUs per job", 1/r.Price, 121./9, 1e-10)
}

// Section 4.4: figure 1 of the EPEW paper, Amdahl 0.8 and a square root, each 0.4 jobs of size 1 per hour.
func TestFigure1(t *testing.T) {
	for _, c := range []struct{ budget, k1, k2, jct float64 }{
		{0.80, 1, 1, 1},
		{0.85, 1.625, 1, 0.846154},
		{1.0, 2.428571, 1.474490, 0.676471},
		{1.5, 4.214286, 4.440051, 0.432203},
		{2.0, 6, 9, 1. / 3},
		{3.0, 9.571429, 22.903061, 0.246269},
	} {
		r := relaxed(t, c.budget, smooth(0.4, 1, 1, Amdahl{0.8}), smooth(0.4, 1, 1, Power{0.5}))
		check(t, "k1", r.Parts[0][0].GPUs, c.k1, 1e-6)
		check(t, "k2", r.Parts[1][0].GPUs, c.k2, 1e-6)
		check(t, "mean JCT", r.Delay/0.8, c.jct, 1e-6)
		check(t, "usage", r.Usage, c.budget, 1e-9)
	}
}

// tableClass is a class of one phase of an hour, on so many GPUs with such speeds.
func tableClass(rate float64, widths []int, speeds []float64) Class {
	c := Class{Name: "a", Rate: rate, Times: [][]float64{nil}}
	for i, k := range widths {
		c.Configs = append(c.Configs, Config{GPUs: k})
		c.Times[0] = append(c.Times[0], 1/speeds[i])
	}
	return c
}

// Section 4.5: a hull that leaves out a width, and a budget within a step.
func TestDiscreteHull(t *testing.T) {
	widths, speeds := []int{1, 2, 3, 4, 8}, []float64{1, 1.8, 2, 3, 4.2}
	c := tableClass(3, widths, speeds)
	hull := Hull(c.points(0, 1, 0))
	for i, want := range []Point{{1, 1, 0}, {10. / 9, 5. / 9, 1}, {4. / 3, 1. / 3, 3}, {40. / 21, 5. / 21, 4}} {
		if len(hull) != 4 || hull[i].Option != want.Option || !near(hull[i].Cost, want.Cost, 1e-15) ||
			!near(hull[i].Delay, want.Delay, 1e-15) {
			t.Fatalf("hull %v", hull)
		}
	}
	for i, want := range []float64{4, 1, 1. / 6} {
		check(t, "worth", Worth(hull, i), want, 1e-12)
	}
	p := planAt(t, prepared(t, []Class{c}).At, 3.5)
	m := p.Classes[0]
	if c.Configs[m.Path[0]].GPUs != 2 || c.Configs[m.Other[0]].GPUs != 4 {
		t.Errorf("paths %v, %v", m.Path, m.Other)
	}
	check(t, "share", m.Share, 0.25, 1e-12)
	check(t, "jobs present", 3*p.Delay, 1.5, 1e-12)
	check(t, "price", p.Price, 1, 1e-12)
	check(t, "usage", p.Usage, 3.5, 1e-12)

	r := relaxed(t, 3.5, smooth(3, 1, 1, NewTable(widths, speeds)))
	check(t, "continuous width", r.Parts[0][0].GPUs, 7./3, 1e-12)
	check(t, "jobs present", r.Delay, 1.5, 1e-12)

	p = planAt(t, glue(t, []Class{c}, 1).At, 3.5)
	check(t, "jobs present, rounded", 3*p.Delay, 5./3, 1e-12)
	check(t, "usage, rounded", p.Usage, 10./3, 1e-12)
}

// Section 4.6: where 2 GPUs are cheaper than 1, one is never used.
func TestSuperlinearStart(t *testing.T) {
	c := tableClass(2, []int{1, 2, 4}, []float64{1, 2.5, 3})
	hull := Hull(c.points(0, 1, 0))
	if len(hull) != 2 || hull[0].Option != 1 || hull[1].Option != 2 {
		t.Fatalf("hull %v", hull)
	}
	check(t, "cost", hull[1].Cost-hull[0].Cost, 8./15, 1e-12)
	check(t, "delay", hull[0].Delay-hull[1].Delay, 1./15, 1e-12)
	check(t, "price", Worth(hull, 0), 1./8, 1e-12)
	x := prepared(t, []Class{c})
	check(t, "least budget", x.Frontier().Least(), 2*0.8, 1e-12)
	if _, err := x.At(1.59); err == nil || err.Error() != "price: budget 1.59, want at least 1.6" {
		t.Errorf("error %v", err)
	}
}

// Section 4.7: restarts of 10 between two phases.
func TestRestart(t *testing.T) {
	c := Class{Name: "a", Rate: 1, Restart: 10, Configs: []Config{{GPUs: 1}, {GPUs: 2}},
		Times: [][]float64{{100, 50}, {100, 1000. / 11}}}
	for _, want := range []struct {
		path        Path
		delay, cost float64
	}{{Path{0, 0}, 210, 210}, {Path{1, 0}, 170, 230}, {Path{1, 1}, 150.909, 301.818}, {Path{0, 1}, 210.909, 311.818}} {
		p := c.Along(want.path)
		check(t, "delay", p.Delay, want.delay, 1e-5)
		check(t, "cost", p.Cost, want.cost, 1e-5)
	}
	for _, want := range []struct {
		price float64
		path  Path
	}{{2.001, Path{0, 0}}, {1.999, Path{1, 0}}, {21./79 + 1e-6, Path{1, 0}}, {21./79 - 1e-6, Path{1, 1}},
		{0.265823 - 2e-6, Path{1, 1}}, {1e-9, Path{1, 1}}} {
		if got := c.Best(want.price, Start, nil); got[0] != want.path[0] || got[1] != want.path[1] {
			t.Errorf("price %v: %v, want %v", want.price, got, want.path)
		}
	}
	hull, paths := c.Paths()
	if len(hull) != 3 || len(paths) != 3 {
		t.Fatalf("hull %v, paths %v", hull, paths)
	}
	check(t, "switch", Worth(hull, 0), 2, 1e-12)
	check(t, "switch", Worth(hull, 1), 21./79, 1e-12)
}

// Section 4.8: a job worth four times as much.
func TestWeights(t *testing.T) {
	work := func(weight float64) []Smooth {
		return []Smooth{smooth(1, weight, 1, Power{0.5}), smooth(1, 1, 1, Power{0.5})}
	}
	r := relaxed(t, 6, work(4)...)
	check(t, "width", r.Parts[0][0].GPUs, 16, 1e-10)
	check(t, "width", r.Parts[1][0].GPUs, 4, 1e-10)
	check(t, "weighted", r.Value, 1.5, 1e-10)
	r = relaxed(t, 6, work(1)...)
	check(t, "unweighted width", r.Parts[0][0].GPUs, 9, 1e-10)
	check(t, "weighted", 4/math.Sqrt(r.Parts[0][0].GPUs)+1/math.Sqrt(r.Parts[1][0].GPUs), 5./3, 1e-10)
}

// Section 4.9: of two types the one of largest speed x price^-p, whatever the budget.
func TestTwoTypes(t *testing.T) {
	both := Smooth{1, 1, 1, []Kind{{0, 1, 1, Power{0.5}, 0}, {1, 3, 2, Power{0.5}, 0}}}
	r := relaxed(t, 3, both)
	if p := r.Parts[0]; len(p) != 1 || p[0].Type != 1 {
		t.Fatalf("parts %v", p)
	}
	check(t, "GPUs per job", 1/r.Price, 12, 1e-10)
	check(t, "width", r.Parts[0][0].GPUs, 4, 1e-10)
	check(t, "value and price", r.Delay+r.Price*r.Usage, 0.5, 1e-10)
	a := both.on(0, Power{0.5}.Width(12))
	check(t, "the same on the other type", a.delay+a.cost/12, 0.57735, 1e-5)
}

// Section 4.10: numbers of GPUs held under fixed widths. Sizes play no part in it.
func TestHoldingWorked(t *testing.T) {
	p, err := Holding([]Load{{16, 0.5}})
	if err != nil {
		t.Fatal(err)
	}
	mean, square := 0.0, 0.0
	for n, x := range p {
		mean += float64(n) * x
		square += float64(n*n) * x
	}
	check(t, "nothing rented", p[0], 0.60653, 1e-5)
	check(t, "mean", mean, 8, 1e-10)
	check(t, "standard deviation", math.Sqrt(square-mean*mean), 11.314, 1e-4)
}
