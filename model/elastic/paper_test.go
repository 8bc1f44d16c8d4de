package elastic

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/trainyard/trainyard/internal/shareddata"
)

// The numbers are those of the specification, section 4, which were worked out by hand and checked by search.

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-8 }

// whole is a job that may have any width of its row.
func whole(s ...float64) Job { return Job{S: append([]float64{0}, s...), Min: 1, Max: len(s)} }

var (
	jobA = whole(1, 1.9, 2.7, 3.4)
	jobB = whole(1, 1.2, 1.3, 1.35)
	jobC = whole(1, 1.6, 2, 2.2)
)

// solveBoth returns the division by the literal programme and by the fast one, which must agree.
func solveBoth(t *testing.T, jobs []Job, gpus int) (sum float64, widths []int, ok bool) {
	t.Helper()
	var table Table
	table.Fill(jobs, gpus)
	sum, ok = table.At(len(jobs), gpus)
	widths, _ = table.Widths(nil, gpus)
	answer, okFast := new(Solver).Solve(jobs, gpus)
	if ok != okFast || ok && (answer.Sum != sum || !slices.Equal(answer.Widths, widths)) {
		t.Fatalf("literal %v %v %v, fast %v %v %v", sum, widths, ok, answer.Sum, answer.Widths, okFast)
	}
	return sum, widths, ok
}

func TestTwoJobs(t *testing.T) { // 1
	var table Table
	jobs := []Job{jobA, jobB}
	table.Fill(jobs, 4)
	for j, want := range [][]float64{1: {1, 1.9, 2.7, 3.4}, 2: {math.Inf(-1), 2, 2.9, 3.7}} {
		for k, p := range want {
			got, ok := table.At(j, k+1)
			if ok == math.IsInf(p, -1) || ok && !near(got, p) || !ok && got != p {
				t.Errorf("P(%d, %d) = %v, want %v", j, k+1, got, p)
			}
		}
	}
	if _, widths, _ := solveBoth(t, jobs, 4); !slices.Equal(widths, []int{3, 1}) {
		t.Errorf("widths %v, want 3 1", widths)
	}
}

func TestThreeJobs(t *testing.T) { // 3
	sum, widths, _ := solveBoth(t, []Job{jobA, jobB, jobC}, 6)
	if !near(sum, 5.4) || !slices.Equal(widths, []int{4, 1, 1}) {
		t.Errorf("%v %v, want 5.4 with 4 1 1", sum, widths)
	}
}

// additive is the throughput model of the specification, section 2.1: time of a step in ms, linear in the samples on
// one GPU, and of an all-reduce of weights, independent of them.
type additive struct{ min, max, perGPU int }

func (a additive) speed(b, k int) float64 {
	perGPU := (b + k - 1) / k
	if perGPU > a.perGPU {
		return 0
	}
	comm := 0.0
	if k > 1 {
		comm = 40 * float64(k-1) / float64(k)
	}
	return float64(b) / (10 + float64(perGPU) + comm)
}

// row returns the best speeds by width, and the batch sizes that reach them, the smallest of several.
func (a additive) row(most int) (speed []float64, batch []int) {
	speed, batch = make([]float64, most+1), make([]int, most+1)
	for k := 1; k <= most; k++ {
		for b := a.min; b <= a.max; b++ {
			if x := a.speed(b, k); x > speed[k] {
				speed[k], batch[k] = x, b
			}
		}
	}
	return speed, batch
}

func TestThroughputModel(t *testing.T) { // 2
	speed, batch := additive{32, 128, 64}.row(5)
	want := []float64{0, 64.0 / 74, 1.361702, 1.606695, 1.777778, 1.882353}
	factors := Factors(nil, speed)
	for k, s := range []float64{0, 1, 1.574468, 1.857741, 2.055556, 2.176471} {
		if math.Abs(speed[k]-want[k]) > 1e-6 || math.Abs(factors[k]-s) > 1e-6 {
			t.Errorf("k = %d: X %v, S %v, want %v, %v", k, speed[k], factors[k], want[k], s)
		}
	}
	if !slices.Equal(batch, []int{0, 64, 128, 128, 128, 128}) {
		t.Errorf("batches %v", batch)
	}
	small, _ := additive{32, 32, 64}.row(4)
	for k, s := range []float64{0, 1, 0.913043, 0.881119, 0.875} {
		if got := Factors(nil, small)[k]; math.Abs(got-s) > 1e-6 {
			t.Errorf("batch 32, k = %d: S %v, want %v", k, got, s)
		}
	}
	large, _ := additive{128, 128, 64}.row(4)
	job := Job{S: Factors(nil, large), Min: 1, Max: 4}
	if least, ok := job.Least(); least != 2 || !ok {
		t.Errorf("batch 128: least width %d, want 2", least)
	}
	if !near(job.S[2], 2) {
		t.Errorf("batch 128: S(2) = %v, want 2: a GPU's share of the speed there is the unit", job.S[2])
	}
}

