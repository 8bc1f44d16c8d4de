package eaco_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/model/interference"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/place"
	"github.com/trainyard/trainyard/system/baseline"
	"github.com/trainyard/trainyard/system/eaco"
	"github.com/trainyard/trainyard/trace"
)

// drawn is a random world: jobs of five models, some with deadlines, on one to three nodes. Who shares with whom is
// slowed by a factor of the model for each other job, and by noise.
func drawn(seed uint64, noise float64) *moving {
	r := rand.New(rand.NewPCG(seed, 5))
	m := &moving{nodes: 1 + r.IntN(3), restart: time.Duration(r.IntN(2)) * time.Minute}
	pace := map[string]float64{}
	for i := range 5 {
		pace[fmt.Sprint("m", i)] = 1 + 0.25*r.Float64()
	}
	at := 0.0
	for i := range 3 + r.IntN(8) {
		at += r.ExpFloat64() * 0.7
		j := trace.Job{Duration: hours(0.5 + 5*r.Float64()),
			Spec: sched.JobSpec{Name: fmt.Sprint("j", i), Model: fmt.Sprint("m", r.IntN(5)),
				GPUs: sched.Rigid([]int{1, 2, 4, 8, 8, 8, 16}[r.IntN(5+m.nodes/2)]), Epochs: int32(4 + r.IntN(30)),
				Share: sched.ShareAllow, Submit: sched.Time(hours(at)),
				Util: float32(0.05 + 0.35*r.Float64()), GPUMemGB: float32(3 + 25*r.Float64()),
				Priority: int32(r.IntN(12) / 11)}}
		if r.IntN(3) > 0 {
			j.Spec.Deadline = j.Spec.Submit.Add(time.Duration(float64(j.Duration) * (1.02 + r.Float64())))
		}
		m.jobs = append(m.jobs, j)
	}
	m.truth = func(j *trace.Job, others []*trace.Job) float64 {
		slow := math.Pow(pace[j.Spec.Model], float64(len(others)))
		if noise > 0 {
			key := seed
			for _, o := range others {
				key = key*31 + uint64(o.Spec.Submit)
			}
			slow *= math.Exp(noise * rand.New(rand.NewPCG(key, uint64(j.Spec.Submit))).NormFloat64())
		}
		return max(slow, 1)
	}
	return m
}

// missed returns how many of the jobs that were kept, or started alone, in time missed their deadline.
func missed(m *moving, r *reported) (kept, late int) {
	for i := range m.jobs {
		s, x := &m.jobs[i].Spec, &r.jobs[i]
		if s.Deadline == 0 || r.late[s.Name] || !r.kept[s.Name] {
			continue
		}
		kept++
		if x.Finish > s.Deadline {
			late++
		}
	}
	return kept, late
}

// Ensure that no job that was kept misses its deadline where nothing is noise, in 1,000 random worlds, whatever was
// known of sets before; that all finish; and say how many do with 10 % noise.
func TestPromises(t *testing.T) {
	rows := 1000
	if testing.Short() {
		rows = 200
	}
	build := func(k eaco.Known) (sched.Decider, error) { return eaco.New(eaco.Params{Known: k, Slow: 1.2}) }
	keptAll, undone := 0, 0
	for seed := range uint64(rows) {
		m := drawn(seed, 0)
		r := m.run(t, build, interference.NewLearner(&interference.History{}))
		kept, late := missed(m, r)
		if keptAll += kept; late > 0 {
			t.Errorf("seed %d: %d of %d that were kept are late\n%s", seed, late, kept, strings.Join(r.lines, "\n"))
		}
		undone += int(r.Undos)
		if r.Finished != len(m.jobs) && m.nodes > 1 {
			t.Errorf("seed %d: %d of %d finished", seed, r.Finished, len(m.jobs))
		}
		if sum := r.EnergyBusy + r.EnergyIdle + r.EnergySleep; math.Abs(sum-r.EnergyKWh) > 1e-9*r.EnergyKWh {
			t.Errorf("seed %d: energy %v of jobs, idle and sleep, %v in all", seed, sum, r.EnergyKWh)
		}
	}
	if keptAll < rows/4 || undone < rows/20 {
		t.Errorf("%d jobs with deadlines kept, %d trials undone in %d worlds: too few to say anything", keptAll, undone,
			rows)
	}
	t.Logf("%d worlds: %d jobs with deadlines kept, none late; %d trials undone", rows, keptAll, undone)
	kept, late := 0, 0
	for seed := range uint64(rows) {
		m := drawn(seed, 0.10)
		k, l := missed(m, m.run(t, build, interference.NewLearner(&interference.History{})))
		kept, late = kept+k, late+l
	}
	t.Logf("with 10 %% noise: %d of %d late (%.1f %%)", late, kept, 100*float64(late)/float64(kept))
}

