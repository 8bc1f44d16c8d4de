package price

import (
	"math"
	"math/rand"
	"slices"
	"testing"
)

// randomClass returns a class of so many phases with jagged speeds; some configurations cannot be used in some phases.
func randomClass(rng *rand.Rand, phases, configs int, restart float64) Class {
	c := Class{Name: "random", Rate: 0.1 + rng.Float64(), Weight: 0.5 + rng.Float64(), Restart: restart}
	for i := range configs {
		c.Configs = append(c.Configs,
			Config{Type: rng.Intn(2), GPUs: i + 1 + rng.Intn(3)*configs, Price: 0.5 + rng.Float64()})
	}
	for range phases {
		var times []float64
		exponent := rng.Float64()
		size := 1 + 9*rng.Float64()
		for i := range c.Configs {
			t := size / math.Pow(float64(c.Configs[i].GPUs), exponent) * (0.8 + 0.4*rng.Float64())
			if i > 0 && rng.Intn(8) == 0 {
				t = math.Inf(1)
			}
			times = append(times, t)
		}
		c.Times = append(c.Times, times)
	}
	return c
}

func randomClasses(rng *rand.Rand, restart float64) []Class {
	var list []Class
	for range 1 + rng.Intn(4) {
		list = append(list, randomClass(rng, 1+rng.Intn(6), 1+rng.Intn(7), restart*rng.Float64()))
	}
	return list
}

// between returns a budget between the least and the most.
func between(f *Frontier, share float64) float64 { return f.Least() + share*(f.Most()-f.Least()) }

// Ensure that a hull is what the definition says: for every price its best point is the best of all points, and every
// point of it is best at some price.
func TestHullTwin(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for range 2000 {
		var points []Point
		for i := range 1 + rng.Intn(12) {
			points = append(points, Point{float64(rng.Intn(20)), float64(1 + rng.Intn(20)), i})
		}
		hull := Hull(slices.Clone(points))
		for i, p := range hull {
			if i > 0 && (p.Cost <= hull[i-1].Cost || p.Delay >= hull[i-1].Delay) ||
				i > 1 && Worth(hull, i-1) >= Worth(hull, i-2) {
				t.Fatalf("hull %v", hull)
			}
		}
		for _, price := range []float64{0, 0.01, 0.1 + rng.Float64(), 1, 5 * rng.Float64(), 100} {
			least := math.Inf(1)
			for _, p := range points {
				least = min(least, 2*p.Delay+price*p.Cost)
			}
			if p := hull[At(hull, 2, price)]; !near(2*p.Delay+price*p.Cost, least, 1e-12) {
				t.Fatalf("price %v: %v of %v, want value %v", price, p, hull, least)
			}
		}
	}
}

// Ensure that the frontier is the optimum of the linear program over mixtures. By duality that is the largest, over all
// prices, of what the best points at that price cost with the budget's price taken off; the largest lies at the price
// of a step, all of which the twin tries.
func TestFrontierIsTheLinearProgram(t *testing.T) {
	rng := rand.New(rand.NewSource(2))
	for range 300 {
		x := prepared(t, randomClasses(rng, 0))
		f := x.Frontier()
		budget := between(f, rng.Float64())
		p := planAt(t, x.At, budget)
		rate, best := 0.0, math.Inf(-1)
		for i := range x.classes {
			rate += x.classes[i].Rate
		}
		for _, s := range append(slices.Clone(f.steps), step{}) {
			value := -s.worth * budget
			for _, u := range f.units {
				least := math.Inf(1)
				for _, q := range u.Hull {
					least = min(least, u.Weight*q.Delay+s.worth*q.Cost)
				}
				value += u.Rate * least
			}
			best = max(best, value)
		}
		if !near(p.Value*rate, best, 1e-9) || !near(p.Usage, budget, 1e-9) {
			t.Fatalf("value %v with %v, want %v with %v", p.Value*rate, p.Usage, best, budget)
		}
	}
}

