package speedup

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/trainyard/trainyard/internal/shareddata"
	"github.com/trainyard/trainyard/sched"
)

func seconds(s float64) time.Duration { return sched.Seconds(s) }

// Ensure that work is time under the nominal way: there the rate is 1, and boundaries are where phases end.
func TestMeter(t *testing.T) {
	app := Stages{{100, Power{.5}}, {60, Amdahl{.5}}}
	job := &sched.JobSpec{Model: "toy", GPUs: sched.Range{Min: 1, Want: 4, Max: 16}}
	m, err := NewMeter(app, job, 4)
	if err != nil {
		t.Fatal(err)
	}
	if want := seconds(50 + 60*.625); m.Duration() != want || m.Nominal != (Way{GPUs: 4, Nodes: 1}) {
		t.Errorf("%v under %+v, want %v", m.Duration(), m.Nominal, want)
	}
	if d, err := NominalDuration(app, job, 4); d != m.Duration() || err != nil {
		t.Errorf("nominal duration %v, %v", d, err)
	}
	for _, c := range []struct {
		work  float64
		phase int
		done  float64
		rate  float64 // on 16 GPUs
		until float64
	}{
		{0, 0, 0, 2, 50}, {25, 0, .5, 2, 50}, {50, 1, 0, .625 / (.5 + .5/16), 87.5},
		{68.75, 1, .5, .625 / (.5 + .5/16), 87.5},
		{87.5, 1, 1, .625 / (.5 + .5/16), 87.5}, {1000, 1, 1, .625 / (.5 + .5/16), 87.5}, {-1, 0, 0, 2, 50},
	} {
		work := seconds(c.work)
		phase, done := m.At(work)
		rate, until := m.Rate(work, Way{GPUs: 16, Nodes: 4})
		if phase != c.phase || !near(done, c.done) || !near(rate, c.rate) || until != seconds(c.until) {
			t.Errorf("after %v s: phase %d, %v done, rate %v until %v, want %+v", c.work, phase, done, rate, until, c)
		}
		if one, _ := m.Rate(work, m.Nominal); one != 1 {
			t.Errorf("after %v s: rate %v under the nominal way, want 1", c.work, one)
		}
		placed, _ := m.RatePlaced(work, []int{4, 4, 0, 4, 4}, Way{})
		if placed != rate {
			t.Errorf("after %v s: rate %v placed, %v otherwise", c.work, placed, rate)
		}
	}
}

// Ensure that the nominal way is the next wider where none is possible, and that there is an error where none is at
// all.
func TestMeterWithoutWay(t *testing.T) {
	job := &sched.JobSpec{Name: "a", Model: "example", GPUs: sched.Range{Min: 1, Want: 1, Max: 8},
		Batch: sched.BatchRange{Min: 128, Max: 128}}
	m, err := NewMeter(elastic(), job, 4)
	if err != nil || m.Nominal != (Way{GPUs: 2, Nodes: 1, Batch: 128}) {
		t.Errorf("%+v, %v, want 2 GPUs", m, err)
	}
	if rate, _ := m.Rate(0, Way{GPUs: 1, Nodes: 1}); rate != 0 {
		t.Errorf("rate %v on one GPU, want 0", rate)
	}
	for _, c := range []struct {
		change func(*sched.JobSpec, *Trainer)
		want   string
	}{
		{func(s *sched.JobSpec, _ *Trainer) { s.GPUs.Max = 1 },
			`speedup: "example" does not run on 1..1 GPUs with batch size 128..128, want a way that it does`},
		{func(s *sched.JobSpec, _ *Trainer) { s.Batch.Min, s.Batch.Max = 500, 600 },
			`speedup: "example" does not run on 1..8 GPUs with batch size 500..600, want a way that it does`},
		{func(_ *sched.JobSpec, a *Trainer) { a.Worth = Samples{} },
			`speedup: "example" does not run on 1..8 GPUs with batch size 128..128, want a way that it does`},
		{func(_ *sched.JobSpec, a *Trainer) { a.Worth = Samples{1.5e18} },
			`speedup: "example" takes 1.1015625e+18 s, want at most 3.15576e+09 s`},
	} {
		s, app := *job, elastic()
		c.change(&s, app)
		if _, err := NewMeter(app, &s, 4); err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
		if _, err := NominalDuration(app, &s, 4); err == nil {
			t.Error("a duration of what does not run")
		}
	}
}

