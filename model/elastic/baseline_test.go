package elastic

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestFIFO(t *testing.T) {
	holes := Job{S: []float64{0, 1, 1.5, 0, 2}, Min: 1, Max: 4}
	for _, c := range []struct {
		name string
		jobs []Job
		gpus int
		want []int
	}{
		{"equal growth, the odd ones to the first", []Job{linear(8), linear(8), linear(8)}, 8, []int{3, 3, 2}},
		{"up to the maximum", []Job{linear(2), linear(8)}, 8, []int{2, 6}},
		{"speed does not matter", []Job{whole(1, 0.5, 0.2), linear(8)}, 6, []int{3, 3}},
		{"a minimum that is not left is passed over", []Job{linear(3), {S: linear(8).S, Min: 6, Max: 8}, linear(1)}, 5,
			[]int{3, 0, 1}},
		{"steps over holes", []Job{holes, linear(8)}, 7, []int{4, 3}},
		{"a step that does not fit is left to others", []Job{holes, linear(3)}, 5, []int{2, 3}},
	} {
		if got := FIFO(nil, c.jobs, c.gpus); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// division is a case of a rule that looks at the work that is left of each job.
type division struct {
	name string
	jobs []Job
	left []float64
	gpus int
	want []int
}

// divide compares what a rule gives with what is wanted.
func divide(t *testing.T, rule func(jobs []Job, left []float64, gpus int) []int, cases []division) {
	t.Helper()
	for _, c := range cases {
		if got := rule(c.jobs, c.left, c.gpus); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// Ensure that AFS-L decides as worked out by hand from the rule.
func TestAFSL(t *testing.T) {
	divide(t, afsl, []division{
		{"one GPU goes to the shorter", []Job{linear(8), linear(8)}, []float64{20, 10}, 1, []int{0, 1}},
		// The shorter gains 1/1 by its second, no less than the 1/1 that the other gains by its first; by its third
		// 1/2.
		{"two go to a shorter one that scales perfectly", []Job{linear(8), linear(8)}, []float64{20, 10}, 2,
			[]int{0, 2}},
		{"the third to the other", []Job{linear(8), linear(8)}, []float64{20, 10}, 3, []int{1, 2}},
		// 1/2 for the other's second is not above 1/2 for the shorter one's third.
		{"the fourth to the shorter", []Job{linear(8), linear(8)}, []float64{20, 10}, 4, []int{1, 3}},
		{"a short one that does not scale gets one", []Job{linear(8), whole(1, 1.1, 1.1)}, []float64{20, 10}, 5,
			[]int{4, 1}},
		{"nothing beyond the maximum", []Job{linear(2), linear(2)}, []float64{20, 10}, 9, []int{2, 2}},
		{"minima are one step", []Job{{S: linear(8).S, Min: 4, Max: 8}, linear(8)}, []float64{5, 10}, 3, []int{0, 3}},
	})
}

func TestOptimus(t *testing.T) {
	divide(t, func(jobs []Job, left []float64, gpus int) []int {
		return Optimus(nil, jobs, left, gpus, nil)
	}, []division{
		{"one each, then the longest first", []Job{linear(8), linear(8)}, []float64{100, 10}, 4, []int{3, 1}},
		{"ties to the first", []Job{linear(8), linear(8)}, []float64{10, 10}, 3, []int{2, 1}},
		{"no GPU without a gain", []Job{whole(1, 0.9, 4), linear(2)}, []float64{10, 10}, 6, []int{1, 2}},
		{"what is not left is not given", []Job{{S: linear(8).S, Min: 3, Max: 8}, linear(2)}, []float64{10, 10}, 2,
			[]int{0, 2}},
	})
}

// Ensure that every baseline gives each job a possible width or nothing, never more GPUs than there are, and never a
// larger sum than the optimiser where all jobs get something.
func TestBaselinesAreDivisions(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	for range 500 {
		jobs, gpus := randomJobs(r, len(kinds), 1+r.IntN(8), 10), r.IntN(40)
		left := make([]float64, len(jobs))
		for j := range left {
			left[j] = 1 + 100*r.Float64()
		}
		answer, ok := new(Solver).Solve(jobs, gpus)
		for name, widths := range map[string][]int{
			"fifo": FIFO(nil, jobs, gpus), "afs-l": afsl(jobs, left, gpus),
			"optimus": Optimus(nil, jobs, left, gpus, nil),
		} {
			total, all := 0.0, true
			for j, k := range widths {
				all = all && k > 0
				if k == 0 {
					continue
				}
				if k < jobs[j].Min || k > jobs[j].most() || jobs[j].S[k] == 0 {
					t.Fatalf("%s: width %d of %+v", name, k, jobs[j])
				}
				total += jobs[j].S[k]
			}
			if sum(widths) > gpus {
				t.Fatalf("%s: %v on %d", name, widths, gpus)
			}
			if all && (!ok || total > answer.Sum+1e-6) {
				t.Fatalf("%s: %v with %v, the best is %v with %v", name, total, widths, answer.Sum, answer.Widths)
			}
		}
	}
}

func TestFixedBatch(t *testing.T) {
	b := Batches{Min: 32, Max: 128}
	speed := func(batch int) float64 { return map[int]float64{16: 99, 32: 1, 64: 3, 96: 3, 128: 2}[batch] }
	for _, c := range []struct {
		rule BatchRule
		draw float64
		want int
	}{
		{BatchMin, 0, 32}, {BatchMax, 0, 128}, {BatchRandom, 0, 32}, {BatchRandom, 0.5, 80},
		{BatchRandom, 0.9999999, 128},
		{BatchBest, 0, 64}, {BatchPerGPU, 0, 32},
	} {
		if got := b.Fixed(c.rule, c.draw, []int{16, 32, 64, 96, 128}, speed); got != c.want {
			t.Errorf("rule %d, draw %v: %d, want %d", c.rule, c.draw, got, c.want)
		}
	}
	if got := b.Fixed(BatchBest, 0, []int{16}, speed); got != 32 {
		t.Errorf("nothing to choose from: %d, want the smallest", got)
	}
	for gpus, want := range map[int]int{1: 32, 2: 64, 4: 128, 5: 128} {
		if got := b.At(BatchPerGPU, 32, gpus); got != want {
			t.Errorf("per GPU on %d: %d, want %d", gpus, got, want)
		}
	}
}

func afsl(jobs []Job, left []float64, gpus int) []int {
	widths := make([]int, len(jobs))
	AFSL(widths, jobs, left, gpus)
	return widths
}
