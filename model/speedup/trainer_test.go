package speedup

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/trainyard/trainyard/sched"
)

// elastic is the worked example of the specification of elastic scaling, times in milliseconds.
func elastic() *Trainer {
	return &Trainer{
		Name:   "example",
		Time:   Additive{Process: Affine{Fixed: 10, PerSample: 1}, Reduce: Ring{Bytes: 20, Bandwidth: 1}},
		Worth:  Samples{1e6},
		Limits: Limits{Start: 32, Max: 128, MinPerGPU: 1, MaxPerGPU: 64},
	}
}

// Reference: specification of elastic scaling, section 4, test 2.
func TestElasticThroughput(t *testing.T) {
	app := elastic()
	for _, c := range []struct {
		gpus, batch   int
		speed, factor float64
	}{
		{1, 64, .864865, 1}, {2, 128, 1.361702, 1.574468}, {3, 128, 1.606695, 1.857741}, {4, 128, 1.777778, 2.055556},
		{5, 128, 1.882353, 2.176471},
	} {
		_, one := app.Best(0, 1, 1, sched.BatchRange{})
		w, speed := app.Best(0, c.gpus, 1, sched.BatchRange{})
		if w.Batch != c.batch || math.Abs(speed-c.speed) > 5.1e-7 || math.Abs(speed/one-c.factor) > 5.1e-7 {
			t.Errorf("%d GPUs: %+v, %.6f, %.6f times one GPU, want batch %d, %v, %v", c.gpus, w, speed, speed/one,
				c.batch, c.speed, c.factor)
		}
	}
	small := sched.BatchRange{Min: 32, Max: 32}
	for i, want := range []float64{32. / 42, 32. / 46, 32 / (21 + 80./3), 32. / 48} {
		if _, speed := app.Best(0, i+1, 1, small); !near(speed, want) {
			t.Errorf("batch 32 on %d GPUs: %v, want %v", i+1, speed, want)
		}
	}
	for _, c := range []struct {
		limits sched.BatchRange
		kMin   int
	}{{sched.BatchRange{Min: 128, Max: 128}, 2}, {sched.BatchRange{PerGPU: 8}, 4},
		{sched.BatchRange{Min: 100, Max: 120, PerGPU: 20}, 5}} {
		for k := 1; k <= 8; k++ {
			if _, speed := app.Best(0, k, 1, c.limits); (speed > 0) != (k >= c.kMin) {
				t.Errorf("limits %+v on %d GPUs: %v, want it possible from %d on", c.limits, k, speed, c.kMin)
			}
		}
	}
	// Test 5 there: 256 samples of which 64 fit on a GPU.
	app.Limits = Limits{Start: 256, Max: 512, MinPerGPU: 1, MaxPerGPU: 64}
	for k := 1; k <= 5; k++ {
		if _, speed := app.Best(0, k, 1, sched.BatchRange{}); (speed > 0) != (k >= 4) {
			t.Errorf("at least 256 samples on %d GPUs: %v", k, speed)
		}
	}
}

// Ensure that contradicting limits leave no way instead of a wrong one.
func TestContradictingLimits(t *testing.T) {
	app := elastic()
	app.Limits.Accumulate = true
	for _, limits := range []sched.BatchRange{{Min: 64, Max: 16}, {Max: 31}, {Min: 129}, {Min: 1000, Max: 2000}} {
		if w, speed := app.Best(0, 2, 1, limits); speed != 0 || w != (Way{}) {
			t.Errorf("%+v: %+v with speed %v", limits, w, speed)
		}
	}
	app.Limits.MinPerGPU, app.Limits.MaxPerGPU = 16, 8
	for k := 1; k <= 4; k++ {
		if w, speed := app.Best(0, k, 1, sched.BatchRange{}); speed != 0 {
			t.Errorf("memory that fits no batch, %d GPUs: %+v with speed %v", k, w, speed)
		}
	}
	app = elastic()
	app.Limits.MaxGPUs = 2
	if _, speed := app.Best(0, 3, 1, sched.BatchRange{}); speed != 0 {
		t.Error("a speed beyond the widths offered")
	}
	for _, w := range [][2]int{{0, 0}, {1, 0}, {1, 2}} {
		if _, speed := app.Best(0, w[0], w[1], sched.BatchRange{}); speed != 0 {
			t.Errorf("a speed on %d GPUs of %d nodes", w[0], w[1])
		}
	}
}

