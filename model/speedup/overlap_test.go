package speedup

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Reference: specification of BOA, 3.5.
func TestOverlap(t *testing.T) {
	o := Overlap{ComputeFixed: 1, ComputePerSample: .5, NetFixed: 4, NetPerGPU: .25, LocalFixed: 2, LocalPerGPU: .125,
		Gamma: 2}
	for _, c := range []struct {
		gpus, nodes, perGPU, accum int
		want                       float64
	}{
		{1, 1, 4, 1, 3}, {1, 1, 4, 3, 9}, {2, 1, 4, 1, math.Sqrt(9 + 4)}, {4, 1, 4, 2, 3 + math.Sqrt(9+2.25*2.25)},
		{2, 2, 4, 1, 5}, {10, 3, 4, 1, math.Sqrt(9 + 36)},
	} {
		if got := o.Update(c.gpus, c.nodes, c.perGPU, c.accum); !near(got, c.want) {
			t.Errorf("%+v: %v", c, got)
		}
		if c.accum == 1 {
			if got := o.logStep(o.compute(float64(c.perGPU)), c.gpus, c.nodes); !near(got, math.Log(c.want)) {
				t.Errorf("%+v: logarithm %v", c, got)
			}
		}
	}
	if o.Gamma = 1; !near(o.Update(2, 2, 4, 1), 7) {
		t.Error("with gamma 1 times do not add up")
	}
	huge := Overlap{ComputeFixed: 1e200, NetFixed: 1e200, Gamma: 10}
	if got := huge.Update(2, 2, 1, 1); !near(got/1e200, math.Pow(2, .1)) {
		t.Errorf("large times overflow: %v", got)
	}
}

// timingsOf are steps that the model takes on nodes of 4 GPUs.
func timingsOf(o Overlap, gpus, perGPU []int) []Timing {
	var list []Timing
	for _, k := range gpus {
		for _, m := range perGPU {
			n := ceilDiv(k, 4)
			list = append(list, Timing{k, n, m, o.Update(k, n, m, 1), o.compute(float64(m))})
		}
	}
	return list
}

// Ensure that the fit predicts within 1 % what made the steps that it was given, also on widths that were not among
// them; and that it finds the parameters where nothing overlaps, so that they can be distinguished.
func TestFitRecovers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 12 {
		o := Overlap{
			ComputeFixed: math.Exp(-5 + 4*r.Float64()), ComputePerSample: math.Exp(-8 + 3*r.Float64()),
			NetFixed: math.Exp(-3 + 3*r.Float64()), LocalFixed: math.Exp(-5 + 3*r.Float64()), Gamma: 1 + 3*r.Float64(),
		}
		o.NetPerGPU, o.LocalPerGPU = o.NetFixed*.1*r.Float64(), o.LocalFixed*.1*r.Float64()
		if i%2 == 0 {
			o.Gamma = 1
		}
		got := FitOverlap(timingsOf(o, []int{1, 2, 3, 4, 8, 16}, []int{8, 32, 128}))
		for _, x := range timingsOf(o, []int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32}, []int{8, 20, 64, 128}) {
			if off := math.Abs(got.Update(x.GPUs, x.Nodes, x.PerGPU, 1)/x.Step - 1); off > .01 {
				t.Errorf("case %d: %d GPUs of %d samples are off by %.4f", i, x.GPUs, x.PerGPU, off)
			}
		}
		if i%2 == 0 && !(closeTo(got.ComputeFixed, o.ComputeFixed) &&
			closeTo(got.ComputePerSample, o.ComputePerSample) &&
			closeTo(got.NetFixed, o.NetFixed) && closeTo(got.LocalFixed, o.LocalFixed) && got.Gamma < 1.1) {
			t.Errorf("case %d: %+v, want %+v", i, got, o)
		}
	}
}

func closeTo(got, want float64) bool { return math.Abs(got/want-1) < .05 }

// Ensure that what was not observed is as the priors say.
//
// Reference: specification of BOA, 3.5.
func TestFitPriors(t *testing.T) {
	o := Overlap{.05, .002, .3, .01, .05, .002, 1.5}
	one := FitOverlap(timingsOf(o, []int{1}, []int{16}))
	if want := o.compute(16) / 2; !near(one.ComputeFixed, want) || !closeTo(one.compute(16), o.compute(16)) {
		t.Errorf("a single point: %+v, want half of its %v fixed", one, o.compute(16))
	}
	if one.LocalFixed != floor || one.LocalPerGPU != floor || !near(one.NetFixed/floor, 1.1) ||
		!near(one.NetPerGPU/floor, 1.1) {
		t.Errorf("a single GPU: %+v, want synchronisation at the floor", one)
	}
	two := FitOverlap(timingsOf(o, []int{1, 2}, []int{16, 32}))
	if two.LocalPerGPU != floor || !near(two.NetPerGPU/floor, 1.1) || !near(two.NetFixed/two.LocalFixed, 1.1) ||
		two.LocalFixed < 1e-3 {
		t.Errorf("up to 2 GPUs on a node: %+v, want nothing per GPU and a network as 1.1 times the node", two)
	}
	node := FitOverlap(timingsOf(o, []int{1, 2, 3, 4}, []int{16, 32}))
	if node.LocalPerGPU <= floor || !near(node.NetPerGPU/node.LocalPerGPU, 1.1) ||
		!near(node.NetFixed/node.LocalFixed, 1.1) {
		t.Errorf("one node: %+v, want a network as 1.1 times the node", node)
	}
	far := FitOverlap(timingsOf(o, []int{8, 16}, []int{16, 32}))
	if far.LocalFixed != floor || far.LocalPerGPU != floor || far.NetFixed < 1e-2 {
		t.Errorf("several nodes alone: %+v, want a node at the floor", far)
	}
	// Compute times are not needed.
	steps := timingsOf(o, []int{1, 2, 3, 4, 8, 16}, []int{8, 32, 128})
	for i := range steps {
		steps[i].Compute = 0
	}
	got := FitOverlap(steps)
	for _, x := range steps {
		if off := math.Abs(got.Update(x.GPUs, x.Nodes, x.PerGPU, 1)/x.Step - 1); off > .01 {
			t.Errorf("without compute times: %+v is off by %.4f", x, off)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a fit without timings")
		}
	}()
	FitOverlap(nil)
}

