package step_test

import (
	"math"
	"math/big"
	"math/rand"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/model/price"
	"github.com/trainyard/trainyard/model/price/clearing"
	"github.com/trainyard/trainyard/model/price/step"
)

// table is the curve of the worked examples: s(1, 2, 3, 4, 8).
var table = []float64{0, 1, 1.8, 2, 3, 0, 0, 0, 4.2}

var inf = math.Inf(1)

func rigid(gpus int, tau float64) step.Job {
	s := make([]float64, gpus+1)
	s[gpus] = 1
	return step.Job{Speed: s, Work: tau, Weight: 1}
}

func close6(a, b float64) bool { return a == b || math.Abs(a-b) <= 1e-6*max(1, math.Abs(b)) }

// steps returns the widths and prices of all steps of a job from none.
func steps(j step.Job, m step.Market) (to []int, nu []float64) {
	var c step.Curve
	c.Set(&j, m)
	for _, s := range c.Steps(nil, 0, len(j.Speed)) {
		to, nu = append(to, s.To), append(nu, s.Price)
	}
	return to, nu
}

// Ensure that the worked examples 1 to 4 and 6 come out.
func TestPricesOfExamples(t *testing.T) {
	s := func(e float64) step.Job { return step.Job{Speed: table, Work: e, Weight: 1} }
	held := func(e float64, at int) step.Job {
		return step.Job{Speed: table, Work: e, Weight: 1, Restart: 60, Held: at}
	}
	curve := func(speeds ...float64) step.Job {
		return step.Job{Speed: append([]float64{0}, speeds...), Work: 1, Weight: 1}
	}
	long := step.Market{0, 1000}
	for _, c := range []struct {
		name string
		job  step.Job
		m    step.Market
		to   []int
		nu   []float64
	}{
		{"1: A, T 1000", rigid(1, 8000), long, []int{1}, []float64{1.000336}},
		{"1: B, T 1000", rigid(4, 1000), long, []int{4}, []float64{0.395494}},
		{"1: A, T 1e5", rigid(1, 8000), step.Market{0, 1e5}, []int{1}, []float64{13.006666}},
		{"1: B, T 1e5", rigid(4, 1000), step.Market{0, 1e5}, []int{4}, []float64{25.125208}},
		{"2", s(600), step.Market{0, inf}, []int{1, 2, 4, 8}, []float64{inf, 4, 1, 1. / 6}},
		{"3, floor", s(600), step.Market{0.5, 100}, []int{1, 2, 4, 8},
			[]float64{1.110089, 0.850614, 0.612141, 0.288554}},
		{"3", s(600), step.Market{0, 100}, []int{1, 2, 4, 8}, []float64{0.406726, 0.300049, 0.196742, 0.082762}},
		{"4: A", curve(1, 1.9, 2.7, 3.4), step.Market{}, []int{1, 2, 3, 4},
			[]float64{0.294118, 0.264706, 0.235294, 0.205882}},
		{"4: B", curve(1, 1.2, 1.3, 1.35), step.Market{}, []int{1, 2, 3, 4},
			[]float64{0.740741, 0.148148, 0.0740741, 0.037037}},
		{"5: A", s(600), long, []int{1, 2, 4, 8}, []float64{2.216369, 1.224084, 0.579684, 0.141543}},
		{"6: e 600", held(600, 4), long, []int{1, 4}, []float64{2.069756, 0.971416}},
		{"6: e 6000", held(6000, 4), long, []int{1, 2, 4, 8},
			[]float64{0.401823, 0.296313, 0.211027, 0.072271}},
		{"6: not held", held(6000, 0), long, []int{1, 2, 4, 8},
			[]float64{0.411196, 0.296313, 0.190899, 0.079274}},
	} {
		to, nu := steps(c.job, c.m)
		if !slices.Equal(to, c.to) || !slices.EqualFunc(nu, c.nu, close6) {
			t.Errorf("%s: steps to %v at %v, want %v at %v", c.name, to, nu, c.to, c.nu)
		}
	}
	var c step.Curve
	j := held(600, 4)
	c.Set(&j, step.Market{0, 1000})
	if !close6(c.Speed(8), 2.957746) {
		t.Errorf("6: effective speed %v", c.Speed(8))
	}
	j = s(600)
	if c.Set(&j, step.Market{0.5, 100}); !close6(c.Worth(0.5), 1) {
		t.Errorf("3: worth %v at the floor, want 1", c.Worth(0.5))
	}
	for T, more := range map[float64]bool{4167.507: true, 4167.5072: false} { // example 1: equal at 4167.5071
		_, a := steps(rigid(1, 8000), step.Market{0, T})
		if _, b := steps(rigid(4, 1000), step.Market{0, T}); a[0] > b[0] != more {
			t.Errorf("1: %v and %v at T = %v", a, b, T)
		}
	}
}

