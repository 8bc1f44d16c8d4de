package allocate

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/model/elastic"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
)

// app takes 10 ms and 1 ms per sample on each GPU for an update, which is worth less the larger it is; 16 samples fit
// on a GPU, and more are accumulated.
var app = &speedup.Trainer{Name: "app", Time: speedup.Additive{Process: speedup.Affine{Fixed: .010, PerSample: .001},
	Reduce: speedup.Ring{Bytes: 50e6, Bandwidth: 100e9, Latency: 10e-6, Network: 12.5e9, NetworkLatency: 30e-6}},
	Worth: worth{}, Limits: speedup.Limits{Start: 32, Max: 512, MinPerGPU: 1, MaxPerGPU: 16, Accumulate: true,
		List: []int{32, 64, 128, 256, 512}}}

// worth is by a noise scale of 500 samples.
type worth struct{}

func (worth) Sizes() []float64          { return []float64{1e6} }
func (worth) Gain(_, batch int) float64 { return float64(batch) * 532 / (float64(batch) + 500) }
func restarts(seconds float64) func(string) time.Duration {
	return func(string) time.Duration { return sched.Seconds(seconds) }
}

// oneJob is a cluster of 8 GPUs and a job of app that asks for one GPU, or more, and holds some.
func oneJob(gpus sched.Range, held int) *sched.View {
	v := &sched.View{Nodes: []sched.Node{{Spec: sched.NodeSpec{GPUs: 8}}}, GPUs: make([]sched.GPU, 8)}
	v.Jobs = []sched.Job{{Spec: &sched.JobSpec{Model: "app", GPUs: gpus}}}
	for g := range held {
		v.Jobs[0].Target = append(v.Jobs[0].Target, sched.GPUID(g))
	}
	return v
}

func oracle() *speedup.Oracle {
	return speedup.NewOracle(map[string]speedup.App{"app": app}, 8, 8)
}

// Ensure that a job of which nothing is known is rigid, as fast as its GPUs are many, that bounds are those that it
// says, and k_max never below its own least.
func TestClaimBounds(t *testing.T) {
	for _, c := range []struct {
		name     string
		source   speedup.Source
		gpus     sched.Range
		most     int32
		min, max int
	}{
		{"unknown: what it asks for", curves{nil}, sched.Range{Min: 1, Want: 3, Max: 8}, 0, 3, 3},
		{"known", oracle(), sched.Range{Min: 2, Want: 3, Max: 6}, 0, 2, 6},
		{"k_max", oracle(), sched.Range{Min: 2, Want: 3, Max: 6}, 4, 2, 4},
		{"k_max below its least", oracle(), sched.Range{Min: 2, Want: 3, Max: 6}, 1, 2, 2},
	} {
		r := &Rates{Curves: c.source, Most: c.most}
		claim := r.claim(oneJob(c.gpus, 0), 0)
		if claim.Min != c.min || claim.Max != c.max || claim.Move != 1 || claim.Held != 0 || claim.Left != 0 {
			t.Errorf("%s: %+v, want %d..%d", c.name, claim, c.min, c.max)
		}
	}
	r := &Rates{Curves: curves{nil}}
	if c := r.claim(oneJob(sched.Rigid(3), 0), 0); !slices.Equal(c.S, []float64{0, 0, 0, 3}) {
		t.Errorf("rigid factors %v", c.S)
	}
	c := r.claim(oneJob(sched.Rigid(math.MaxInt32), 0), 0)
	if _, ok := c.Least(); ok || c.S != nil {
		t.Errorf("a job of more GPUs than there can be may have %d, %d factors", c.Min, len(c.S))
	}
}

// Ensure that factors are those of goodput at the best batch size, over one GPU.
func TestClaimFactors(t *testing.T) {
	r := &Rates{Curves: oracle()}
	c := r.claim(oneJob(sched.Range{Min: 1, Want: 1, Max: 8}, 0), 0)
	for k := 1; k <= 8; k++ {
		best := 0.0
		for _, b := range app.Limits.List {
			best = max(best, app.Speed(0, speedup.Way{GPUs: k, Nodes: 1, Batch: b}))
		}
		_, one := app.Best(0, 1, 1, sched.BatchRange{})
		if math.Abs(c.S[k]-best/one) > 1e-12 {
			t.Errorf("%d GPUs: %v, want %v", k, c.S[k], best/one)
		}
	}
}

// Ensure that another width counts for what a restart leaves of the horizon, however long it takes, and that left-over
// work is in time on one GPU.
func TestClaimRestartAndWork(t *testing.T) {
	v := oneJob(sched.Range{Min: 1, Want: 2, Max: 8}, 4)
	r := &Rates{Curves: oracle(), Horizon: 100 * time.Second, Restart: restarts(25), Work: hour{}}
	v.Jobs[0].Config = configOf(r.curve(v, 0), 4)
	c := r.claim(v, 0)
	if c.Move != .75 || c.Held != 4 || c.Stay != c.S[4] || c.Left != 3600*c.S[2] {
		t.Errorf("%+v, want .75 of other widths, %v where it is, %v s left", c, c.S[4], 3600*c.S[2])
	}
	if r.Restart = restarts(1000); r.claim(v, 0).Move != leastMove {
		t.Errorf("a restart longer than the horizon leaves %v", r.claim(v, 0).Move)
	}
	v.Jobs[0].Batch, v.Jobs[0].Accum = 32, 0 // it runs with the smallest batch size: what it does now is less
	w, _ := app.Best(0, 4, 1, sched.BatchRange{})
	if w.Batch == 32 {
		t.Fatal("32 is best: nothing to see")
	}
	want := c.S[4] * app.Speed(0, speedup.Way{GPUs: 4, Nodes: 1, Batch: 32}) / app.Speed(0, w)
	if got := r.claim(v, 0).Stay; math.Abs(got-want) > 1e-12 {
		t.Errorf("at another batch size it is %v, want %v", got, want)
	}
}