// Ensure that the optimiser with a range of one batch size is the baseline with that size fixed, and that a wider range
// is never slower at any width, nor needs more GPUs.
func TestFixedBatchTwin(t *testing.T) { // 13
	for b := 16; b <= 256; b += 16 {
		fixed, _ := additive{b, b, 64}.row(8)
		rule := Batches{Min: b, Max: b}
		for k := 1; k <= 8; k++ {
			for _, r := range []BatchRule{BatchMin, BatchMax, BatchRandom, BatchBest} {
				size := rule.Fixed(r, 0.7, []int{16, 64, b}, func(size int) float64 {
					return additive{b, b, 64}.speed(size, 4)
				})
				if got := (additive{b, b, 64}).speed(rule.At(r, size, k), k); got != fixed[k] {
					t.Errorf("batch %d on %d GPUs by rule %d: %v, want %v", b, k, r, got, fixed[k])
				}
			}
		}
		wide, _ := additive{max(b-32, 1), b + 32, 64}.row(8)
		for k := range wide {
			if wide[k] < fixed[k] {
				t.Errorf("batch %d ± 32 on %d GPUs: %v, alone %v", b, k, wide[k], fixed[k])
			}
		}
		a, c := Job{S: wide, Min: 1, Max: 8}, Job{S: fixed, Min: 1, Max: 8}
		if least, _ := a.Least(); least > first(c.Least()) {
			t.Errorf("batch %d ± 32 needs %d GPUs", b, least)
		}
	}
}

func first(k int, _ bool) int { return k }