// Ensure that value falls along the frontier, ever more slowly, by the price, without a jump.
func TestFrontierConvex(t *testing.T) {
	rng := rand.New(rand.NewSource(3))
	for range 100 {
		x := prepared(t, randomClasses(rng, float64(rng.Intn(2))))
		var last, before *Plan
		for i := range 50 {
			p := planAt(t, x.At, between(x.Frontier(), float64(i)/50))
			if last != nil && (p.Value > last.Value+1e-9 || p.Price > last.Price+1e-9) {
				t.Fatalf("value %v, price %v after %v, %v", p.Value, p.Price, last.Value, last.Price)
			}
			if before != nil && before.Value-last.Value < last.Value-p.Value-1e-9 {
				t.Fatalf("values %v, %v, %v", before.Value, last.Value, p.Value)
			}
			before, last = last, p
		}
	}
}

// Ensure that at a price no one's width depends on rates and sizes, and no width grows with the price.
func TestWidthDependsOnPriceAlone(t *testing.T) {
	rng := rand.New(rand.NewSource(4))
	for range 200 {
		c := randomClass(rng, 1, 7, 0)
		d := c
		d.Rate, d.Times = c.Rate*7, [][]float64{slices.Clone(c.Times[0])}
		size := math.Exp(rng.NormFloat64())
		for i := range d.Times[0] {
			d.Times[0][i] *= size
		}
		width := math.Inf(1)
		for price := 0.01; price < 100; price *= 1.7 {
			a, b := c.Best(price, Start, nil), d.Best(price, Start, nil)
			if a[0] != b[0] {
				t.Fatalf("price %v: configuration %d, of a larger class %d", price, a[0], b[0])
			}
			k := c.Configs[a[0]].perTime()
			if k > width+1e-12 {
				t.Fatalf("price %v: width %v after %v", price, k, width)
			}
			width = k
		}
	}
}

// Ensure that more jobs on a budget that grows with them run as before, and that slower ones take longer in proportion.
func TestScaling(t *testing.T) {
	rng := rand.New(rand.NewSource(5))
	for range 200 {
		classes := randomClasses(rng, 1)
		x := prepared(t, classes)
		budget := between(x.Frontier(), rng.Float64())
		p := planAt(t, x.At, budget)
		more, slower := slices.Clone(classes), slices.Clone(classes)
		for i := range classes {
			more[i].Rate *= 4
			slower[i].Restart *= 4
			slower[i].Times = nil
			for _, times := range classes[i].Times {
				times = slices.Clone(times)
				for j := range times {
					times[j] *= 4
				}
				slower[i].Times = append(slower[i].Times, times)
			}
		}
		q, r := planAt(t, prepared(t, more).At, 4*budget), planAt(t, prepared(t, slower).At, 4*budget)
		for i := range p.Classes {
			if !slices.Equal(p.Classes[i].Path, q.Classes[i].Path) ||
				!slices.Equal(p.Classes[i].Path, r.Classes[i].Path) {
				t.Fatalf("paths %v, %v, %v", p.Classes[i].Path, q.Classes[i].Path, r.Classes[i].Path)
			}
		}
		if !near(q.Delay, p.Delay, 1e-9) || !near(r.Delay, 4*p.Delay, 1e-9) {
			t.Fatalf("mean times %v, %v, %v", p.Delay, q.Delay, r.Delay)
		}
	}
}

// Ensure that another configuration never hurts, merging phases never helps where restarts are free, and that free
// restarts are a bound.
func TestMoreChoiceNeverHurts(t *testing.T) {
	rng := rand.New(rand.NewSource(6))
	for range 300 {
		classes := randomClasses(rng, 1)
		x := prepared(t, classes)
		budget := between(x.Frontier(), rng.Float64())
		p := planAt(t, x.At, budget)
		wider := slices.Clone(classes)
		for i := range wider {
			c := &wider[i]
			c.Configs = append(slices.Clone(c.Configs),
				Config{Type: 2, GPUs: 1 + rng.Intn(9), Price: rng.Float64() + 0.1})
			c.Times = slices.Clone(c.Times)
			for e := range c.Times {
				c.Times[e] = append(slices.Clone(c.Times[e]), 10*rng.Float64()+0.1)
			}
		}
		free := withoutRestarts(classes)
		f := planAt(t, prepared(t, free).At, budget)
		if q := planAt(t, prepared(t, wider).At, budget); q.Value > p.Value+1e-9 {
			t.Fatalf("value %v with more to choose from, %v before", q.Value, p.Value)
		}
		if f.Value > p.Value+1e-9 {
			t.Fatalf("value %v without restarts, %v with", f.Value, p.Value)
		}
		if one, err := OneWidth(free, budget); err == nil && one.Value < f.Value-1e-9 {
			t.Fatalf("value %v with phases merged, %v without", one.Value, f.Value)
		}
	}
}