// Ensure that with one job on a GPU it does what a queue by priority and arrival does that passes over those that do
// not fit.
func TestSharingOff(t *testing.T) {
	for seed := range uint64(150) {
		m := drawn(seed, 0)
		for i := range m.jobs {
			m.jobs[i].Spec.GPUs = sched.Rigid(8)
		}
		l := interference.NewLearner(&interference.History{})
		off := m.run(t, func(k eaco.Known) (sched.Decider, error) { return eaco.New(eaco.Params{Known: k, Most: 1}) },
			l)
		base := m.run(t, func(eaco.Known) (sched.Decider, error) {
			s := baseline.FIFOSkip(place.Consolidate{})
			return s.Decider(), nil
		}, l)
		for i := range off.jobs {
			if off.jobs[i].Finish != base.jobs[i].Finish {
				t.Fatalf("seed %d, job %d: done at %v, the base at %v", seed, i, off.jobs[i].Finish,
					base.jobs[i].Finish)
			}
		}
	}
}

// Ensure that without deadlines and limits nodes are packed up to the threshold: no one waits, or gets an idle node,
// while a node below it has room.
func TestPacksToThreshold(t *testing.T) {
	rows := tables(t)
	s := newStill(3)
	s.add(job(rows, "AlexNet", 0), 0)
	s.add(job(rows, "ResNet-18", 0), 1)
	for range 3 {
		s.add(job(rows, "ResNet-50", 0), -1)
	}
	if got := s.decide(t, published(t, rows)); got != "B trial 8, A trial 8, C started 8" {
		t.Errorf("%s, want B (11 %%), A (5 %%), then C", got)
	}
}

// Ensure that the set found is the most used of all subsets of whole nodes on which all keep their deadlines, ties by
// the number of GPUs in use and of nodes.
func TestCandidatesAgainstAllSubsets(t *testing.T) {
	rows := tables(t)
	models := []string{"AlexNet", "ResNet-18", "ResNet-50", "VGG-16"}
	found := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 6))
		nodes, width := 2+r.IntN(4), 1+r.IntN(2)
		s, fits := newStill(nodes), make([]bool, nodes)
		use := make([]float64, nodes)
		for n := range nodes {
			fits[n] = true
			for range r.IntN(3) {
				deadline := 0.0
				if r.IntN(3) == 0 {
					deadline = 36.2 + r.Float64() // mostly too early for company
				}
				j := job(rows, models[r.IntN(4)], deadline)
				s.add(j, n)
				use[n] += float64(j.Spec.Util)
			}
		}
		j := job(rows, models[r.IntN(4)], []float64{0, 35.9, 36.6, 40}[r.IntN(4)])
		j.Spec.GPUs = sched.Rigid(8 * width)
		for n := range nodes { // what each node says by itself, one node wide
			one := newStill(nodes)
			for i := range s.jobs {
				if g := s.view.Jobs[i].Target; int(g[0]/8) == n {
					one.add(s.jobs[i], n)
				}
			}
			alone := j
			one.add(alone, -1)
			for k := range nodes { // no other node is there
				if k != n {
					one.view.Nodes[k].State = sched.NodeDown
				}
			}
			if width > 1 {
				one.jobs[len(one.jobs)-1].Spec.GPUs = sched.Rigid(8)
				spec := *one.view.Jobs[len(one.jobs)-1].Spec
				spec.GPUs = sched.Rigid(8)
				one.view.Jobs[len(one.jobs)-1].Spec = &spec
			}
			fits[n] = strings.Contains(one.decide(t, generic(t)), "8")
		}
		id := s.add(j, -1)
		want, ok := bestSubset(use, fits, width)
		var out sched.Desired
		p := generic(t)
		p.Work = s
		d, err := eaco.New(p)
		if err != nil {
			t.Fatal(err)
		}
		d.Resume(&s.view)
		d.Decide(&s.view, &out)
		if !ok != (len(out.Jobs) == 0) {
			t.Fatalf("seed %d: found %v, all subsets say %v: width %d, use %v, fits %v, deadline %v", seed,
				len(out.Jobs) > 0, ok, width, use, fits, j.Spec.Deadline)
		}
		if !ok {
			continue
		}
		found++
		got := 0.0
		for _, g := range out.Set(&out.Jobs[0]) {
			got += use[g/8] / 8
		}
		if out.Jobs[0].Job != id || math.Abs(got-want) > 1e-6 {
			t.Fatalf("seed %d: use %v, the best of all subsets has %v", seed, got, want)
		}
	}
	if found < 100 {
		t.Errorf("%d of 400 found: too few to say anything", found)
	}
}