// Ensure that the worked examples 4, 5 and 12 clear as they should.
func TestClearedExamples(t *testing.T) {
	var c step.Clearing
	jobs := []step.Job{{Speed: table, Work: 600, Weight: 1}, {Speed: table, Work: 6000, Weight: 1}}
	out := c.Clear(step.Market{0, 1000}, jobs, 8)
	if !slices.Equal(out.Widths, []int{4, 4}) || !close6(out.Price, 0.141543) || out.Short ||
		!close6(c.Curve(0).Worth(out.Price), 0.471811) || !close6(c.Curve(1).Worth(out.Price), 0.302707) {
		t.Errorf("5: %+v, worth %v and %v", out, c.Curve(0).Worth(out.Price), c.Curve(1).Worth(out.Price))
	}
	jobs = []step.Job{{Speed: []float64{0, 1, 1.9, 2.7, 3.4}, Work: 1, Weight: 1},
		{Speed: []float64{0, 1, 1.2, 1.3, 1.35}, Work: 1, Weight: 1}}
	if out := c.Clear(step.Market{}, jobs, 4); !slices.Equal(out.Widths, []int{3, 1}) {
		t.Errorf("4: %+v, want widths 3 and 1", out)
	}
	const fine = 1000 // parts of a GPU
	root := step.Job{Speed: make([]float64, 5*fine), Work: 1, Weight: 1}
	for k := range root.Speed {
		root.Speed[k] = math.Sqrt(float64(k) / fine)
	}
	for later, want := range map[float64]float64{1. / 4: 1, 3. / 4: math.Sqrt(3)} {
		var c step.Curve
		if c.Set(&root, step.Market{0, inf}); !close6(c.Worth(later/fine), want) {
			t.Errorf("12: worth %v where a GPU is worth %v later, want %v", c.Worth(later/fine), later, want)
		}
	}
}

// Ensure that what fits is taken where a wide step does not, and what was missed is reported.
func TestClearingOffersWhatIsLeft(t *testing.T) {
	var c step.Clearing
	wide := step.Job{Speed: []float64{0, 1, 1.5, 0, 4}, Work: 100, Weight: 1}
	out := c.Clear(step.Market{0, 1000}, []step.Job{wide, rigid(4, 100)}, 3)
	if !slices.Equal(out.Widths, []int{2, 0}) || !out.Short {
		t.Errorf("%+v, want 2 GPUs and none, and short", out)
	}
	out = c.Clear(step.Market{0.5, 1000}, []step.Job{{Speed: table, Work: 600, Weight: 1}}, 100)
	if out.Widths[0] != 4 || out.Price != 0.5 || out.Short {
		t.Errorf("%+v, want 4 GPUs: further ones are not worth the floor", out)
	}
}

// random draws a curve with holes and falls, a restart and a held width.
func random(rng *rand.Rand) step.Job {
	j := step.Job{Speed: make([]float64, 2+rng.Intn(12)), Work: math.Exp(12 * rng.Float64()),
		Weight: math.Exp2(rng.NormFloat64())}
	for k := 1; k < len(j.Speed); k++ {
		if rng.Intn(4) > 0 {
			j.Speed[k] = math.Pow(float64(k), rng.Float64()) * (0.5 + rng.Float64())
		}
	}
	if j.Speed[len(j.Speed)-1] == 0 {
		j.Speed[len(j.Speed)-1] = 1
	}
	if rng.Intn(2) == 0 {
		j.Restart = math.Exp(8 * rng.Float64())
		if at := rng.Intn(len(j.Speed)); j.Speed[at] > 0 {
			j.Held = at
		}
	}
	return j
}