// Ensure that what others do is within the budget and never better than the optimum, and comes out again from the same
// seed.
func TestOtherMethods(t *testing.T) {
	rng := rand.New(rand.NewSource(7))
	plans := 0
	for range 200 {
		classes := randomClasses(rng, 1)
		x := prepared(t, classes)
		budget := between(x.Frontier(), 0.05+rng.Float64())
		best := planAt(t, x.At, budget)
		for _, method := range []func() (*Plan, error){
			func() (*Plan, error) { return glue(t, classes, 3).At(budget) },
			func() (*Plan, error) { return OneWidth(classes, budget) },
			func() (*Plan, error) { return EqualWidth(classes, budget) },
			func() (*Plan, error) { return x.Unmixed(budget) },
		} {
			p, err := method()
			if err != nil {
				continue // some classes have no one configuration for all phases, or the budget is too small for it
			}
			plans++
			if p.Usage > budget*(1+1e-9) || p.Value < best.Value-1e-9 {
				t.Fatalf("value %v with %v, the optimum %v with %v", p.Value, p.Usage, best.Value, budget)
			}
			if q, err := method(); err != nil || q.Value != p.Value || q.Usage != p.Usage {
				t.Fatalf("again: %v, %v, before %v", q, err, p)
			}
		}
	}
	if plans < 500 {
		t.Errorf("%d plans, want more", plans)
	}
}

// Ensure that without restarts paths give what phases each on their own give.
func TestPathsWithoutRestarts(t *testing.T) {
	rng := rand.New(rand.NewSource(8))
	for range 200 {
		classes := randomClasses(rng, 0)
		x := prepared(t, classes)
		var units []Unit
		for i := range classes {
			hull, _ := classes[i].Paths()
			units = append(units, Unit{classes[i].Rate, classes[i].weight(), hull})
		}
		f := NewFrontier(units)
		budget := between(f, rng.Float64())
		c, err := f.At(budget)
		if err != nil {
			t.Fatal(err)
		}
		delay := present(f, &c)
		p, rate := planAt(t, x.At, budget), 0.0
		for i := range classes {
			rate += classes[i].Rate
		}
		if !near(delay/rate, p.Delay, 1e-9) || !near(f.Least(), x.Frontier().Least(), 1e-9) ||
			!near(f.Most(), x.Frontier().Most(), 1e-9) {
			t.Fatalf("mean time %v by paths, %v by phases", delay/rate, p.Delay)
		}
	}
}

// present returns the mean number of jobs present, as rate x delay counts it.
func present(f *Frontier, c *Choice) float64 {
	sum := 0.0
	for u := range f.units {
		hull := f.units[u].Hull
		delay := hull[c.At[u]].Delay
		if u == c.Mixed {
			delay += c.Share * (hull[c.At[u]+1].Delay - delay)
		}
		sum += f.units[u].Rate * delay
	}
	return sum
}

// Ensure that a plan at a price is what each class on its own takes at it.
func TestAtPrice(t *testing.T) {
	rng := rand.New(rand.NewSource(11))
	for range 200 {
		x := prepared(t, randomClasses(rng, float64(rng.Intn(2))))
		price := math.Exp(2 * rng.NormFloat64())
		for i, m := range x.AtPrice(price).Classes {
			c := &x.classes[i]
			value := func(path Path) float64 { p := c.Along(path); return c.weight()*p.Delay + price*p.Cost }
			if best := value(c.Best(price, Start, nil)); !near(value(m.Path), best, 1e-12) || m.Other != nil {
				t.Fatalf("price %v: value %v, want %v", price, value(m.Path), best)
			}
		}
	}
}

// every calls f with each path of a class from phase e on.
func every(c *Class, path Path, f func(Path)) {
	if len(path) == len(c.Times) {
		f(path)
		return
	}
	for i := range c.Configs {
		if !math.IsInf(c.Times[len(path)][i], 1) {
			every(c, append(path, i), f)
		}
	}
}