// Ensure that limits that no reader gives break nothing.
func TestWrongLimits(t *testing.T) {
	for _, change := range []func(*Limits){
		func(l *Limits) { l.Start = 0 },
		func(l *Limits) { l.Max = 31 },
		func(l *Limits) { l.MaxPerGPU = 0 },
		func(l *Limits) { l.MinPerGPU = 0 },
		func(l *Limits) { l.Probe = true },
		func(l *Limits) { l.MaxGPUs = -1 },
		func(l *Limits) { l.List = []int{2, 1} },
	} {
		app := elastic()
		app.Limits = Limits{Start: 32, Max: 128, MinPerGPU: 1, MaxPerGPU: 64, Accumulate: true}
		change(&app.Limits)
		checkApp(t, app)
	}
}

// randomApps are applications of every kind.
func randomApps(r *rand.Rand) []App {
	least := 1 + r.IntN(8)
	limits := Limits{Start: least * (1 + r.IntN(16)), MinPerGPU: least, MaxPerGPU: least * (1 + r.IntN(16)),
		Accumulate: r.IntN(2) == 0, Probe: r.IntN(2) == 0, Even: r.IntN(2) == 0}
	limits.Max = limits.Start * (1 + r.IntN(64))
	if r.IntN(4) == 0 {
		limits.List = []int{limits.Start, limits.Start + 7, limits.Max + 8}
	}
	overlap := Overlap{r.Float64(), r.Float64() / 100, r.Float64(), r.Float64() / 100, r.Float64(), r.Float64() / 100,
		1 + 9*r.Float64()}
	noise := &Validation{batches: []int{limits.Start, limits.Start * 4}, sizes: []float64{5, 7},
		sqr: [][]float64{{1, r.Float64()}, {.1, r.Float64()}}, vari: [][]float64{{r.Float64(), 4}, {1, 2}}}
	epochs := &Epochs{Batches: []int{1, 64, 4096}, Epochs: []float64{3, 2, 5 * float64(r.IntN(2))}, Samples: 1000}
	return []App{
		&Trainer{Time: overlap, Worth: noise, Limits: limits}, &Trainer{Time: overlap, Worth: epochs, Limits: limits},
		&Trainer{Time: Additive{Process: Affine{.1, .01}, Reduce: Ring{1, 10, .01, 5, .02}}, Worth: Samples{10},
			Limits: limits},
		&Trainer{Time: Additive{Process: Measured{[]int{1, 4, 64}, []float64{1, 2, 9}},
			Reduce: ReduceTable{[]int{2, 8}, []float64{1, 2}}}, Worth: noise, Limits: limits},
		Stages{{100, Amdahl{r.Float64()}}, {50, Power{r.Float64()}}, {1, Proportional{}}},
	}
}

func TestApps(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 60 {
		for _, app := range randomApps(r) {
			checkApp(t, app)
		}
	}
	checkApp(t, toyProfile(t))
}

// Ensure that no batch size that Best tries is faster than what it returns, and that this keeps within limits.
func TestBestIsBest(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 300 {
		apps := randomApps(r)
		app := apps[r.IntN(4)].(*Trainer)
		limits := sched.BatchRange{}
		if r.IntN(2) == 0 {
			limits.Min = int32(app.Limits.Start + r.IntN(8))
			limits.Max = limits.Min + int32(r.IntN(4*app.Limits.Start))
		}
		gpus := 1 + r.IntN(8)
		w, speed := app.Best(0, gpus, ceilDiv(gpus, 4), limits)
		if speed > 0 && (w.Batch < int(limits.Min) || limits.Max > 0 && w.Batch > int(limits.Max) ||
			w.Batch > app.Limits.Max && app.Limits.List == nil) {
			t.Fatalf("%+v leaves the limits %+v, %+v", w, limits, app.Limits)
		}
		low, high := app.Limits.bounds(gpus, limits)
		for i := range BatchPoints {
			b := int(math.Ceil(float64(low)*math.Pow(float64(high)/float64(low), float64(i)/(BatchPoints-1)) - 1e-8))
			if app.Limits.List != nil {
				b = app.Limits.List[i%len(app.Limits.List)]
			}
			if b < low || b > high {
				continue
			}
			if s := app.Speed(0, Way{GPUs: gpus, Nodes: ceilDiv(gpus, 4), Batch: b}); s > speed*(1+1e-12) {
				t.Fatalf("batch %d: %v, but the best is %+v with %v", b, s, w, speed)
			}
		}
	}
}