func market(rng *rand.Rand) step.Market {
	m := step.Market{Horizon: math.Exp(14 * rng.Float64())}
	switch rng.Intn(8) {
	case 0:
		m.Horizon = 0
	case 1:
		m.Horizon = inf
	}
	if rng.Intn(2) == 0 {
		m.Floor = math.Exp(2 * rng.NormFloat64())
	}
	return m
}

// Ensure that the closed form is where a step ceases to be wanted, found by bisection, that prices never rise along a
// hull, and that a job wants less the higher the price.
func TestPricesAgainstBisection(t *testing.T) {
	rng := rand.New(rand.NewSource(23))
	found := 0
	for range 10000 {
		j, m := random(rng), market(rng)
		var c step.Curve
		c.Set(&j, m)
		last := inf
		for _, s := range c.Steps(nil, 0, len(j.Speed)) {
			slope := float64(s.To-s.From) / (c.Speed(s.To) - c.Speed(s.From))
			wants := func(price float64) bool { return c.Worth(price) >= price*slope }
			if s.Price > last {
				t.Fatalf("%+v in %+v: a step at %v follows one at %v", j, m, s.Price, last)
			}
			last = s.Price
			if s.Price <= m.Floor || math.IsInf(s.Price, 1) || s.Price > 1e9 {
				if s.Price < m.Floor && wants(m.Floor*(1+1e-9)) {
					t.Fatalf("%+v in %+v: wanted at the floor although worth %v", j, m, s.Price)
				}
				continue
			}
			lo, hi := m.Floor, 2e9
			for range 90 {
				if mid := lo + (hi-lo)/2; wants(mid) {
					lo = mid
				} else {
					hi = mid
				}
			}
			found++
			if math.Abs(lo-s.Price) > 1e-9*s.Price {
				t.Fatalf("%+v in %+v: step %+v, bisection %v", j, m, s, lo)
			}
		}
	}
	if found < 10000 {
		t.Errorf("%d steps compared, want more", found)
	}
}

// Ensure that the exponential is right to 1e-12, against arithmetic of 200 bits.
func TestFade(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for i := range 2000 {
		x := math.Exp(30*rng.Float64() - 26)
		if i < 3 {
			x = []float64{0, 45, inf}[i]
		}
		got, want := step.Fade(x), exactFade(x)
		if math.Abs(got-want) > 1e-15*want {
			t.Fatalf("Fade(%v) = %v, want %v", x, got, want)
		}
	}
	for _, x := range []float64{-math.Ln2, -0.1, 0, 1e-9, 0.3, math.Ln2, 1} {
		if got := step.Exp(x); math.Abs(got-math.Exp(x)) > 1e-15*math.Exp(x) {
			t.Errorf("Exp(%v) = %v, want %v", x, got, math.Exp(x))
		}
	}
}

// exactFade sums the series of exp(x) and returns 1 - 1/exp(x).
func exactFade(x float64) float64 {
	if x >= 40 {
		return 1
	}
	wide := func(x float64) *big.Float { return new(big.Float).SetPrec(300).SetFloat64(x) }
	sum, term := wide(1), wide(1)
	for i := 1; i < 200; i++ {
		term.Quo(term.Mul(term, wide(x)), wide(float64(i)))
		sum.Add(sum, term)
	}
	f, _ := wide(1).Sub(wide(1), wide(1).Quo(wide(1), sum)).Float64()
	return f
}

// Ensure that with the price at the floor a step is wanted exactly as BOA has it, whatever the horizon, and that a
// second of work is then worth what it costs.
func TestAtTheFloorItIsBOA(t *testing.T) {
	rng := rand.New(rand.NewSource(2))
	for range 2000 {
		j, m := random(rng), market(rng)
		m.Floor = math.Exp(rng.NormFloat64())
		var c step.Curve
		c.Set(&j, m)
		var points []price.Point
		for k := 1; k < len(j.Speed); k++ {
			if s := c.Speed(k); s > 0 {
				points = append(points, price.Point{Cost: float64(k) / s, Delay: 1 / s, Option: k})
			}
		}
		hull := price.Hull(points)
		want := hull[price.At(hull, j.Weight, m.Floor)].Option
		at := 0
		for _, s := range c.Steps(nil, 0, len(j.Speed)) {
			if s.Price >= m.Floor {
				at = s.To
			}
		}
		if at != want {
			t.Fatalf("%+v in %+v: width %d, BOA %d", j, m, at, want)
		}
		cost := m.Floor * float64(at)
		if v := c.Worth(m.Floor); math.Abs(v*c.Speed(at)-cost-j.Weight) > 1e-9*j.Weight*(1+cost) {
			t.Fatalf("%+v in %+v: worth %v", j, m, v)
		}
	}
}

