package tiresias

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// randomJobs makes a small crowded trace with many ties in time.
func randomJobs(rnd *rand.Rand, n, maxWidth int) (jobs []Job) {
	for i := range n {
		jobs = append(jobs, Job{ID: fmt.Sprint(i), GPUs: 1 + rnd.IntN(maxWidth), Submit: rnd.Int64N(60),
			Duration: 1 + rnd.Int64N(40)})
	}
	return jobs
}

func randomParams(rnd *rand.Rand) Params {
	p := Params{GPUs: 8, Seconds: rnd.IntN(3) == 0, Knob: []float64{0, 0.5, 1, 2, 8, math.Inf(1)}[rnd.IntN(6)]}
	for limit := int64(0); rnd.IntN(4) > 0; {
		limit += rnd.Int64N(60)
		p.Limits = append(p.Limits, limit)
	}
	if !p.Seconds && rnd.IntN(2) == 0 {
		p.Gittins, p.Delta, p.Samples = true, 1+rnd.Int64N(50), []int64{3, 5, 8, 13, 40, 41, 90, 200}
	}
	return p
}

// Ensure that after every pass no GPU has two owners, each job in the system is in exactly one queue, running ones
// first, time never goes back, and that every job that fits finishes, also with limits that would stop the released
// simulator.
func TestInvariants(t *testing.T) {
	for seed := range uint64(600) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		jobs, p := randomJobs(rnd, 30, 10), randomParams(rnd)
		r := newRun(jobs, p)
		for passes, last := 0, int64(0); !r.done(); passes++ {
			r.pass()
			if r.now < last || passes > 100_000 {
				t.Fatalf("seed %d: pass %d at %d, before at %d; %+v", seed, passes, r.now, last, p)
			}
			last = r.now
			checkQueues(t, r)
		}
		for i, o := range r.outcomes() {
			if fits := jobs[i].GPUs <= p.GPUs; o.Finished != fits || fits && o.End < o.Start {
				t.Fatalf("seed %d: job %+v: %+v; %+v", seed, jobs[i], o, p)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, p)
		}
	}
}

func checkQueues(t *testing.T, r *run) {
	t.Helper()
	used, held := 0, map[*job]bool{}
	for i := range r.queues {
		q := &r.queues[i]
		usedHere, narrow := 0, math.MaxInt
		for k, j := range slices.Concat(q.running, q.waiting) {
			if held[j] || j.queue != i || j.Finished || j.running != (k < len(q.running)) {
				t.Errorf("at %d: queue %d, place %d: %+v", r.now, i, k, j)
			}
			held[j] = true
			if j.running {
				usedHere += j.GPUs
			} else {
				narrow = min(narrow, j.GPUs)
			}
		}
		if q.used != usedHere || q.narrow > narrow {
			t.Errorf("at %d: queue %d: used %d, narrow %d, want %d, at most %d", r.now, i, q.used, q.narrow, usedHere,
				narrow)
		}
		used += usedHere
	}
	if used > r.GPUs || len(held) != inSystem(r) {
		t.Errorf("at %d: %d GPUs used of %d, %d jobs queued of %d", r.now, used, r.GPUs, len(held), inSystem(r))
	}
}

// inSystem counts the jobs submitted and not ended.
func inSystem(r *run) int {
	n := len(r.all)
	for _, a := range r.arrivals {
		n -= len(a.jobs)
	}
	for i := range r.all {
		if r.all[i].Finished {
			n--
		}
	}
	return n
}

// Ensure that schedules that should be the same are: one queue, or limits out of reach, and fjf; a knob that is never
// reached and none; Gittins with a knob and without Gittins; seconds and GPU-seconds for one-GPU jobs.
func TestSameSchedules(t *testing.T) {
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		jobs, p := randomJobs(rnd, 30, 8), randomParams(rnd)
		backfill := twinQueue(jobs, &twinNodes{perNode: 8, free: []int{8}}, true)
		same := func(name string, a, b []Outcome) {
			if !slices.Equal(a, b) {
				t.Errorf("seed %d: %s:\n%+v\n%+v", seed, name, a, b)
			}
		}
		same("K=1 and fjf", Run(jobs, Params{GPUs: 8}), backfill)
		same("high limits and fjf", Run(jobs, Params{GPUs: 8, Limits: []int64{1000, maxService}}), backfill)
		same("high knob and none", Run(jobs, Params{GPUs: 8, Limits: p.Limits, Knob: 1e300}),
			Run(jobs, Params{GPUs: 8, Limits: p.Limits, Knob: math.Inf(1)}))
		same("gittins with knob", Run(jobs, Params{GPUs: 8, Limits: p.Limits, Knob: 2, Gittins: true}),
			Run(jobs, Params{GPUs: 8, Limits: p.Limits, Knob: 2}))
		for i := range jobs {
			jobs[i].GPUs = 1
		}
		same("one GPU each", Run(jobs, Params{GPUs: 3, Limits: p.Limits, Seconds: true}),
			Run(jobs, Params{GPUs: 3, Limits: p.Limits}))
	}
}