// generic are parameters without tables, so that predictions do not depend on widths.
func generic(testing.TB) eaco.Params {
	return eaco.Params{Known: eaco.Known{Learner: interference.NewLearner(&interference.History{})}, Slow: math.Inf(1),
		LateWait: true, Memory: 1}
}

// bestSubset returns the most use of k nodes that fit, by looking at all subsets.
func bestSubset(use []float64, fits []bool, k int) (best float64, ok bool) {
	best = -1
	for mask := range 1 << len(use) {
		var set []int
		sum, all := 0.0, true
		for n := range use {
			if mask>>n&1 == 1 {
				set = append(set, n)
				sum += use[n]
				all = all && fits[n]
			}
		}
		if len(set) == k && all && sum > best {
			best = sum
		}
	}
	return best, best >= 0
}

// BenchmarkSchedule is one job that arrives on 10,000 GPUs. Jobs of one and two to a GPU have them all, some of them
// with deadlines that leave no room for it: all of one node, or of 1 to 8 GPUs each. "learned": the history has changed
// since the last decision, so that nothing is known by heart.
func BenchmarkSchedule(b *testing.B) {
	for _, c := range []struct {
		name     string
		widths   []int
		deadline float64
		learned  bool
	}{{"first fits", []int{8}, 0, false}, {"none fits", []int{8}, 36.2, false},
		{"none fits, learned", []int{8}, 36.2, true},
		{"none fits, all widths, learned", []int{1, 2, 4, 8}, 36.2, true}} {
		b.Run(c.name, func(b *testing.B) {
			s, p := newStill(1250), generic(b)
			r := rand.New(rand.NewPCG(1, 1))
			draw := func(width int, deadline float64) trace.Job {
				j := trace.Job{Duration: hours(36),
					Spec: sched.JobSpec{Model: string('a' + rune(r.IntN(4))), GPUs: sched.Rigid(width), Epochs: 90,
						Share: sched.ShareAllow, Util: 0.1 + 0.2*float32(r.Float64()), GPUMemGB: 10}}
				if deadline > 0 {
					j.Spec.Deadline = sched.Time(hours(deadline))
				}
				return j
			}
			for n := range 1250 {
				for range 1 + r.IntN(2) {
					for at, width := 0, c.widths[r.IntN(len(c.widths))]; at < 8; at += width {
						x := &s.view.Jobs[s.add(draw(width, c.deadline), n)]
						for i := range x.Target {
							x.Target[i] += sched.GPUID(at)
						}
					}
				}
			}
			id := s.add(draw(8, 0), -1)
			p.Work = s
			d, err := eaco.New(p)
			if err != nil {
				b.Fatal(err)
			}
			d.Resume(&s.view)
			var out sched.Desired
			var times []time.Duration
			b.ReportAllocs()
			for b.Loop() {
				if c.learned {
					if err := p.Learner.History.RecordOOM(interference.Place{}, []string{"x", "y"}, 0); err != nil {
						b.Fatal(err)
					}
				}
				d.Observe(&s.view, &sched.Event{Kind: sched.StartFailed, Job: id}) // have it look at the queue
				out.Reset()
				began := time.Now()
				d.Decide(&s.view, &out)
				times = append(times, time.Since(began))
			}
			if len(out.Jobs) > 0 != (c.deadline == 0) {
				b.Fatalf("%d jobs got GPUs", len(out.Jobs))
			}
			slices.Sort(times)
			for name, at := range map[string]int{"p50-us": len(times) / 2, "p99-us": len(times) * 99 / 100,
				"max-us": len(times) - 1} {
				b.ReportMetric(float64(times[at].Microseconds()), name)
			}
		})
	}
}