type hour struct{}

func (hour) Remaining(*sched.View, sched.JobID) time.Duration { return time.Hour }

// Ensure that a target carries batch size, micro-batches and the factor on the learning rate, by each rule.
func TestConfig(t *testing.T) {
	v := oneJob(sched.Range{Min: 1, Want: 1, Max: 8}, 0)
	for rule, of := range map[LRRule]func(batch int) float64{
		LRNone:   func(int) float64 { return 0 },
		LRLinear: func(b int) float64 { return float64(b) / 32 },
		LRSqrt:   func(b int) float64 { return math.Sqrt(float64(b) / 32) },
		LRAdaScale: func(b int) float64 {
			return worth{}.Gain(0, b) / worth{}.Gain(0, 32)
		},
	} {
		r := &Rates{Curves: oracle(), LR: rule}
		c := r.claim(v, 0)
		accumulates := false
		for k := 1; k <= 8; k++ {
			w, _ := app.Best(0, k, 1, sched.BatchRange{})
			got := r.config(v, &c, k)
			if int(got.Batch) != w.Batch || max(int(got.Accum), 1) != max(w.Accum, 1) ||
				math.Abs(float64(got.LRScale)-of(w.Batch)) > 1e-6 {
				t.Errorf("rule %d, %d GPUs: %+v, want %+v and %v", rule, k, got, w, of(w.Batch))
			}
			accumulates = accumulates || got.Accum > 1
		}
		if !accumulates {
			t.Error("nothing is accumulated: nothing to see")
		}
	}
}

// Ensure that who keeps its width keeps how it runs, unless another batch size is worth a restart within the horizon.
func TestConfigIsKept(t *testing.T) {
	v := oneJob(sched.Range{Min: 1, Want: 1, Max: 8}, 4)
	had := sched.Config{Batch: 64, LRScale: 3, Cap: 150}
	v.Jobs[0].Config = had
	best, _ := app.Best(0, 4, 1, sched.BatchRange{})
	for _, c := range []struct {
		horizon, restart float64
		batch            int
	}{{0, 0, best.Batch}, {1e6, 1, best.Batch}, {100, 99, 64}} {
		r := &Rates{Curves: oracle(), Horizon: sched.Seconds(c.horizon), Restart: restarts(c.restart), LR: LRLinear}
		claim := r.claim(v, 0)
		got := r.config(v, &claim, 4)
		if int(got.Batch) != c.batch || c.batch == 64 && got != had {
			t.Errorf("horizon %v, restart %v: %+v, want batch %d, and %+v if that is kept", c.horizon, c.restart, got,
				c.batch, had)
		}
	}
}

// Ensure that fixed batch sizes are those of their rules at all widths, and that one per GPU grows with them up to the
// largest.
func TestFixedBatches(t *testing.T) {
	v := oneJob(sched.Range{Min: 1, Want: 1, Max: 8}, 0)
	one, _ := app.Best(0, 1, 1, sched.BatchRange{})
	for rule, want := range map[elastic.BatchRule]func(k int) int{
		elastic.BatchMin:  func(int) int { return 32 },
		elastic.BatchMax:  func(int) int { return 512 },
		elastic.BatchBest: func(int) int { return one.Batch },
		// the next on the list below 32 k
		elastic.BatchPerGPU: func(k int) int { return []int{32, 64, 64, 128, 128, 128, 128, 256}[k-1] },
	} {
		r := &Rates{Curves: oracle(), Batch: &rule}
		c := r.claim(v, 0)
		for k := 1; k <= 8; k++ {
			if got := r.config(v, &c, k).Batch; int(got) != want(k) {
				t.Errorf("rule %d, %d GPUs: %d, want %d", rule, k, got, want(k))
			}
		}
	}
}

// Ensure that what is left of a job is counted on one GPU by the width that its work is counted in, whatever its user
// wants since.
func TestLeftOfAChangedJob(t *testing.T) {
	r := Rates{Curves: curves{nil}, Work: hour{}}
	v := oneJob(sched.Rigid(4), 0)
	if c := r.claim(v, 0); c.Left != 4*3600 {
		t.Errorf("%v s are left on one GPU, want 14400", c.Left)
	}
	v.Jobs[0].Asked, v.Jobs[0].Spec.GPUs = 4, sched.Rigid(2)
	if c := r.claim(v, 0); c.Left != 4*3600 {
		t.Errorf("changed: %v s are left on one GPU, want 14400", c.Left)
	}
}