// Ensure that a job which is moved from way to way at random ends after as much progress as any other: the sum over
// phases of progress made is their size.
func TestMeterConservesProgress(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	p := toyProfile(t)
	for range 50 {
		job := &sched.JobSpec{Model: "toy", GPUs: sched.Range{Min: 1, Want: int32(1 + r.IntN(4)), Max: 8}}
		if r.IntN(2) == 0 {
			job.Batch = sched.BatchRange{Min: 16, Max: 16}
		}
		m, err := NewMeter(p, job, 2)
		if err != nil {
			t.Fatal(err)
		}
		progress := make([]float64, len(p.Sizes()))
		for work := time.Duration(0); work < m.Duration(); {
			gpus := 1 + r.IntN(4)
			w := Way{GPUs: gpus, Nodes: ceilDiv(gpus, 2), Batch: 8 + r.IntN(24)}
			rate, until := m.Rate(work, w)
			if rate == 0 {
				continue
			}
			packed := [][]int{nil, {1}, {0, 2}, {2, 0, 1}, {2, 2}}[gpus]
			if placed, _ := m.RatePlaced(work, packed, w); placed != rate {
				t.Fatalf("rate %v on %v, but %v packed", placed, packed, rate)
			}
			phase, _ := m.At(work)
			step := min(until-work, seconds(rate*r.ExpFloat64()*20)+1)
			progress[phase] += p.Speed(phase, w) * step.Seconds() / rate
			work += step
		}
		for phase, size := range p.Sizes() {
			if math.Abs(progress[phase]/size-1) > 1e-6 {
				t.Fatalf("phase %d: progress %v, want %v", phase, progress[phase], size)
			}
		}
	}
}

// Ensure that an exact placement has the rate that was measured on it, at the batch size asked for or the best one.
func TestRatePlaced(t *testing.T) {
	p := toyProfile(t)
	for _, batch := range []int32{0, 16} {
		m, err := NewMeter(p, spec("toy", 2, batch), 2)
		if err != nil {
			t.Fatal(err)
		}
		spread, until := m.RatePlaced(0, []int{1, 0, 1}, Way{})
		if packed, _ := m.RatePlaced(0, []int{2}, Way{}); packed != 1 || spread >= 1 || spread <= 0 ||
			until != m.ends[0] {
			t.Errorf("batch %d: rate %v packed, %v spread until %v", batch, packed, spread, until)
		}
		for _, placement := range [][]int{nil, {0}, {9}, {1, 9}} {
			if rate, _ := m.RatePlaced(0, placement, Way{}); rate != 0 {
				t.Errorf("batch %d: rate %v on %v", batch, rate, placement)
			}
		}
	}
}

// Ensure that the oracle gives chain, phase and share by the work reported, from a cache, and nothing about the
// unknown.
func TestOracle(t *testing.T) {
	p := toyProfile(t)
	o := NewOracle(map[string]App{"toy": p, "broken": &Trainer{Worth: Samples{1}}}, 2, 4)
	jobs := []*sched.JobSpec{spec("toy", 2, 16), spec("toy", 1, 16), spec("toy", 1, 8), spec("other", 1, 16),
		spec("toy", 4, 1000)}
	v := yard(8, jobs...)
	m, err := o.Meter(jobs[0])
	if err != nil {
		t.Fatal(err)
	}
	v.Jobs[0].Work = m.Duration() / 2
	c, phase, done := o.Chain(v, 0)
	wantPhase, wantDone := m.At(m.Duration() / 2)
	if len(c) != 2 || phase != wantPhase || done != wantDone || len(c[0].Speed) != 5 {
		t.Errorf("%+v, %d, %v, want phase %d, %v done", c, phase, done, wantPhase, wantDone)
	}
	for k := 1; k <= 4; k++ {
		if w, s := p.Best(0, k, ceilDiv(k, 2), jobs[0].Batch); c[0].Speed[k] != s || int(c[0].Batch[k]) != w.Batch {
			t.Errorf("%d GPUs: %v with batch %d, want %v with %d", k, c[0].Speed[k], c[0].Batch[k], s, w.Batch)
		}
	}
	same, _, _ := o.Chain(v, 1)
	other, _, _ := o.Chain(v, 2)
	if &same[0] != &c[0] || &other[0] == &c[0] {
		t.Error("jobs of equal application and limits do not share a chain, or others do")
	}
	if again, _ := o.Meter(jobs[0]); again != m {
		t.Error("a meter was made twice")
	}
	if d, _, _ := o.Chain(v, 3); d != nil {
		t.Error("a chain of an unknown application")
	}
	if m, err := o.Meter(jobs[3]); m != nil || err != nil {
		t.Errorf("%v, %v of an unknown application", m, err)
	}
	if d, _, _ := o.Chain(v, 4); d != nil {
		t.Error("a chain of what does not run")
	}
	if _, err := o.Meter(jobs[4]); err == nil {
		t.Error("a meter of what does not run")
	}
}

