package order_test

import (
	"math"
	"testing"
	"time"

	"github.com/trainyard/trainyard/model/dist"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/order"
)

// sizes is an oracle: the work of each job.
type sizes []time.Duration

func (s sizes) Remaining(v *sched.View, j sched.JobID) time.Duration {
	return s[j] - v.Jobs[j].WorkNow(v.Now)
}

// running is a job of 2 GPUs that has attained 8 GPU-seconds in 4 s by now, at half speed.
func running() *sched.View {
	return &sched.View{Now: 10e9,
		Jobs: []sched.Job{{Spec: &sched.JobSpec{GPUs: sched.Rigid(2), Priority: 3}, State: sched.Active,
			Attempt: sched.Running, Up: true,
			GPUs: []sched.GPUID{0, 1}, Service: 8, Run: 4 * time.Second, Settled: 10e9, Work: 2 * time.Second,
			WorkFrom: 10e9, Rate: 0.5}}}
}

// Ensure that each order ranks a running job by what it says, and says how that grows.
func TestKeys(t *testing.T) {
	work := sizes{12 * time.Second}
	for name, c := range map[string]struct {
		o    sched.Orderer
		want sched.Key
	}{
		"fifo":      {order.FIFO{}, sched.Key{Level: -3}},
		"sjf":       {order.SJF{Work: work}, sched.Key{Value: 12}},
		"srtf":      {order.SRTF{Work: work}, sched.Key{Value: 10, Slope: -0.5}},
		"srsf":      {order.SRSF{Work: work}, sched.Key{Value: 20, Slope: -1}},
		"fewest":    {order.FewestGPUs{}, sched.Key{Value: 2}},
		"las":       {order.LAS{}, sched.Key{Value: 8, Slope: 2}},
		"las, by s": {order.LAS{Seconds: true}, sched.Key{Value: 4, Slope: 1}},
	} {
		if got, until := c.o.Key(running(), 0); got != c.want || until != sched.Never {
			t.Errorf("%s: %+v until %v, want %+v", name, got, until, c.want)
		}
	}
	v := running()
	v.Jobs[0].Asked = 4 // and its user wants two since
	if k, _ := (order.SRSF{Work: work}).Key(v, 0); k != (sched.Key{Value: 40, Slope: -2}) {
		t.Errorf("of a changed job: %+v, want its 10 s of work on four GPUs", k)
	}
	v = running()
	v.Jobs[0].WorkFrom = 15e9
	if k, until := (order.SRTF{Work: work}).Key(v, 0); k.Slope != 0 || until != 15e9 {
		t.Errorf("restarting: %+v until %v, want it to stand still until 15 s", k, until)
	}
}

// fading is sizes that hold for a minute.
type fading struct{ sizes }

func (fading) Until(v *sched.View, _ sched.JobID) sched.Time { return v.Now.Add(time.Minute) }

// Ensure that orders by remaining work ask again when their estimator says so, while the job works.
func TestKeysFade(t *testing.T) {
	o := order.SRTF{Work: fading{sizes{12 * time.Second}}}
	v := running()
	if k, until := o.Key(v, 0); k != (sched.Key{Value: 10, Slope: -0.5}) || until != 70e9 {
		t.Errorf("%+v until %v, want it asked again after a minute", k, until)
	}
	v.Jobs[0].Attempt = sched.Ended
	if _, until := o.Key(v, 0); until != sched.Never {
		t.Errorf("a waiting job is asked again at %v", until)
	}
}

