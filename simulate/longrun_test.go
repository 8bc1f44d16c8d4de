package simulate

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/model/price"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// ownRun needs no data: two applications that scale as Amdahl's law says, one well.
func ownRun() *LongRun {
	m := &LongRun{PerNode: 4, Boot: 120, Hours: 60, WarmUp: 20, Restart: "60", Rate: 6,
		Apps: map[string]speedup.App{"wide": AmdahlApp(.95, 2), "narrow": AmdahlApp(.7, 1)}}
	for _, model := range []string{"wide", "narrow"} {
		m.Draw = append(m.Draw, sched.JobSpec{Model: model, GPUs: sched.Range{Min: 1, Want: 4, Max: 64}})
	}
	return m
}

// rentable is a cluster of which all is rented, at once.
func rentable(perNode, nodes int) *cluster.Cluster {
	return &cluster.Cluster{Name: "rented", Types: []string{"gpu"}, Racks: []string{""}, Pools: []cluster.Pool{{
		PoolSpec: sched.PoolSpec{Name: "rented", GPUs: perNode, Max: int32(nodes)},
		Node:     sched.NodeSpec{GPUs: perNode}}}}
}

// byRoot is an application whose speed is the root of its GPUs, and takes an hour on one.
func byRoot(most int) speedup.App {
	t := &speedup.Throughputs{Batches: []int{1}, Worth: speedup.Samples{3600}, Rates: [][]float64{nil}}
	for k := 1; k <= most; k++ {
		t.GPUs, t.Rates[0] = append(t.GPUs, k), append(t.Rates[0], math.Sqrt(float64(k)))
	}
	return t
}

// occupancy is a Sink that measures how many jobs run, and the GPU-hours paid in windows of some hours.
type occupancy struct {
	window     float64
	now        float64
	jobs       float64
	sum, sum2  float64
	gpus, paid float64
	spend      []float64
}

func (o *occupancy) Log(v *sched.View, e *sched.Event) {
	for now := e.Time.Seconds() / 3600; o.now < now; {
		end := min(now, (math.Floor(o.now/o.window+1e-9)+1)*o.window)
		o.sum += o.jobs * (end - o.now)
		o.sum2 += o.jobs * o.jobs * (end - o.now)
		o.paid += o.gpus * (end - o.now)
		if end < now || math.Mod(end, o.window) == 0 {
			o.spend, o.paid = append(o.spend, o.paid), 0
		}
		o.now = end
	}
	switch e.Kind {
	case sched.AttemptStarted:
		o.jobs++
	case sched.AttemptEnded:
		o.jobs--
	}
	o.gpus = 0
	for i := range v.Pools {
		o.gpus += float64(v.Pools[i].Nodes) * float64(v.Pools[i].Spec.GPUs)
	}
}

// Ensure that under BOA numbers in system are those of M/G/infinity, for any distribution of sizes: mean and variance
// of jobs 0.5, of GPUs 8; and that what is spent in a time varies as the second moment of sizes says. Reference: specs
// of BOA, section 4.10: s = k^0.5, an arrival per hour, mean size 2 h, budget 8: width 16.
func TestOccupancy(t *testing.T) {
	const jobs, window, width = 12000, 72., 16
	for _, c := range []struct {
		name   string
		size   func(*rand.Rand) float64 // hours, mean 2
		second float64
		off    float64 // share by which the variance of spending may be off: about four of its standard errors
	}{
		{"deterministic", func(*rand.Rand) float64 { return 2 }, 4, .45},
		{"exponential", func(r *rand.Rand) float64 { return 2 * r.ExpFloat64() }, 8, .45},
		{"Pareto of shape 3", func(r *rand.Rand) float64 { return 4. / 3 * math.Pow(1-r.Float64(), -1./3) }, 16. / 3,
			.6},
	} {
		r := rand.New(rand.NewPCG(5, 1))
		tr := &trace.Trace{Format: "generated"}
		for i, at := 0, 0.; i < jobs; i++ {
			at += r.ExpFloat64()
			tr.Jobs = append(tr.Jobs, trace.Job{Duration: sched.Seconds(3600 * c.size(r)),
				Spec: sched.JobSpec{Name: fmt.Sprint(i), Model: "root",
					Submit: sched.Time(at * 3600e9), GPUs: sched.Range{Min: 1, Want: 1, Max: 64}}})
		}
		seen := &occupancy{window: window}
		s := Request{Trace: tr, Cluster: rentable(width, 40), System: "boa-exact", Budget: 8,
			Apps:     map[string]speedup.App{"root": byRoot(64)},
			Settings: map[string]string{"information": "perfect", "correct": "no", "restart_overhead": "0"},
			Sinks:    []eventlog.Sink{seen}}
		out, err := s.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if out.Finished != jobs || out.AvgQueue != 0 || math.Abs(out.AvgJCT-1800) > 4*1800/math.Sqrt(jobs)*2 {
			t.Errorf("%s: %d finished after %.1f s, %.1f of them waiting; want all after half an hour, at once", c.name,
				out.Finished, out.AvgJCT, out.AvgQueue)
		}
		occupied := seen.sum / seen.now
		variance := seen.sum2/seen.now - occupied*occupied
		spread := 4 * math.Sqrt(2*.5*.5*c.second/4/seen.now) // of a mean over correlated time
		if math.Abs(occupied-.5) > spread || math.Abs(variance-.5) > 3*spread {
			t.Errorf("%s: %.4f jobs in system with variance %.4f, want 0.5 and 0.5 to %.4f", c.name, occupied, variance,
				spread)
		}
		got := varianceOf(seen.spend)
		want := window * c.second * width * width / width // T sum lambda E[X^2] (k/s)^2
		t.Logf("%s: %.4f jobs, variance %.4f; spend in %v h %.1f with variance %.0f, want %.0f", c.name, occupied,
			variance, window, mean(seen.spend), got, want)
		if math.Abs(got/want-1) > c.off {
			t.Errorf("%s: spend varies by %.0f, want %.0f", c.name, got, want)
		}
	}
}