// Ensure that a fit to the published profiles comes close, from steps on few GPUs and on many.
func TestFitProfiles(t *testing.T) {
	for name, p := range t4Profiles(t) {
		var list []Timing
		least, most := p.Steps.PerGPU()
		for _, k := range []int{1, 2, 3, 4, 8, 12, 16} {
			for m := least; m <= most && m*k <= p.Limits.Max; m *= 2 {
				step, sync, ok := p.Steps.At(k, ceilDiv(k, 4), m)
				if !ok {
					t.Fatalf("%s: %d GPUs of %d samples: no step", name, k, m)
				}
				list = append(list, Timing{k, ceilDiv(k, 4), m, step, step - sync})
			}
		}
		o := FitOverlap(list)
		sum := 0.0
		for _, x := range list {
			sum += math.Abs(math.Log(o.Update(x.GPUs, x.Nodes, x.PerGPU, 1) / x.Step))
		}
		mean := sum / float64(len(list))
		t.Logf("%s: mean log error of a step %.3f, gamma %.2f", name, mean, o.Gamma)
		if mean > .12 {
			t.Errorf("%s: mean log error of a step %.3f, want < 0.12", name, mean)
		}
	}
}

func TestMinimise(t *testing.T) {
	rosenbrock := func(x []float64) float64 {
		return 100*(x[1]-x[0]*x[0])*(x[1]-x[0]*x[0]) + (1-x[0])*(1-x[0])
	}
	if x := minimise(rosenbrock, []float64{-1.2, 1}, fitRounds); math.Abs(x[0]-1) > 1e-2 || math.Abs(x[1]-1) > 1e-2 {
		t.Errorf("minimum of Rosenbrock's valley at %v, want 1, 1", x)
	}
	kink := func(x []float64) float64 { return math.Abs(x[0]-3) + math.Abs(x[1]) + 5 }
	if x := minimise(kink, []float64{10, 10}, fitRounds); kink(x) > 5.001 {
		t.Errorf("minimum of a kink at %v, want 3, 0", x)
	}
	if x := minimise(func([]float64) float64 { return 1 }, nil, fitRounds); len(x) != 0 {
		t.Errorf("minimum %v in no dimension", x)
	}
	if x := minimise(func([]float64) float64 { return math.NaN() }, []float64{1}, fitRounds); len(x) != 1 {
		t.Errorf("minimum %v of nothing", x)
	}
}

func BenchmarkFitOverlap(b *testing.B) {
	timings := timingsOf(Overlap{.05, .002, .3, .01, .05, .002, 1.8}, []int{1, 2, 3, 4, 8, 16}, []int{8, 32, 128})
	b.ReportAllocs()
	for b.Loop() {
		FitOverlap(timings)
	}
}

// Ensure that a fit from an earlier one is as good as one from nothing, or nearly, when more has been observed.
func TestRefit(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	for range 20 {
		truth := Overlap{r.Float64() / 10, r.Float64() / 100, r.Float64(), r.Float64() / 50, r.Float64() / 10,
			r.Float64() / 100, 1 + 3*r.Float64()}
		var o Overlap
		for i, gpus := range [][]int{{1}, {1, 2}, {1, 2, 4}, {1, 2, 4, 8}, {1, 2, 3, 4, 8, 16}} {
			timings := timingsOf(truth, gpus, []int{32, 64})
			if i == 0 {
				o = FitOverlap(timings)
			} else {
				o = o.refit(timings)
			}
		}
		timings := timingsOf(truth, []int{1, 2, 3, 4, 8, 16}, []int{32, 64})
		f := newFit(timings)
		if got, want := f.loss(o.params()), f.loss(FitOverlap(timings).params()); got > want+.05 {
			t.Errorf("%+v: loss %.4f, from nothing %.4f", truth, got, want)
		}
	}
}

func BenchmarkRefit(b *testing.B) {
	timings := timingsOf(Overlap{.05, .002, .3, .01, .05, .002, 1.8}, []int{1, 2, 3, 4, 8, 16}, []int{8, 32, 128})
	o := FitOverlap(timings)
	b.ReportAllocs()
	for b.Loop() {
		o.refit(timings)
	}
}