// reborn is a Decider that is saved, made again and loaded at every third decision.
type reborn struct {
	sched.Decider
	t     *testing.T
	build func() sched.Decider
	count int
}

func (r *reborn) Decide(v *sched.View, out *sched.Desired) {
	if r.count++; r.count%3 == 0 {
		next := r.build()
		for id := range v.Jobs {
			if err := next.LoadJob(sched.JobID(id), r.SaveJob(sched.JobID(id), nil)); err != nil {
				r.t.Fatal(err)
			}
		}
		if err := next.LoadRest(r.SaveRest(nil)); err != nil {
			r.t.Fatal(err)
		}
		next.(sched.Resumer).Resume(v)
		r.Decider = next
	}
	r.Decider.Decide(v, out)
}

// Ensure that what is saved and loaded gives the same future, for EaCO and for pairs.
func TestReborn(t *testing.T) {
	for seed := range uint64(200) {
		for _, build := range []func(k eaco.Known) (sched.Decider, error){
			func(k eaco.Known) (sched.Decider, error) { return eaco.New(eaco.Params{Known: k, Slow: 1.2}) },
			func(k eaco.Known) (sched.Decider, error) { return eaco.NewPairs(k, eaco.Gandiva, 1, 0, nil) },
		} {
			fresh := func() *interference.Learner {
				return interference.NewLearner(&interference.History{})
			}
			m := drawn(seed, 0.1)
			want := m.run(t, build, fresh())
			got := m.run(t, func(k eaco.Known) (sched.Decider, error) {
				again := func() sched.Decider {
					k.Learner = fresh()
					d, err := build(k)
					if err != nil {
						t.Fatal(err)
					}
					return d
				}
				return &reborn{Decider: again(), t: t, build: again}, nil
			}, fresh())
			if !slices.Equal(got.lines, want.lines) {
				t.Fatalf("seed %d: decided\n%s\nwant\n%s", seed, strings.Join(got.lines, "\n"),
					strings.Join(want.lines, "\n"))
			}
		}
	}
}

// Ensure that jobs that ran out of memory together are not put together again.
func TestOutOfMemory(t *testing.T) {
	rows := tables(t)
	s := newStill(2)
	s.add(job(rows, "VGG-16", 0), 0)
	s.add(job(rows, "AlexNet", 0), -1)
	p := published(t, rows)
	if err := p.Learner.History.RecordOOM(interference.Place{GPU: "v100", Width: 8}, []string{"AlexNet", "VGG-16"},
		0); err != nil {
		t.Fatal(err)
	}
	if got := s.decide(t, p); got != "B started 8" {
		t.Errorf("%s, want the idle node B", got)
	}
}