func varianceOf(x []float64) float64 {
	m, sum := mean(x), 0.
	for _, v := range x {
		sum += (v - m) * (v - m)
	}
	return sum / float64(len(x)-1)
}

// Ensure that with nodes of one GPU that are there at once, boa-exact with perfect information has the mean time and
// spends the budget that its plan says, restarts included, and that boa is not better, nor much worse.
func TestClosedForm(t *testing.T) {
	m := ownRun()
	m.Hours, m.WarmUp, m.PerNode = 80, 10, 1
	tr := m.Trace(1)
	oracle := speedup.NewOracle(m.Apps, 1, 64)
	var classes []price.Class
	for _, c := range mixOf(tr, oracle) {
		class := price.Class{Name: c.Model, Rate: c.Rate, Restart: 60}
		times := []float64{}
		for k := 1; k <= 64; k++ {
			class.Configs = append(class.Configs, price.Config{GPUs: k})
			times = append(times, c.Chain[0].Size/c.Chain[0].Speed[k])
		}
		class.Times = [][]float64{times}
		classes = append(classes, class)
	}
	x, err := price.NewExact(classes)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := x.At(30)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		system      string
		least, most float64 // mean JCT over that of the plan
		cheap, dear float64 // GPUs over the budget
		queue       float64 // seconds
	}{{"boa-exact", .98, 1.02, .93, 1.07, 0}, {"boa", .99, 1.2, .8, 1.07, 60}} {
		paid := &paidFor{from: sched.Time(m.WarmUp * 3600e9), to: sched.Time(m.Hours * 3600e9)}
		s := Request{Trace: tr, Cluster: rentable(1, 400), System: c.system, Budget: 30, Apps: m.Apps,
			Sinks: []eventlog.Sink{paid},
			Settings: map[string]string{"information": "perfect", "correct": "no", "restart_overhead": "60",
				"restart_at_first": "yes"}}
		out, err := s.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		jct, gpus := (out.AvgJCT-out.AvgQueue)/plan.Delay, paid.mean()/30
		t.Logf("%s: JCT %.1f s of which %.1f waiting, plan %.1f; %.2f GPUs of 30", c.system, out.AvgJCT, out.AvgQueue,
			plan.Delay, 30*gpus)
		if jct < c.least || jct > c.most || gpus < c.cheap || gpus > c.dear || out.AvgQueue > c.queue {
			t.Errorf("%s: JCT %.3f of the plan, %.3f of the budget, %.1f s waiting", c.system, jct, gpus, out.AvgQueue)
		}
	}
}

