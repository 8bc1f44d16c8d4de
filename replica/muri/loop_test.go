package muri

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Ensure that a pass costs each running job its overhead, at most what it did since the pass before, and that the end
// planned for it knows nothing of that.
func TestPassesCostProgress(t *testing.T) {
	one := Params{Policy: SRTF, Nodes: 1, NodeGPUs: 1}
	for _, c := range []struct {
		name string
		jobs []Job
		want []float64 // finish
	}{
		{"undisturbed", []Job{{"a", 1, 0, 100, 10, 1}}, []float64{100}},
		// at 50 a has done 40, so its end moves from 100 to 110
		{"one arrival", []Job{{"a", 1, 0, 100, 10, 1}, {"b", 1, 50, 200, 10, 1}}, []float64{110, 310}},
		// at 50 a has done 40, at 53 nothing more: 53 + 60
		{"two arrivals", []Job{{"a", 1, 0, 100, 10, 1}, {"b", 1, 50, 200, 10, 1}, {"c", 1, 53, 300, 10, 1}},
			[]float64{113, 313, 613}},
		// b preempts a at 50, which has 60 left; the end of b at 70 is the pass that starts a again
		{"preemption", []Job{{"a", 1, 0, 100, 10, 1}, {"b", 1, 50, 20, 10, 1}}, []float64{130, 70}},
	} {
		out := Run(c.jobs, one)
		for i := range out {
			if out[i].Finish != c.want[i] {
				t.Errorf("%s: job %s ends at %v, want %v", c.name, c.jobs[i].ID, out[i].Finish, c.want[i])
			}
		}
	}
}

// Ensure that a gang wider than a node takes the first whole nodes and the first other node for the rest, and that what
// does not fit is passed over.
func TestPlace(t *testing.T) {
	r := &run{p: Params{NodeGPUs: 8}}
	for _, c := range []struct {
		free []int
		gpus int
		want string
	}{
		{[]int{3, 8, 4}, 4, "[3 4 4] true"},
		{[]int{3, 8, 8}, 8, "[3 0 8] true"},
		{[]int{7, 7, 7}, 8, "[7 7 7] false"},
		{[]int{8, 3, 8, 8}, 16, "[0 3 0 8] true"},
		{[]int{8, 3, 8, 8}, 18, "[0 1 0 8] true"},
		{[]int{8, 1, 8, 8}, 20, "[0 1 0 4] true"},
		{[]int{8, 1, 8}, 18, "[8 1 8] false"},
		{[]int{8, 1, 8}, 32, "[8 1 8] false"},
	} {
		r.free = slices.Clone(c.free)
		fits := r.place(c.gpus)
		if got := fmt.Sprint(r.free, fits); got != c.want {
			t.Errorf("%d GPUs on %v: %s, want %s", c.gpus, c.free, got, c.want)
		}
	}
}

// Ensure that Tiresias demotes at its limits, and that a waiting job goes behind those that run in its queue.
func TestDemotion(t *testing.T) {
	jobs := []Job{{"long", 1, 0, 20000, 0, 1}, {"late", 1, 1000, 100, 0, 1}, {"last", 1, 5000, 100, 0, 1}}
	out := Run(jobs, Params{Policy: Tiresias, Nodes: 1, NodeGPUs: 1})
	// long falls at 3250 and late runs, then long again, which last preempts at 5000
	for i, want := range []Outcome{{0, 20200, 20000, 2, true, true}, {3250, 3350, 100, 0, true, true},
		{5000, 5100, 100, 0, true, true}} {
		if out[i] != want {
			t.Errorf("job %s: %+v, want %+v", jobs[i].ID, out[i], want)
		}
	}
}

// Ensure that a limit is a limit: a job that is half a millisecond short of it keeps its queue, and its GPU.
func TestLimitIsExact(t *testing.T) {
	jobs := []Job{{"long", 1, 0, 20000, 0, 1}, {"late", 1, 3249.9995, 100, 0, 1}}
	if out := Run(jobs, Params{Policy: Tiresias, Nodes: 1, NodeGPUs: 1}); out[1].Start != 3250 {
		t.Errorf("late starts at %v, want 3250", out[1].Start)
	}
}

// Ensure that ends within a relative 1e-9 are one under SRTF and SRSF, at the time of the first job of the list, and
// two under Tiresias.
func TestTies(t *testing.T) {
	later := 1e6 * (1 + 1e-10)
	jobs := []Job{{"a", 1, 0, 1e6, 0, 1}, {"b", 1, 0, later, 0, 1}, {"c", 1, 0, 1e6 * (1 + 1e-8), 0, 1}}
	for policy, want := range map[Policy]float64{SRTF: 1e6, SRSF: 1e6, Tiresias: later} {
		out := Run(jobs, Params{Policy: policy, Nodes: 1, NodeGPUs: 3})
		if out[0].Finish != 1e6 || math.Abs(out[1].Finish-want) > 1e-7 || math.Abs(out[2].Finish-1e6*(1+1e-8)) > 1e-7 {
			t.Errorf("policy %d: ends at %v, %v, %v, want b at %v", policy, out[0].Finish, out[1].Finish,
				out[2].Finish, want)
		}
	}
}