// Ensure that the paths found are the hull of all paths there are.
func TestPathsBruteForce(t *testing.T) {
	rng := rand.New(rand.NewSource(9))
	for range 150 {
		c := randomClass(rng, 1+rng.Intn(4), 1+rng.Intn(5), 2*rng.Float64())
		var points []Point
		every(&c, nil, func(path Path) { points = append(points, c.Along(path)) })
		want := Hull(points)
		got, paths := c.Paths()
		if len(got) != len(want) {
			t.Fatalf("hull %v, want %v", got, want)
		}
		for i := range got {
			at := c.Along(paths[got[i].Option])
			if !near(got[i].Cost, want[i].Cost, 1e-12) || !near(got[i].Delay, want[i].Delay, 1e-12) ||
				at.Cost != got[i].Cost {
				t.Fatalf("hull %v, want %v", got, want)
			}
		}
	}
}

// Ensure that the best path from where a job is, is the best of all paths from there.
func TestBestFromState(t *testing.T) {
	rng := rand.New(rand.NewSource(10))
	for range 400 {
		c := randomClass(rng, 1+rng.Intn(4), 1+rng.Intn(5), 2*rng.Float64())
		s := State{rng.Intn(len(c.Times)), rng.Float64(), rng.Intn(len(c.Configs)+1) - 1}
		price := math.Exp(rng.NormFloat64())
		rest := c
		rest.Times = slices.Clone(c.Times[s.Phase:])
		rest.Times[0] = slices.Clone(rest.Times[0])
		for i := range rest.Times[0] {
			rest.Times[0][i] *= 1 - s.Done
		}
		value := func(path Path) float64 {
			p := rest.Along(path)
			if path[0] == s.Config {
				p.Delay -= c.Restart
				p.Cost -= c.Restart * c.Configs[s.Config].perTime()
			}
			return c.weight()*p.Delay + price*p.Cost
		}
		least := math.Inf(1)
		every(&rest, nil, func(path Path) { least = min(least, value(path)) })
		if got := value(c.Best(price, s, nil)); !near(got, least, 1e-12) {
			t.Fatalf("from %+v: value %v, want %v", s, got, least)
		}
	}
}

// Ensure that Diffuse gives each prefix of jobs its share, to one job.
func TestDiffuse(t *testing.T) {
	for _, share := range []float64{0, 0.1, 1. / 3, 0.75, 0.999, 1} {
		credit, others := 0.0, 0
		for n := 1; n <= 1000; n++ {
			var other bool
			if credit, other = Diffuse(credit, share); other {
				others++
			}
			if math.Abs(float64(others)-share*float64(n)) > 1+1e-9 {
				t.Fatalf("share %v: %d of %d", share, others, n)
			}
		}
	}
}

// Unmixed is At with every job of a class on one path, so that some of the budget may be left: the best plan of At for
// a budget that needs no mixing.
func (x *Exact) Unmixed(budget float64) (*Plan, error) {
	c, err := x.frontier.At(budget)
	if err != nil {
		return nil, err
	}
	c.Mixed, c.Share = -1, 0
	return x.plan(&c), nil
}

// OneWidth returns the best plan in which no job ever changes its configuration, restarts at the start included. Where
// a budget falls between two, a share of the jobs of one class takes the other. The error is an *InfeasibleError, or
// names the class without a configuration for all its phases.
func OneWidth(classes []Class, budget float64) (*Plan, error) {
	if err := validate(classes); err != nil {
		return nil, err
	}
	var units []Unit
	x := &Exact{classes: classes}
	for i := range classes {
		c := &classes[i]
		hull := Hull(c.points(0, len(c.Times), c.Restart))
		if len(hull) == 0 {
			return nil, c.fail("no configuration for all phases, want one")
		}
		m := member{class: i, phase: -1}
		for j := range c.Configs {
			m.paths = append(m.paths, repeated(j, len(c.Times)))
		}
		units = append(units, Unit{c.Rate, c.weight(), hull})
		x.units = append(x.units, m)
	}
	x.frontier = NewFrontier(units)
	return x.At(budget)
}

func repeated(config, n int) Path {
	path := make(Path, n)
	for e := range path {
		path[e] = config
	}
	return path
}