func mlfq(t *testing.T, limits []float64, knob float64) *order.MLFQ {
	t.Helper()
	o, err := order.NewMLFQ(limits, false, knob, nil)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Ensure that a job is demoted at the very nanosecond its service reaches the limit, and not before.
func TestDemotion(t *testing.T) {
	o, v := mlfq(t, []float64{20, 40}, 0), running()
	o.Took(v, 0)
	if k, until := o.Key(v, 0); k.Level != 0 || until != 16e9 { // 12 GPU-seconds more on 2 GPUs
		t.Fatalf("level %d until %v, want 0 until 16 s", k.Level, until)
	}
	if v.Now = 16e9 - 1; len(o.Notes()) != 0 {
		t.Fatal("noted too early")
	}
	if k, until := o.Key(v, 0); k.Level != 0 || until != 16e9 {
		t.Fatalf("level %d until %v a nanosecond before", k.Level, until)
	}
	v.Now = 16e9
	if k, until := o.Key(v, 0); k.Level != 3 || until != 26e9 { // behind those that hold in queue 1
		t.Fatalf("level %d until %v, want 3 until 26 s", k.Level, until)
	}
	if a := o.Astray(); len(a) != 1 {
		t.Fatalf("astray %v, want the demoted job", a)
	}
	if o.Took(v, 0); len(o.Notes()) != 1 {
		t.Fatal("one demotion is to be noted")
	}
	if k, _ := o.Key(v, 0); k.Level != 2 {
		t.Fatalf("level %d, want 2 for one that holds on", k.Level)
	}
}

// Ensure that a job which lost its GPUs is demoted by the service it attains while it stops.
func TestDemotionWhileStopping(t *testing.T) {
	o, v := mlfq(t, []float64{20}, 0), running()
	o.Took(v, 0)
	o.Key(v, 0)
	v.Jobs[0].Attempt = sched.Stopping
	o.Lost(v, 0)
	if k, until := o.Key(v, 0); k.Level != 1 || until != 16e9 {
		t.Fatalf("level %d until %v, want 1 until 16 s", k.Level, until)
	}
	v.Now = 16e9
	if k, _ := o.Key(v, 0); k.Level != 3 {
		t.Fatalf("level %d, want 3", k.Level)
	}
}

// Ensure that a job is promoted when it has waited knob times as long as it ran, and its service starts again.
func TestPromotion(t *testing.T) {
	o, v := mlfq(t, []float64{5}, 2), running()
	j := &v.Jobs[0]
	o.Took(v, 0)
	o.Key(v, 0)
	o.Lost(v, 0)
	j.Up, j.Attempt, j.State = false, sched.Ended, sched.Waiting
	if k, until := o.Key(v, 0); k.Level != 3 || until != 18e9 { // ran 4 s
		t.Fatalf("level %d until %v, want 3 until 18 s", k.Level, until)
	}
	v.Now = 18e9
	if k, until := o.Key(v, 0); k.Level != 1 || until != sched.Never {
		t.Fatalf("level %d until %v, want 1 for ever", k.Level, until)
	}
	notes := o.Notes()
	if n := notes[len(notes)-1].Why; n.Code != sched.WhyPromoted || n.A != 8 || n.B != 4 {
		t.Fatalf("noted %+v, want a promotion after 8 s for 4 s", n)
	}
}

// Ensure that limits which do not rise, and a knob that is not a number, are refused.
func TestWrongQueues(t *testing.T) {
	for _, c := range []struct {
		limits []float64
		knob   float64
	}{{[]float64{5, 5}, 0}, {[]float64{0}, 0}, {[]float64{math.Inf(1)}, 0}, {nil, -1}, {nil, math.NaN()}} {
		if _, err := order.NewMLFQ(c.limits, false, c.knob, nil); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

// Ensure that memory comes back as it was saved, and memory that is cut short or foreign is refused.
func TestMemory(t *testing.T) {
	a, b, v := mlfq(t, []float64{5}, 2), mlfq(t, []float64{5}, 2), running()
	a.Took(v, 0)
	a.Key(v, 0)
	job, rest := a.SaveJob(0, nil), a.SaveRest(nil)
	if err := b.LoadJob(0, job); err != nil {
		t.Fatal(err)
	}
	if err := b.LoadRest(rest); err != nil {
		t.Fatal(err)
	}
	x, _ := a.Key(v, 0)
	if y, _ := b.Key(v, 0); x != y {
		t.Errorf("%+v after loading, want %+v", y, x)
	}
	for n := 1; n < len(job); n++ {
		if mlfq(t, []float64{5}, 2).LoadJob(0, job[:n]) == nil {
			t.Errorf("%d of %d bytes are accepted", n, len(job))
		}
	}
	if mlfq(t, nil, 2).LoadJob(0, job) == nil {
		t.Error("a queue that does not exist is accepted")
	}
	if b.LoadRest(nil) == nil {
		t.Error("no memory is accepted")
	}
}

// Ensure that a larger Gittins index comes first, that it is asked again at the next edge, and that nothing known ranks
// all alike.
func TestGittins(t *testing.T) {
	sample, err := dist.NewEmpirical([]float64{10, 10, 100})
	if err != nil {
		t.Fatal(err)
	}
	o, err := order.NewMLFQ(nil, false, 0, order.NewGittinsIndex(sample, nil, 0))
	if err != nil {
		t.Fatal(err)
	}
	v := running()
	o.Took(v, 0)
	near, until := o.Key(v, 0)
	if until <= v.Now || until > 11e9 {
		t.Errorf("holds until %v, want it asked again when 10 GPU-seconds are attained", until)
	}
	v.Jobs[0].Service = 50
	if far, _ := o.Key(v, 0); near.Value >= far.Value {
		t.Errorf("near its end %v, far from it %v: the larger index comes first", near.Value, far.Value)
	}
	if i, edge := order.NewGittinsIndex(nil, nil, 0).At(5, 0); i != 0 || !math.IsInf(edge, 1) {
		t.Errorf("index %v until %v with nothing known", i, edge)
	}
}