// Ensure that the clock does not stand still where rounding keeps a job below a limit.
func TestLimitIsReached(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 7))
		jobs := make([]Job, 40)
		now := 8192 * r.Float64() // 3250 s later the clock has fewer digits behind the point
		for i := range jobs {
			now += 500 * r.ExpFloat64()
			jobs[i] = Job{ID: fmt.Sprint(i), GPUs: 1 + r.IntN(3), Submit: now, Iterations: 1e4 * r.Float64(),
				Iteration: 1}
		}
		for i, o := range Run(jobs, Params{Policy: Tiresias, Nodes: 1, NodeGPUs: 4}) {
			if !o.Finished {
				t.Fatalf("seed %d: job %d: %+v", seed, i, o)
			}
		}
	}
}

func random(seed uint64, n int) []Job {
	r := rand.New(rand.NewPCG(seed, 9))
	jobs := make([]Job, n)
	now := 0.0
	for i := range jobs {
		now += math.Round(60 * r.ExpFloat64())
		jobs[i] = Job{ID: fmt.Sprint(i), GPUs: 1 << r.IntN(6), Submit: now,
			Iterations: math.Exp(4 + 2*r.NormFloat64()), Iteration: 1, Overhead: float64(r.IntN(12))}
	}
	return jobs
}

// Ensure, on random traces, that every job that fits finishes, after no less than its work, and that doubling all times
// doubles all outcomes of the schedules that have no times of their own.
func TestRandomTraces(t *testing.T) {
	for seed := range uint64(30) {
		jobs := random(seed, 150)
		for _, policy := range []Policy{SRTF, SRSF, Tiresias} {
			p := Params{Policy: policy, Nodes: 2, NodeGPUs: 8}
			out := Run(jobs, p)
			for i, o := range out {
				if o.Finished != (jobs[i].GPUs <= 16) ||
					o.Finished && (o.Run < jobs[i].Iterations-1e-6 || o.Finish-jobs[i].Submit < o.Run-1e-6) {
					t.Fatalf("seed %d, policy %d: %+v gives %+v", seed, policy, jobs[i], o)
				}
			}
			if !reflect.DeepEqual(out, Run(jobs, p)) {
				t.Fatalf("seed %d, policy %d: two runs differ", seed, policy)
			}
			if policy == Tiresias {
				continue
			}
			twice := slices.Clone(jobs)
			for i := range twice {
				twice[i].Submit, twice[i].Iteration, twice[i].Overhead = 2*jobs[i].Submit, 2, 2*jobs[i].Overhead
			}
			for i, o := range Run(twice, p) {
				if o.Finish != 2*out[i].Finish || o.Run != 2*out[i].Run || o.Preemptions != out[i].Preemptions {
					t.Fatalf("seed %d, policy %d: job %d at twice the times gives %+v, want twice %+v", seed, policy, i,
						o, out[i])
				}
			}
		}
	}
}

func TestWork(t *testing.T) {
	p, ok := ProfileOf("resnet18")
	if !ok {
		t.Fatal("resnet18 is not known")
	}
	// 443 whole iterations of 1010 ms in 448 s
	n, iteration, overhead := p.Work(448, 3)
	if n != 443 || math.Abs(iteration-1.010*1.015) > 1e-12 || overhead != 7 {
		t.Errorf("%v iterations of %v s, overhead %v, want 443 of %v, 7", n, iteration, overhead, 1.010*1.015)
	}
	if _, ok := ProfileOf("resnet50"); ok {
		t.Error("resnet50 is known")
	}
}

func TestValidate(t *testing.T) {
	ok := Params{Nodes: 2, NodeGPUs: 8}
	for _, c := range []struct {
		p    Params
		jobs []Job
		want string
	}{
		{ok, nil, ""},
		{Params{Policy: 3, Nodes: 2, NodeGPUs: 8}, nil, "published: policy 3, want 0 to 2"},
		{Params{Nodes: 2}, nil, "published: 2 nodes of 0 GPUs, want 1 to 1048576 GPUs"},
		{Params{Nodes: 1 << 11, NodeGPUs: 1 << 10}, nil, "published: 2048 nodes of 1024 GPUs, want 1 to 1048576 GPUs"},
		{ok, []Job{{"a", 0, 0, 1, 1, 1}}, `published: job "a": gpus 0, want 1 to 1048576`},
		{ok, []Job{{"a", 1, 5, 1, 1, 1}, {"b", 1, 4, 1, 1, 1}},
			`published: job "b": submit 4 s, want 5 to 1e+10: jobs in order of submission`},
		{ok, []Job{{"a", 1, 0, math.NaN(), 1, 1}}, `published: job "a": work NaN s, want 0 to 1e+10`},
		{ok, []Job{{"a", 1, 0, 1, -1, 1}}, `published: job "a": overhead -1 s, want 0 to 1e+10`},
	} {
		err := c.p.Validate(c.jobs)
		if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
	defer func() {
		if got := fmt.Sprint(recover()); !strings.HasPrefix(got, "published: 0 nodes") {
			t.Errorf("panic %v", got)
		}
	}()
	Run(nil, Params{})
}
