package power_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/csvtable"
	"github.com/trainyard/trainyard/internal/shareddata"
	"github.com/trainyard/trainyard/model/power"
	"github.com/trainyard/trainyard/sched"
)

func open(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.Open(filepath.Join(shareddata.DataDir(t), name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// measured returns use and power of the ten sets of the EaCO paper.
func measured(t *testing.T) (list []sched.PowerPoint) {
	t.Helper()
	table, err := csvtable.Open(open(t, "colocation/eaco/eaco_tables.csv"), "test", "eaco")
	if err != nil {
		t.Fatal(err)
	}
	err = table.Each(func() error {
		use, wrong := table.Number("avg_gpu_util_pct", 0, 100)
		if wrong != nil {
			return wrong
		}
		w, wrong := table.Number("avg_power_w", 0, 1e4)
		list = append(list, sched.PowerPoint{Use: use / 100, Watts: sched.Watts(w)})
		return wrong
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Reference: EaCO, tables 1 to 4. Ensure that the default curve is what the ten measured sets give, with a mean error
// of 2.2 % and none above 69 W, and that a straight line is twice as wrong: 804.4 + 1317.1 u, mean 5.1 %, worst 155 W.
func TestFittedToTables(t *testing.T) {
	samples := measured(t)
	idle, c, ok := power.Fit(samples)
	if !ok || math.Abs(float64(idle-power.FittedIdleW)) > .1 || math.Abs(float64(c.Scale-power.FittedScaleW)) > .1 ||
		c.Exponent != power.FittedExponent {
		t.Errorf("fit %v + %v (2u - u^%v), want %v, %v, %v", idle, c.Scale, c.Exponent, power.FittedIdleW,
			power.FittedScaleW, power.FittedExponent)
	}
	fitted := power.Of(&sched.NodeSpec{GPUs: 8, IdleW: power.FittedIdleW,
		Curve: sched.PowerCurve{Scale: power.FittedScaleW, Exponent: power.FittedExponent}})
	line := power.Of(&sched.NodeSpec{GPUs: 8, IdleW: 804.4, BusyGPUW: 1317.1 / 8})
	for _, c := range []struct {
		what string
		node power.Node
		want string
	}{{"curve", fitted, "mean 2.2 %, worst 69 W"}, {"line", line, "mean 5.1 %, worst 155 W"}} {
		mean, worst := 0.0, 0.0
		for _, s := range samples {
			d := math.Abs(float64(c.node.At(s.Use) - s.Watts))
			mean, worst = mean+d/float64(s.Watts)/float64(len(samples)), max(worst, d)
		}
		if got := fmt.Sprintf("mean %.1f %%, worst %.0f W", mean*100, worst); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

// Ensure that a fit recovers a curve it is shown, and refuses what says too little.
func TestFit(t *testing.T) {
	want := sched.PowerCurve{Scale: 700, Exponent: 1.4}
	n := power.Of(&sched.NodeSpec{GPUs: 1, IdleW: 90, Curve: want})
	var samples []sched.PowerPoint
	for u := 0.0; u <= 1; u += .125 {
		samples = append(samples, sched.PowerPoint{Use: u, Watts: n.At(u)})
	}
	idle, c, ok := power.Fit(samples)
	if !ok || math.Abs(float64(idle-90)) > 1e-6 || math.Abs(float64(c.Scale-700)) > 1e-6 || c.Exponent != 1.4 {
		t.Errorf("%v %v %v", idle, c, ok)
	}
	falling := []sched.PowerPoint{{Use: 0, Watts: 3}, {Use: .5, Watts: 2}, {Use: 1, Watts: 1}}
	for _, bad := range [][]sched.PowerPoint{nil, samples[:2], falling, {samples[3], samples[3], samples[3]}} {
		if _, _, ok := power.Fit(bad); ok {
			t.Errorf("a fit of %v", bad)
		}
	}
}

// Ensure that the three shapes have the values they are defined by.
func TestShapes(t *testing.T) {
	linear := power.Of(&sched.NodeSpec{GPUs: 4, IdleW: 100, BusyGPUW: 50})
	curve := power.Of(&sched.NodeSpec{GPUs: 4, IdleW: 100, Curve: sched.PowerCurve{Scale: 200, Exponent: 2}})
	table := power.Of(&sched.NodeSpec{GPUs: 4, IdleW: 100,
		Curve: sched.PowerCurve{Points: []sched.PowerPoint{{Use: 0, Watts: 100}, {Use: .5, Watts: 250},
			{Use: .75, Watts: 250}, {Use: 1, Watts: 300}}}})
	for _, c := range []struct {
		u                    float64
		linear, curve, table sched.Watts
	}{{0, 100, 100, 100}, {.25, 150, 187.5, 175}, {.5, 200, 250, 250}, {.625, 225, 271.875, 250},
		{.75, 250, 287.5, 250}, {.875, 275, 296.875, 275}, {1, 300, 300, 300}, {2, 300, 300, 300}} {
		if l, k, b := linear.At(c.u), curve.At(c.u), table.At(c.u); l != c.linear || k != c.curve || b != c.table {
			t.Errorf("at %v: %v, %v, %v, want %v, %v, %v", c.u, l, k, b, c.linear, c.curve, c.table)
		}
	}
	if a, b, c := linear.GPU(1), curve.GPU(1), table.GPU(1); a != 50 || b != 50 || c != 50 {
		t.Errorf("%v, %v, %v of a GPU in full use, want 50 W", a, b, c)
	}
}

// Ensure that jobs alone on whole nodes answer for all of it, that unheld GPUs are idle's, and that sharing, caps and
// meters enter as documented: by hand, on a node of 4 GPUs, 100 W idle, 50 W per GPU.
func TestDrawByHand(t *testing.T) {
	n := power.Of(&sched.NodeSpec{GPUs: 4, IdleW: 100, BusyGPUW: 50})
	whole := power.Tenant{GPUs: 4, Own: 4, Use: 1, Cap: 1}
	for _, c := range []struct {
		what    string
		use     float64
		metered sched.Watts
		tenants []power.Tenant
		want    string
	}{
		{"unknown", 0, 0, nil, "[] total 100 idle 100"},
		{"no one, metered", 0, 130, nil, "[] total 130 idle 130"},
		{"all of it", 1, 0, []power.Tenant{whole}, "[300] total 300 idle 0"},
		{"half of it", .5, 0, []power.Tenant{{GPUs: 2, Own: 2, Use: 1, Cap: 1}}, "[150] total 200 idle 50"},
		{"half of it, half used", .25, 0, []power.Tenant{{GPUs: 2, Own: 2, Use: .5, Cap: 1}},
			"[100] total 150 idle 50"},
		{"two share all, 0.5 and 0.25", .75, 0, []power.Tenant{{4, 2, 2, .5, 1}, {4, 2, 2, .25, 1}},
			"[150 100] total 250 idle 0"},
		{"two share all, 1 and 1", 1, 0, []power.Tenant{{4, 2, 2, 1, 1}, {4, 2, 2, 1, 1}},
			"[150 150] total 300 idle 0"},
		{"capped to half", 1, 0, []power.Tenant{{4, 4, 4, 1, .5}}, "[200] total 200 idle 0"},
		{"one of two capped", 1, 0, []power.Tenant{{2, 2, 2, 1, .5}, {2, 2, 2, 1, 1}}, "[100 150] total 250 idle 0"},
		{"metered", 1, 400, []power.Tenant{{4, 2, 2, .75, 1}, {4, 2, 2, .25, 1}}, "[275 125] total 400 idle 0"},
		{"metered below idle", 1, 40, []power.Tenant{{2, 2, 2, 1, 1}}, "[20] total 40 idle 20"},
		{"metered alone, shared 3 to 1 by use", 0, 180, []power.Tenant{{1, .5, .75, 0, 1}, {1, .5, .25, 0, 1}},
			"[72.5 32.5] total 180 idle 75"},
		{"metered, no use known", 0, 180, []power.Tenant{{1, 1, 1, 0, 1}, {1, 1, 1, 0, 1}},
			"[65 65] total 180 idle 50"},
	} {
		parts, d := n.Draw(c.use, c.tenants, c.metered, nil)
		if got := fmt.Sprintf("%v total %v idle %v", parts, d.Total, d.Idle); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

// drawNode draws a node of any shape.
func drawNode(r *rand.Rand) *sched.NodeSpec {
	s := &sched.NodeSpec{GPUs: 1 + r.IntN(8), IdleW: sched.Watts(900 * r.Float64()),
		BusyGPUW: sched.Watts(300 * r.Float64() * float64(r.IntN(2)))}
	switch r.IntN(3) {
	case 0:
		s.Curve = sched.PowerCurve{Scale: sched.Watts(1e3 * r.Float64()), Exponent: 1 + r.Float64()}
	case 1:
		s.Curve.Points = []sched.PowerPoint{{Use: 0, Watts: s.IdleW},
			{Use: .25 + r.Float64()/2, Watts: s.IdleW + sched.Watts(r.IntN(2)*300)}, {Use: 1, Watts: s.IdleW + 400}}
	}
	return s
}

// Ensure that, whatever the shape, the meter, sharing and caps, parts are not negative and add up to the node's power,
// that the order of tenants is of no account, and that a cap never raises power.
func TestDrawAddsUp(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 5))
		s := drawNode(r)
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		n := power.Of(s)
		metered := sched.Watts(r.IntN(2)*r.IntN(2)) * sched.Watts(2000*r.Float64())
		on := make([]int, s.GPUs) // tenants of each GPU
		use := make([]float64, s.GPUs)
		var tenants []power.Tenant
		held := make([][]int, r.IntN(5))
		for i := range held {
			x := power.Tenant{Use: float64(r.IntN(2)) * r.Float64(), Cap: 1 - float64(r.IntN(2))*r.Float64()}
			for g := range s.GPUs {
				if r.IntN(2) == 0 || g == s.GPUs-1 {
					held[i] = append(held[i], g)
					on[g]++
					use[g] += x.Use
				}
			}
			x.GPUs = float64(len(held[i]))
			tenants = append(tenants, x)
		}
		mean := 0.0
		for _, u := range use {
			mean += min(1, u) / float64(s.GPUs)
		}
		for i := range tenants {
			for _, g := range held[i] {
				tenants[i].Own += 1 / float64(on[g])
				if use[g] > 0 {
					tenants[i].Part += tenants[i].Use / use[g]
				} else {
					tenants[i].Part += 1 / float64(on[g])
				}
			}
		}
		parts, d := n.Draw(mean, tenants, metered, nil)
		sum := d.Idle
		for _, w := range parts {
			if sum += w; !(w >= 0) {
				t.Fatalf("seed %d: parts %v", seed, parts)
			}
		}
		if want := d.Total; math.Abs(float64(sum-want)) > 1e-9*float64(want) || !(d.Idle >= 0) {
			t.Fatalf("seed %d: %v + %v, want %v", seed, parts, d.Idle, want)
		}
		if metered > 0 && math.Abs(float64(d.Total-metered)) > 1e-9*float64(metered) {
			t.Fatalf("seed %d: total %v, metered %v", seed, d.Total, metered)
		}
		if metered == 0 && float64(d.Total) > float64(n.At(mean))*(1+1e-9) {
			t.Fatalf("seed %d: total %v, at most %v without caps", seed, d.Total, n.At(mean))
		}
	}
}

// Ensure that a shape that makes no sense is refused, with what is wanted.
func TestCurveErrors(t *testing.T) {
	for _, c := range []struct {
		curve sched.PowerCurve
		want  string
	}{
		{sched.PowerCurve{Scale: -1, Exponent: 1.5}, "power curve of scale -1 and exponent 1.5, want a scale >= 0 " +
			"and an exponent from 1 to 2"},
		{sched.PowerCurve{Scale: 1, Exponent: .9}, "power curve of scale 1 and exponent 0.9, want"},
		{sched.PowerCurve{Scale: 1, Exponent: 2.1}, "power curve of scale 1 and exponent 2.1, want"},
		{sched.PowerCurve{Scale: sched.Watts(math.NaN()), Exponent: 1.5}, "power curve of scale NaN"},
		{sched.PowerCurve{Scale: 1, Exponent: math.NaN()}, "exponent NaN, want"},
		{sched.PowerCurve{Scale: 1, Points: []sched.PowerPoint{{Use: 0, Watts: 1}}},
			"a power curve of both scale and points, want one of them"},
		{sched.PowerCurve{Points: []sched.PowerPoint{{Use: 0, Watts: 100}}}, "power table from use 0 at 100 W to 0, " +
			"want one from 0 at idle power, 100 W, to 1"},
		{sched.PowerCurve{Points: []sched.PowerPoint{{Use: 0, Watts: 90}, {Use: 1, Watts: 200}}},
			"power table from use 0 at 90 W to 1, want one from 0 at idle power, 100 W, to 1"},
		{sched.PowerCurve{Points: []sched.PowerPoint{{Use: 0, Watts: 100}, {Use: .5, Watts: 90}, {Use: 1, Watts: 200}}},
			"power table with 90 W at use 0.5 after 100 W at 0, want rising use and power that does not fall"},
		{sched.PowerCurve{Points: []sched.PowerPoint{{Use: 0, Watts: 100}, {Use: .5, Watts: 190}, {Use: .5, Watts: 195},
			{Use: 1, Watts: 200}}}, "want rising use"},
		{sched.PowerCurve{Points: []sched.PowerPoint{{Use: 0, Watts: 100}, {Use: .5, Watts: sched.Watts(math.NaN())},
			{Use: 1, Watts: 200}}}, "want rising use"},
	} {
		s := sched.NodeSpec{GPUs: 1, IdleW: 100, Curve: c.curve}
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.curve, err, c.want)
		}
	}
	if err := (&sched.NodeSpec{GPUs: 1, Wake: -1}).Validate(); err == nil {
		t.Error("a negative wake delay")
	}
}

func percent(x float64) string { return strconv.Itoa(int(math.Round(100 * (x - 1)))) }

func BenchmarkDraw(b *testing.B) {
	n := power.Of(&sched.NodeSpec{GPUs: 8, IdleW: power.FittedIdleW,
		Curve: sched.PowerCurve{Scale: power.FittedScaleW, Exponent: power.FittedExponent}})
	tenants := []power.Tenant{{GPUs: 8, Own: 4, Use: .5, Cap: 1}, {GPUs: 8, Own: 4, Use: .3, Cap: .8}}
	var parts []sched.Watts
	b.ReportAllocs()
	for b.Loop() {
		parts, _ = n.Draw(.8, tenants, 0, parts[:0])
	}
}