// Ensure that Run leaves its arguments alone, orders outcomes as jobs, and does not care for the order of a trace whose
// submissions are distinct.
func TestOrderOfJobs(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 3))
	jobs := randomJobs(rnd, 40, 8)
	for i := range jobs {
		jobs[i].Submit = int64(i) * 3
	}
	p := Params{GPUs: 8, Limits: []int64{30, 90}, Gittins: true, Samples: []int64{50, 20, 10}, Delta: 20}
	want := Run(jobs, p)
	rnd.Shuffle(len(jobs), func(i, k int) { jobs[i], jobs[k] = jobs[k], jobs[i] })
	before := slices.Clone(jobs)
	got := Run(jobs, p)
	if !slices.Equal(jobs, before) || !slices.Equal(p.Samples, []int64{50, 20, 10}) {
		t.Error("Run changed its arguments")
	}
	for i, o := range got {
		if o.ID != jobs[i].ID {
			t.Fatalf("outcome %d is of job %s, want %s", i, o.ID, jobs[i].ID)
		}
		if k := slices.IndexFunc(want, func(w Outcome) bool { return w.ID == o.ID }); o != want[k] {
			t.Errorf("shuffled: %+v, before %+v", o, want[k])
		}
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		p    Params
		want string
	}{
		{Params{GPUs: 1}, "<nil>"},
		{Params{}, "published: gpus 0, want 1 to 1048576"},
		{Params{GPUs: 1, Knob: -1}, "published: promote knob -1, want >= 0"},
		{Params{GPUs: 1, Knob: math.NaN()}, "published: promote knob NaN, want >= 0"},
		{Params{GPUs: 1, Limits: []int64{5, 4}}, "published: limit 1 is 4, want 5 to 1152921504606846976"},
		{Params{GPUs: 1, Gittins: true}, "published: no samples, want at least 1 for gittins"},
		{Params{GPUs: 1, Gittins: true, Knob: 1}, "<nil>"},
		{Params{GPUs: 1, Gittins: true, Seconds: true}, "published: gittins ranks by GPU-seconds, want seconds off"},
		{Params{GPUs: 1, Gittins: true, Samples: []int64{3, 0}}, "published: sample 1 is 0 GPU-seconds, want 1 to " +
			"1099511627776"},
		{Params{GPUs: 1, Delta: -1}, "published: delta -1 GPU-seconds, want 0 (default) to 1099511627776"},
	} {
		if got := fmt.Sprint(c.p.Validate()); got != c.want {
			t.Errorf("%+v: %s, want %s", c.p, got, c.want)
		}
	}
	defer func() {
		if got := fmt.Sprint(recover()); got != `published: job "x": gpus 0, want 1 to 1048576` {
			t.Errorf("panic %q", got)
		}
	}()
	Run([]Job{{ID: "x"}}, Params{GPUs: 1})
}

func Example() {
	jobs := []Job{{ID: "J1", GPUs: 2, Duration: 200}, {ID: "J2", GPUs: 1, Duration: 800},
		{ID: "J3", GPUs: 2, Duration: 600}}
	for _, o := range Run(jobs, Params{GPUs: 2, Limits: []int64{400}}) {
		fmt.Printf("%s starts %d ends %d preempted %d\n", o.ID, o.Start, o.End, o.Preemptions)
	}
	// Output:
	// J1 starts 0 ends 200 preempted 0
	// J2 starts 200 ends 1200 preempted 1
	// J3 starts 600 ends 1600 preempted 1
}

// manyJobs makes a trace for 1,280 GPUs with a heavy tail: service bounded Pareto, shape 0.6, 120 to 500,000
// GPU-seconds (mean about 5,000), near half of the jobs on one GPU; gap is the mean time between submissions in
// seconds.
func manyJobs(n int, gap float64) (jobs []Job) {
	rnd := rand.New(rand.NewPCG(7, 7))
	widths := []int{1, 1, 1, 1, 1, 2, 4, 4, 8, 8, 16, 32}
	submit := 0.0
	for i := range n {
		w := widths[rnd.IntN(len(widths))]
		const lo, hi, shape = 120.0, 500_000.0, 0.6
		service := lo * math.Pow(1-rnd.Float64()*(1-math.Pow(lo/hi, shape)), -1/shape)
		submit += rnd.ExpFloat64() * gap
		jobs = append(jobs, Job{ID: fmt.Sprint(i), GPUs: w, Submit: int64(submit),
			Duration: max(1, int64(service)/int64(w))})
	}
	return jobs
}

func manySamples(jobs []Job) (samples []int64) {
	for _, j := range jobs[:min(1000, len(jobs))] {
		samples = append(samples, int64(j.GPUs)*j.Duration)
	}
	return samples
}

// BenchmarkRun plays 5,000 jobs on 1,280 GPUs: at a load the cluster can bear, and above it, where queues grow.
func BenchmarkRun(b *testing.B) {
	limits := []int64{3250, 7200}
	for _, load := range []struct {
		name string
		gap  float64
	}{{"busy", 1.5}, {"overload", 0.8}} {
		jobs := manyJobs(5000, load.gap)
		for _, c := range []struct {
			name string
			p    Params
		}{
			{"dlas", Params{GPUs: 1280, Limits: limits, Seconds: true}},
			{"dlas-gpu", Params{GPUs: 1280, Limits: limits}},
			{"dlas-gpu-8", Params{GPUs: 1280, Limits: limits, Knob: 8}},
			{"dlas-gpu-gittins", Params{GPUs: 1280, Limits: limits, Gittins: true, Samples: manySamples(jobs)}},
		} {
			b.Run(load.name+"/"+c.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					r := newRun(jobs, c.p)
					passes, sum := 0, 0
					for ; !r.done(); passes++ {
						r.pass()
						for i := range r.queues {
							sum += len(r.queues[i].running) + len(r.queues[i].waiting)
						}
					}
					b.ReportMetric(float64(passes), "passes")
					b.ReportMetric(float64(preemptions(r.outcomes())), "preemptions")
					b.ReportMetric(float64(sum)/float64(passes), "jobs/pass")
				}
			})
		}
	}
}