// Ensure that a job that its user gives another width is where it was, by what is done and by what is reported from
// then on: its work keeps the unit it had.
func TestOracleKeepsTheUnitOfAChangedJob(t *testing.T) {
	o := NewOracle(map[string]App{"toy": toyProfile(t)}, 2, 4)
	asked := spec("toy", 2, 16)
	m, err := o.Meter(asked)
	if err != nil {
		t.Fatal(err)
	}
	for _, gpus := range []sched.Range{{Min: 1, Want: 1, Max: 64}, {Min: 1, Want: 1, Max: 1},
		{Min: 4, Want: 4, Max: 4}} {
		v := yard(8, asked, asked)
		c := asked.Change()
		c.GPUs = gpus
		v.Jobs[0].Asked, v.Jobs[0].Spec = 2, asked.Changed(&c)
		for share := range 10 {
			v.Jobs[0].Work = m.Duration() * time.Duration(share) / 10
			v.Jobs[1].Work = v.Jobs[0].Work
			got, phase, done := o.Chain(v, 0)
			want, wantPhase, wantDone := o.Chain(v, 1)
			if len(got) == 0 || &got[0] != &want[0] || phase != wantPhase || done != wantDone {
				t.Errorf("%v after %d tenths: phase %d, %v done, want %d, %v", gpus, share, phase, done, wantPhase,
					wantDone)
			}
		}
	}
}

// Ensure that all jobs of all published workloads run as they ask, and log how long they take.
func TestPublishedWorkloads(t *testing.T) {
	apps := make(map[string]App)
	for name, p := range t4Profiles(t) {
		apps[name] = p
	}
	o := NewOracle(apps, 4, 64)
	root := filepath.Join(shareddata.DataDir(t), "pollux")
	var files []string
	for _, pattern := range []string{"osdi21/workloads*/*.csv", "sia/workloads/*/*.csv", "sia/workloads/scale/*/*.csv",
		"boa/*.csv"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	jobs, longest := 0, time.Duration(0)
	for _, file := range files {
		name, err := filepath.Rel(shareddata.DataDir(t), file)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range readRows(t, name)[1:] {
			want := int32(atoi(t, row[3]))
			m, err := o.Meter(spec(row[2], want, int32(atoi(t, row[4]))))
			if err != nil {
				t.Fatalf("%s: %v: %v", name, row, err)
			}
			if m.Nominal.GPUs != int(want) {
				t.Errorf("%s: %v: runs on %d GPUs, want as many as asked", name, row, m.Nominal.GPUs)
			}
			jobs, longest = jobs+1, max(longest, m.Duration())
		}
	}
	t.Logf("%d jobs in %d workloads, the longest of %v", jobs, len(files), longest)
}

func BenchmarkChainOf(b *testing.B) {
	p := t4Profiles(b)["imagenet"]
	b.ReportAllocs()
	for b.Loop() {
		ChainOf(p, 4, 64, sched.BatchRange{})
	}
}

func BenchmarkRate(b *testing.B) {
	m, err := NewMeter(t4Profiles(b)["imagenet"], spec("imagenet", 10, 1600), 4)
	if err != nil {
		b.Fatal(err)
	}
	placement := []int{4, 4, 2}
	b.ReportAllocs()
	for b.Loop() {
		m.RatePlaced(m.Duration()/2, placement, Way{})
	}
}