// Ensure that without rates, or any knowledge at all, spending comes near the budget once things are learned, and that
// a budget that is too small is refused with the least that would do.
func TestBudgetIsKept(t *testing.T) {
	m := ownRun()
	m.Hours, m.WarmUp = 60, 25
	for _, information := range []string{"price", "estimated"} {
		for _, name := range []string{"boa", "boa-exact"} {
			out, paid, err := m.Run(t.Context(), name, map[string]string{"information": information}, 24, 1)
			if err != nil || out.Unfinished > 0 {
				t.Fatal(err, out)
			}
			t.Logf("%s, %s: %.1f GPUs, JCT %.0f s", name, information, paid, m.SettledJCT(out))
			if paid < .8*24 || paid > 1.2*24 {
				t.Errorf("%s, %s: %.1f GPUs paid for, want about 24", name, information, paid)
			}
		}
	}
	_, _, err := m.Run(t.Context(), "boa-exact", map[string]string{"information": "perfect"}, 8, 1)
	if err == nil || !strings.Contains(err.Error(), "system: boa-exact: budget 8 GPUs, want at least ") {
		t.Errorf("error %v", err)
	}
}

// Ensure that a price alone meets budgets near the least there is, and where money is plenty, although it moves
// spending little there: over 60 h, of each of three seeds within 4 %, and of all within 2 %.
func TestPriceMeetsBudgets(t *testing.T) {
	for _, budget := range []float64{12, 24, 40} {
		m := ownRun()
		m.Hours, m.WarmUp = 90, 30
		mean := 0.
		for seed := range uint64(3) {
			out, paid, err := m.Run(t.Context(), "boa-exact", map[string]string{"information": "price"}, budget,
				11+seed)
			if err != nil || out.Unfinished > 0 {
				t.Fatal(err, out)
			}
			off := paid/budget - 1
			t.Logf("%v GPUs, seed %d: %+.2f %%, JCT %.0f s", budget, 11+seed, 100*off, m.SettledJCT(out))
			if mean += off / 3; math.Abs(off) > .04 {
				t.Errorf("%v GPUs, seed %d: %+.2f %%", budget, 11+seed, 100*off)
			}
		}
		if math.Abs(mean) > .02 {
			t.Errorf("%v GPUs: %+.2f %% over three seeds", budget, 100*mean)
		}
	}
}

// Ensure that jobs of higher priority get more GPUs, as the price says: with s = k^0.5, loads of 1 and 1, weights 4 and
// 1, and 6 GPUs on average, widths 16 and 4. Reference: specs of BOA, section 4.8.
func TestPriorities(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	tr := &trace.Trace{Format: "generated"}
	for i, at := 0, 0.; i < 1200; i++ {
		at += r.ExpFloat64() / 2
		tr.Jobs = append(tr.Jobs, trace.Job{Duration: time.Hour,
			Spec: sched.JobSpec{Name: fmt.Sprint(i), Model: "root", Priority: int32(2 * (i % 2)),
				Submit: sched.Time(at * 3600e9), GPUs: sched.Range{Min: 1, Want: 1, Max: 64}}})
	}
	for _, c := range []struct {
		information, weight string
		low, high           float64 // JCT in s of jobs of priority 0 and 2
	}{{"estimated", "2", 1800, 900}, {"perfect", "2", 1800, 900}, {"price", "2", 1800, 900},
		{"price", "1", 1200, 1200}} {
		s := Request{Trace: tr, Cluster: rentable(1, 400), System: "boa-exact", Budget: 6,
			Apps: map[string]speedup.App{"root": byRoot(64)}, Settings: map[string]string{
				"information": c.information, "curves": "oracle", "restart_overhead": "0", "priority_weight": c.weight}}
		out, err := s.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var jct, n [2]float64
		for i := range out.PerJob {
			if i > 200 {
				high := tr.Jobs[i].Spec.Priority / 2
				jct[high], n[high] = jct[high]+out.PerJob[i].JCT().Seconds(), n[high]+1
			}
		}
		low, high := jct[0]/n[0], jct[1]/n[1]
		t.Logf("%s, weight %s: %.0f and %.0f s", c.information, c.weight, low, high)
		if math.Abs(low/c.low-1) > .15 || math.Abs(high/c.high-1) > .15 {
			t.Errorf("%s, weight %s: %.0f and %.0f s, want about %.0f and %.0f", c.information, c.weight, low, high,
				c.low, c.high)
		}
	}
}