// Ensure that what is known of GPUs shared by turns says nothing of those shared by MPS: there use counts, that of each
// job and not of its model.
func TestMechanisms(t *testing.T) {
	for _, c := range []struct {
		how   sched.Mechanism
		util  float32 // of the newcomer
		limit float64
		want  string
	}{
		{sched.TimeSlicing, 0.1, 1.2, "B started 8"}, {sched.TimeSlicing, 0.1, 1.3, "A trial 8"}, // 1.25, as measured
		// uses of 0.6 and 0.9
		{sched.MPS, 0.1, 1, "A trial 8"}, {sched.MPS, 0.4, 1, "B started 8"}, {sched.MPS, 0.4, 1.04, "A trial 8"},
		{sched.MIG, 0.4, 1, "A trial 8"}, {sched.MIG, 0.55, 1.05, "B started 8"}, // half a GPU each
	} {
		s := newStill(2)
		s.view.Nodes[0].Spec.Sharing = c.how
		draw := func(model string, util float32) trace.Job {
			return trace.Job{Duration: hours(10), Spec: sched.JobSpec{Model: model, GPUs: sched.Rigid(8), Epochs: 10,
				Share: sched.ShareAllow, Util: util, GPUMemGB: 10}}
		}
		s.add(draw("a", 0.5), 0)
		s.add(draw("b", c.util), -1)
		p := generic(t)
		if p.Slow = c.limit; p.Learner.History.Record(interference.Place{GPU: "v100", Width: 8}, []string{"a", "b"},
			[]float64{1.25, 1.25}, 0) != nil {
			t.Fatal("not recorded")
		}
		if got := s.decide(t, p); got != c.want {
			t.Errorf("%v, use %v, limit %v: %s, want %s", c.how, c.util, c.limit, got, c.want)
		}
	}
}

// Ensure that wrong parameters are refused, and what is said of each.
func TestWrongParams(t *testing.T) {
	const both = "eaco: no knowledge of work or no learner, want both"
	for _, c := range []struct {
		spoil func(*eaco.Params)
		want  string
	}{
		{func(p *eaco.Params) { p.Work = nil }, both}, {func(p *eaco.Params) { p.Learner = nil }, both},
		{func(p *eaco.Params) { p.Use = -1 }, "eaco: thresholds of use -1 and memory 1, want numbers in (0, 1]"},
		{func(p *eaco.Params) { p.Use = math.NaN() },
			"eaco: thresholds of use NaN and memory 1, want numbers in (0, 1]"},
		{func(p *eaco.Params) { p.Memory = 1.1 }, "eaco: thresholds of use 0.6 and memory 1.1, want numbers in (0, 1]"},
		{func(p *eaco.Params) { p.Most = 9 }, "eaco: 9 jobs on a GPU, want 1 to 8"},
		{func(p *eaco.Params) { p.Slow = 0.5 }, "eaco: slow-down limit 0.5, want a number >= 1 or inf"},
		{func(p *eaco.Params) { p.Slow = math.NaN() }, "eaco: slow-down limit NaN, want a number >= 1 or inf"},
		{func(p *eaco.Params) { p.Alone = -1 }, "eaco: jobs of priority -1 share with no one, want a priority > 0"},
		{func(p *eaco.Params) { p.Patience = math.Inf(1) }, "eaco: patience +Inf, want a number > 0"},
	} {
		p := generic(t)
		p.Work = newStill(1)
		if _, err := eaco.New(p); err != nil {
			t.Fatal(err)
		}
		c.spoil(&p)
		if _, err := eaco.New(p); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// Ensure that what SaveJob and SaveRest did not write is refused.
func TestLoadNonsense(t *testing.T) {
	s := newStill(1)
	s.add(trace.Job{Duration: hours(1), Spec: sched.JobSpec{GPUs: sched.Rigid(8)}}, -1)
	p := generic(t)
	p.Work = s
	d, err := eaco.New(p)
	if err != nil {
		t.Fatal(err)
	}
	if d.LoadJob(0, []byte{1, 2, 3}) == nil || d.LoadRest(nil) == nil || d.LoadRest([]byte{1, 200}) == nil {
		t.Error("nonsense is taken")
	}
}