// Reference: specification of elastic scaling, section 4, test 13: widening the range never lowers throughput, nor
// raises the least width.
func TestWideningHelps(t *testing.T) {
	app := elastic()
	app.Limits.List = []int{32, 40, 48, 64, 96, 128}
	r := rand.New(rand.NewPCG(11, 12))
	for range 500 {
		low, high := int32(20+r.IntN(80)), int32(60+r.IntN(80))
		narrow := sched.BatchRange{Min: low, Max: max(low, high)}
		wide := sched.BatchRange{Min: low - int32(r.IntN(20)), Max: narrow.Max + int32(r.IntN(20))}
		for k := 1; k <= 6; k++ {
			_, a := app.Best(0, k, 1, narrow)
			_, b := app.Best(0, k, 1, wide)
			if b < a {
				t.Fatalf("%+v: %v, but %+v: %v", narrow, a, wide, b)
			}
		}
	}
}

// Ensure that gain, efficiency and noise scale are one law, and that the factors on the learning rate are in order.
//
// Reference: specification of BOA, 3.5; specification of elastic scaling, section 7.
func TestStatistics(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for range 1000 {
		sqr, variance, m0 := r.ExpFloat64()+1e-3, r.ExpFloat64(), 1+r.IntN(512)
		m := m0 + r.IntN(1<<14)
		scale := float64(m) / float64(m0)
		gain := Gain(sqr, variance, scale)
		phi := float64(m0) * variance / sqr // the noise scale
		if want := scale * (phi + float64(m0)) / (phi + float64(m)); math.Abs(gain/want-1) > 1e-12 {
			t.Fatalf("gain %v, but by efficiency %v", gain, want)
		}
		ada := AdaScaleLR(m, m0, sqr, variance)
		if ada != gain || ada < 1 || ada > LinearLR(m, m0)*(1+1e-12) || ada > (1+variance/sqr)*(1+1e-12) {
			t.Fatalf("AdaScale %v, want 1 to %v", ada, LinearLR(m, m0))
		}
	}
	if LinearLR(256, 64) != 4 || SquareRootLR(256, 64) != 2 || AdaScaleLR(64, 64, 1, 5) != 1 ||
		AdaScaleLR(128, 64, 1, 3) != 1.6 {
		t.Error("factors on the learning rate differ from 4, 2, 1 and 1.6")
	}
	if Gain(0, 1, 8) != 8 || Gain(1, 0, 8) != 1 {
		t.Error("all noise is worth the whole batch, no noise nothing")
	}
}

func TestEpochs(t *testing.T) {
	e := &Epochs{Batches: []int{32, 64, 128, 256}, Epochs: []float64{4, 2, 3, 0}, Samples: 1000}
	for _, c := range []struct {
		batch  int
		epochs float64
		gain   float64
	}{{32, 4, 16}, {48, 3, 32}, {64, 2, 64}, {96, 2.5, 76.8}, {128, 3, 256. / 3}, {200, 0, 0}, {256, 0, 0}, {16, 0, 0},
		{512, 0, 0}} {
		if e.To(c.batch) != c.epochs || !near(e.Gain(0, c.batch), c.gain) {
			t.Errorf("batch %d: %v epochs, gain %v, want %v, %v", c.batch, e.To(c.batch), e.Gain(0, c.batch), c.epochs,
				c.gain)
		}
	}
	if s := e.Sizes(); len(s) != 1 || s[0] != 2000 {
		t.Errorf("sizes %v, want 2000", s)
	}
	for _, samples := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := EpochsTo(nil, "d", "n", 1, samples); err == nil {
			t.Errorf("%v samples in an epoch were taken", samples)
		}
	}
}