// Ensure that a month's money is not overspent, and that jobs go on when the next month starts.
func TestMonth(t *testing.T) {
	m := ownRun()
	m.Hours = 48
	tr := m.Trace(2)
	s := Request{Trace: tr, Cluster: rentable(4, 50), System: "boa-exact", Apps: m.Apps, Budget: 1,
		Settings: map[string]string{"information": "price",
			"month_budget": "2000", "month_from": "2026-01-31T00:00:00+01:00", "month_zone": "Europe/Berlin",
			"restart_overhead": "60"}}
	paid := &paidFor{to: sched.Time(24 * 3600e9)} // the last day of January: 2000/31 GPU-hours
	s.Sinks = []eventlog.Sink{paid}
	out, err := s.Run(t.Context())
	if err != nil || out.Unfinished > 0 {
		t.Fatal(err, out)
	}
	if spent := 24 * paid.mean(); spent > 2000./31+.5 || spent < 2000./31*.9 {
		t.Errorf("%.2f GPU-hours spent in January, want nearly %.2f", spent, 2000./31)
	}
	for key, value := range map[string]string{"month_zone": "Nowhere", "month_from": "then"} {
		s.Settings[key] = value
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%s=%q, want ", key, value)) {
			t.Errorf("%s=%s: %v", key, value, err)
		}
		delete(s.Settings, key)
	}
}

// Ensure that over two months what January left goes over into February as far as was agreed and no further, and that
// money that is used up stops all until the next month.
func TestTwoMonths(t *testing.T) {
	const (
		january, february = 31 * 24, 28 * 24 // hours
		budget            = 1500.            // GPU-hours; the jobs of February take more than twice that
		hour              = 3600e9
	)
	m := ownRun()
	m.Rate, m.Hours = 5, january+february
	tr := m.Trace(3)
	// little to do in January
	tr.Jobs = slices.DeleteFunc(tr.Jobs, func(j trace.Job) bool { return j.Spec.Submit < 30.5*24*hour })
	for _, carry := range []float64{0, 300, 1e9} {
		first, second := &paidFor{to: january * hour}, &paidFor{from: january * hour, to: (january + february) * hour}
		s := Request{Trace: tr, Cluster: rentable(4, 50), System: "boa-exact", Apps: m.Apps, Budget: 1,
			Sinks: []eventlog.Sink{first, second}, Settings: map[string]string{
				"information": "price", "month_budget": fmt.Sprint(budget), "month_carry": fmt.Sprint(carry),
				"month_from": "2026-01-01T00:00:00Z", "restart_overhead": "60"}}
		out, err := s.Run(t.Context())
		if err != nil || out.Unfinished > 0 {
			t.Fatal(err, out)
		}
		spent, next := january*first.mean(), february*second.mean()
		most := budget + min(carry, budget-spent)
		t.Logf("carry %v: %.1f and %.1f GPU-hours, of at most %.1f", carry, spent, next, most)
		if spent > budget/2 || next > most+1 || next < .9*most {
			t.Errorf("carry %v: %.1f GPU-hours in January and %.1f in February, want the latter nearly %.1f", carry,
				spent, next, most)
		}
	}
}

// Ensure that a pool that never boots leaves jobs waiting and the run ends, and that GPUs of several types are refused.
func TestNothingToRent(t *testing.T) {
	m := ownRun()
	m.Hours = 2
	c := rentable(4, 10)
	c.Pools[0].Boot = 1 << 62
	for _, information := range []string{"price", "estimated", "perfect"} {
		s := Request{Trace: m.Trace(1), Cluster: c, System: "boa-exact", Apps: m.Apps, Budget: 30,
			Settings: map[string]string{"information": information}}
		if out, err := s.Run(t.Context()); err == nil && out.Finished > 0 {
			t.Errorf("%s: %d jobs finished on nodes that never came", information, out.Finished)
		}
	}
	two, err := cluster.Load("2x4:t4+2x4:a100")
	if err != nil {
		t.Fatal(err)
	}
	s := Request{Trace: m.Trace(1), Cluster: two, System: "boa", Apps: m.Apps, Budget: 30}
	if err := s.Check(); err == nil || !strings.Contains(err.Error(), "GPUs of 2 types, want one") {
		t.Errorf("error %v", err)
	}
}

// BenchmarkBOA runs boa-exact, with all known, on 100,000 jobs of one phase: the whole simulation.
func BenchmarkBOA(b *testing.B) {
	m := ownRun()
	m.Rate, m.Hours = 6, 100_000./6
	tr := m.Trace(1)
	b.ReportAllocs()
	for b.Loop() {
		s := Request{Trace: tr, Cluster: m.pool(30), System: "boa-exact", Budget: 30, Apps: m.Apps,
			Settings: map[string]string{"information": "perfect"}}
		if out, err := s.Run(b.Context()); err != nil || out.Unfinished > 0 {
			b.Fatal(err, out)
		}
	}
}