// Ensure that with an infinite horizon and no floor the steps are those of clearing.Clearing, whatever the sizes.
func TestForEverItIsClearing(t *testing.T) {
	rng := rand.New(rand.NewSource(3))
	var ours step.Clearing
	var theirs clearing.Clearing
	for range 500 {
		var jobs []step.Job
		var bidders []clearing.Bidder
		for range 1 + rng.Intn(12) {
			j := random(rng)
			j.Restart, j.Held = 0, 0
			jobs = append(jobs, j)
			var points []price.Point
			for k := 1; k < len(j.Speed); k++ {
				if s := j.Speed[k]; s > 0 {
					points = append(points, price.Point{Cost: float64(k) / s, Delay: 1 / s, Option: k})
				}
			}
			bidders = append(bidders, clearing.Bidder{Hull: price.Hull(points), Weight: j.Weight})
		}
		room := rng.Intn(20 * len(jobs))
		want := theirs.Clear(bidders, float64(room))
		if want.Short > 0 {
			continue // it seats by queue alone
		}
		got := ours.Clear(step.Market{0, inf}, jobs, room)
		left := room - int(math.Round(want.Held))
		for i, at := range want.At {
			if k := bidders[i].Hull[at].Option; got.Widths[i] < k || got.Widths[i] > k+left {
				t.Fatalf("job %d has %d GPUs, by clearing.Clearing %d with %d left", i, got.Widths[i], k, left)
			}
		}
	}
}

// Ensure that rigid jobs come shortest remaining service first where the horizon is long, and narrowest first where it
// is short.
func TestRigidOrder(t *testing.T) {
	rng := rand.New(rand.NewSource(4))
	for range 1000 {
		a, b := rigid(1+rng.Intn(8), math.Exp(9*rng.Float64())), rigid(1+rng.Intn(8), math.Exp(9*rng.Float64()))
		wa, wb := len(a.Speed)-1, len(b.Speed)-1
		first := func(m step.Market) bool {
			_, x := steps(a, m)
			_, y := steps(b, m)
			return x[0] > y[0]
		}
		sa, sb := a.Work*float64(wa), b.Work*float64(wb)
		if math.Abs(sa-sb) > 1e-4*sb && first(step.Market{0, 1e12}) != (sa < sb) {
			t.Fatalf("%d GPUs for %v s and %d for %v s: not by service", wa, a.Work, wb, b.Work)
		}
		if wa != wb && first(step.Market{}) != (wa < wb) {
			t.Fatalf("%d GPUs for %v s and %d for %v s: not by width", wa, a.Work, wb, b.Work)
		}
	}
}

// Ensure that a price that clears is one: what is taken is worth it, what is not taken and fits is not.
func TestClearingPrice(t *testing.T) {
	rng := rand.New(rand.NewSource(5))
	var c step.Clearing
	for range 1000 {
		var jobs []step.Job
		for range rng.Intn(10) {
			jobs = append(jobs, random(rng))
		}
		m, room := market(rng), rng.Intn(60)
		out := c.Clear(m, jobs, room)
		held := 0
		for i, k := range out.Widths {
			held += k
			if k > 0 && !(jobs[i].Speed[k] > 0) {
				t.Fatalf("job %d has the impossible width %d", i, k)
			}
			s, ok := c.Curve(i).Next(k, len(jobs[i].Speed))
			if ok && s.Price > out.Price && s.Price >= m.Floor && !out.Short {
				t.Fatalf("job %d would take a step at %v, the price is %v", i, s.Price, out.Price)
			}
		}
		if held > room || out.Price < m.Floor || math.IsNaN(out.Price) {
			t.Fatalf("%d GPUs of %d at %v", held, room, out.Price)
		}
	}
}