// measured reads a table of ElasticFlow: the scaling factors for 1, 2, 4 and 8 GPUs at the best batch size, or at one.
func measured(t *testing.T, model string, batch int) Job {
	t.Helper()
	f, err := os.Open(filepath.Join(shareddata.DataDir(t), "colocation", "elasticflow", "throughputs_A100",
		model+".csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	number := func(cell string) float64 {
		x, err := strconv.ParseFloat(cell, 64)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	speed := make([]float64, 9)
	for c, head := range rows[0][1:] {
		k := int(number(head))
		for _, row := range rows[1:] {
			if b := number(row[0]); k <= 8 && (batch == 0 || b == float64(batch)) {
				speed[k] = max(speed[k], b*number(row[c+1]))
			}
		}
	}
	return Job{S: Factors(nil, speed), Min: 1, Max: 8}
}

func TestMeasuredData(t *testing.T) { // 4
	for _, c := range []struct {
		batch  int
		s      [3][4]float64
		gpus   int
		widths []int
		sum    float64
	}{
		{0, [3][4]float64{{1, 1.8708, 3.3584, 5.6303}, {1, 1.9204, 3.5335, 6.0872}, {1, 1.5887, 2.3639, 2.7956}}, 4,
			[]int{1, 2, 1}, 3.9204},
		{0, [3][4]float64{{1, 1.8708, 3.3584, 5.6303}, {1, 1.9204, 3.5335, 6.0872}, {1, 1.5887, 2.3639, 2.7956}}, 8,
			[]int{2, 4, 2}, 6.9930},
		{0, [3][4]float64{{1, 1.8708, 3.3584, 5.6303}, {1, 1.9204, 3.5335, 6.0872}, {1, 1.5887, 2.3639, 2.7956}}, 12,
			[]int{2, 8, 2}, 9.5467},
		{64, [3][4]float64{{1, 1.7300, 2.6741, 3.1076}, {1, 1.7882, 2.9200, 3.8254}, {1, 1.4333, 1.7173, 1.8340}}, 8,
			[]int{2, 4, 2}, 6.0833},
		{64, [3][4]float64{{1, 1.7300, 2.6741, 3.1076}, {1, 1.7882, 2.9200, 3.8254}, {1, 1.4333, 1.7173, 1.8340}}, 12,
			[]int{4, 4, 4}, 7.3114},
	} {
		var jobs []Job
		for i, model := range []string{"resnet50", "vgg16", "bert"} {
			j := measured(t, model, c.batch)
			for w, k := range []int{1, 2, 4, 8} {
				if math.Abs(j.S[k]-c.s[i][w]) > 5e-5 {
					t.Errorf("%s, batch %d: S(%d) = %v, want %v", model, c.batch, k, j.S[k], c.s[i][w])
				}
			}
			jobs = append(jobs, j)
		}
		sum, widths, _ := solveBoth(t, jobs, c.gpus)
		if math.Abs(sum-c.sum) > 1e-4 || !slices.Equal(widths, c.widths) {
			t.Errorf("batch %d on %d: %v %v, want %v %v", c.batch, c.gpus, sum, widths, c.sum, c.widths)
		}
	}
}

// linear is a job that scales perfectly.
func linear(most int) Job {
	s := make([]float64, most)
	for k := range s {
		s[k] = float64(k + 1)
	}
	return whole(s...)
}

// Ensure that two jobs that scale perfectly are served by the tie rule, and evenly where that is asked for.
func TestSqueeze(t *testing.T) { // 8
	jobs := []Job{linear(8), linear(8)}
	if _, widths, _ := solveBoth(t, jobs[:1], 8); !slices.Equal(widths, []int{8}) {
		t.Errorf("alone %v, want 8", widths)
	}
	if sum, widths, _ := solveBoth(t, jobs, 8); sum != 8 || !slices.Equal(widths, []int{7, 1}) {
		t.Errorf("%v %v, want 8 with 7 1", sum, widths)
	}
	for j := range jobs {
		jobs[j].S = Fair(nil, jobs[j].S, DefaultFairness)
	}
	if _, widths, _ := solveBoth(t, jobs, 8); !slices.Equal(widths, []int{4, 4}) {
		t.Errorf("fair: %v, want 4 4", widths)
	}
	for n := 3; n <= 5; n++ { // and so for more of them, the first get what is odd
		jobs = append(jobs, jobs[0])
		_, widths, _ := solveBoth(t, jobs, 8)
		if slices.Max(widths)-slices.Min(widths) > 1 ||
			!slices.IsSortedFunc(widths, func(a, b int) int { return b - a }) {
			t.Errorf("fair among %d: %v", n, widths)
		}
	}
}

func TestInfeasible(t *testing.T) { // 9
	sum, _, ok := solveBoth(t, []Job{jobA, jobB, jobC}, 2)
	if ok || !math.IsInf(sum, -1) {
		t.Errorf("three jobs on two GPUs: %v %v, want -Inf", sum, ok)
	}
	if _, _, ok = solveBoth(t, []Job{{S: []float64{0, 0, 0}, Min: 1, Max: 2}}, 5); ok {
		t.Error("a job that no width is possible for can run")
	}
}

func TestLargestWidth(t *testing.T) { // 10
	jobs := []Job{linear(8), linear(8)}
	for j := range jobs {
		jobs[j].Max = 3
	}
	answer, _ := new(Solver).Solve(jobs, 8)
	if _, widths, _ := solveBoth(t, jobs, 8); !slices.Equal(widths, []int{3, 3}) || answer.Free != 2 ||
		answer.Price != 0 {
		t.Errorf("%v, %d free at price %v, want 3 3, 2, 0", widths, answer.Free, answer.Price)
	}
}

// Ensure that Fair costs the sum no more than it says.
func TestFairBound(t *testing.T) {
	for _, weight := range []float64{DefaultFairness, 0.1, 1} {
		jobs := roots(20, 30)
		best, widths, _ := solveBoth(t, jobs, 100)
		fair := slices.Clone(jobs)
		for j := range fair {
			fair[j].S = Fair(nil, fair[j].S, weight)
		}
		_, even, _ := solveBoth(t, fair, 100)
		got, bound := 0.0, 0.0
		for j := range jobs {
			got += jobs[j].S[even[j]]
			bound += weight * (math.Log1p(jobs[j].S[even[j]]) - math.Log1p(jobs[j].S[widths[j]]))
		}
		if best-got > bound+1e-6 {
			t.Errorf("weight %v: the sum falls by %v, at most %v", weight, best-got, bound)
		}
	}
}
