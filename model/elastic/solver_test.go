package elastic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// exhaustive searches all divisions, and returns the best sum in units with the first of its widths in the order of the
// tie rule: the last job as narrow as can be, then the one before, and so on.
func exhaustive(jobs []Job, gpus int) (best int64, widths []int, ok bool) {
	now := make([]int, len(jobs))
	var walk func(j, left int, sum int64)
	walk = func(j, left int, sum int64) {
		if j < 0 {
			if !ok || sum > best {
				best, widths, ok = sum, slices.Clone(now), true
			}
			return
		}
		for k := jobs[j].Min; k <= min(jobs[j].Max, left, len(jobs[j].S)-1); k++ {
			if s := unitsOf(jobs[j].S[k]); s > 0 {
				now[j] = k
				walk(j-1, left-k, sum+s)
			}
		}
	}
	walk(len(jobs)-1, gpus, 0)
	return best, widths, ok
}

// kinds of rows that random tests draw.
var kinds = []struct {
	name string
	row  func(r *rand.Rand, k int) float64 // what width k adds to the one before, or its factor if whole
	hole float64                           // probability
}{
	{"random", func(r *rand.Rand, k int) float64 { return r.Float64() * float64(k) }, 0.2},
	{"few values, many ties", func(r *rand.Rand, k int) float64 { return float64(1 + r.IntN(3)) }, 0.1},
	{"noisy roots", func(r *rand.Rand, k int) float64 { return math.Sqrt(float64(k)) * (0.8 + 0.4*r.Float64()) }, 0},
	{"steps", func(_ *rand.Rand, k int) float64 { return math.Exp2(math.Floor(math.Log2(float64(k)))) }, 0},
	{"linear", func(_ *rand.Rand, k int) float64 { return float64(k) }, 0},
	{"roots of some", func(r *rand.Rand, k int) float64 { return math.Pow(float64(k), 0.5) }, 0},
	{"superlinear start", func(_ *rand.Rand, k int) float64 { return float64(k*k) / float64(k+3) }, 0},
}

// randomJobs draws jobs of one kind, or of all if kind is len(kinds).
func randomJobs(r *rand.Rand, kind, n, widest int) []Job {
	jobs := make([]Job, n)
	for j := range jobs {
		k := kinds[min(kind, len(kinds)-1)]
		if kind == len(kinds) {
			k = kinds[r.IntN(len(kinds))]
		}
		s := make([]float64, 2+r.IntN(widest))
		for w := 1; w < len(s); w++ {
			if r.Float64() >= k.hole {
				s[w] = k.row(r, w)
			}
		}
		jobs[j] = Job{S: s, Min: 1 + r.IntN(2), Max: 2 + r.IntN(widest)}
	}
	return jobs
}

// Ensure that the literal programme and the fast one both give what a search through all divisions gives, widths
// included (test 11 of the specification).
func TestExhaustiveTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var table Table
	var solver Solver
	feasibleRuns := 0
	for range 4000 {
		jobs, gpus := randomJobs(r, r.IntN(len(kinds)+1), r.IntN(5), 8), r.IntN(9)
		want, widths, ok := exhaustive(jobs, gpus)
		table.Fill(jobs, gpus)
		got, okTable := table.At(len(jobs), gpus)
		tableWidths, _ := table.Widths(nil, gpus)
		answer, okSolver := solver.Solve(jobs, gpus)
		if ok != okTable || ok != okSolver {
			t.Fatalf("%v on %d: feasible %v, table %v, solver %v", jobs, gpus, ok, okTable, okSolver)
		}
		if !ok {
			continue
		}
		feasibleRuns++
		if unitsOf(got) != want || !slices.Equal(tableWidths, widths) {
			t.Fatalf("%v on %d: table %v %v, want %v %v", jobs, gpus, got, tableWidths, factorOf(want), widths)
		}
		if unitsOf(answer.Sum) != want || !slices.Equal(answer.Widths, widths) {
			t.Fatalf("%v on %d: solver %v %v, want %v %v", jobs, gpus, answer.Sum, answer.Widths, factorOf(want),
				widths)
		}
	}
	if feasibleRuns < 1000 {
		t.Errorf("%d feasible runs, want more", feasibleRuns)
	}
}

// Ensure that the fast methods give the literal programme's answer, to the last bit and with its ties, where no search
// through all divisions can go, and from memory that has been used for something else.
func TestTableTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var table Table
	var solver Solver
	for kind := range len(kinds) + 1 {
		for range 40 {
			jobs, gpus := randomJobs(r, kind, 1+r.IntN(30), 40), r.IntN(300)
			table.Fill(jobs, gpus)
			want, ok := table.At(len(jobs), gpus)
			widths, _ := table.Widths(nil, gpus)
			got, okSolver := solver.Solve(jobs, gpus)
			if ok != okSolver || ok && (got.Sum != want || !slices.Equal(got.Widths, widths)) {
				t.Fatalf("kind %d, %d jobs on %d: solver %v %v %v, want %v %v %v", kind, len(jobs), gpus, okSolver,
					got.Sum, got.Widths, ok, want, widths)
			}
			if used := sum(got.Widths); ok && got.Free != gpus-used {
				t.Fatalf("free %d of %d, used %d", got.Free, gpus, used)
			}
		}
	}
}

func sum(widths []int) (n int) {
	for _, k := range widths {
		n += k
	}
	return n
}

// Ensure that permuting jobs permutes the answer where there are no ties, that more GPUs never lower the optimum, and
// that P of each prefix of the jobs is that of the prefix alone (tests 12 and 14).
func TestRelations(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var table, other Table
	for range 100 {
		jobs, gpus := randomJobs(r, 0, 1+r.IntN(6), 10), 1+r.IntN(40)
		table.Fill(jobs, gpus)
		order := r.Perm(len(jobs))
		permuted := make([]Job, len(jobs))
		for i, j := range order {
			permuted[i] = jobs[j]
		}
		other.Fill(permuted, gpus)
		last := math.Inf(-1)
		for k := 0; k <= gpus; k++ {
			p, ok := table.At(len(jobs), k)
			q, _ := other.At(len(jobs), k)
			if p < last || p != q {
				t.Fatalf("P(J, %d) = %v after %v, permuted %v", k, p, last, q)
			}
			last = p
			if !ok {
				continue
			}
			a, _ := table.Widths(nil, k)
			b, _ := other.Widths(nil, k)
			for i, j := range order {
				if a[j] != b[i] {
					t.Fatalf("on %d GPUs widths %v, permuted by %v: %v", k, a, order, b)
				}
			}
		}
	}
}

// Ensure that a warm Solver and a warm Table allocate nothing.
func TestNoAllocation(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for kind := range kinds {
		jobs := randomJobs(r, kind, 50, 20)
		var table Table
		var solver Solver
		widths := make([]int, 0, len(jobs))
		if n := testing.AllocsPerRun(3, func() { solver.Solve(jobs, 400) }); n != 0 {
			t.Errorf("%s: Solve allocates %v times", kinds[kind].name, n)
		}
		if n := testing.AllocsPerRun(3, func() { table.Fill(jobs, 400); table.Widths(widths, 400) }); n != 0 {
			t.Errorf("%s: Table allocates %v times", kinds[kind].name, n)
		}
	}
}

// Ensure that speeds which make no sense give rows that can be divided.
func TestBadSpeeds(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct{ speed, want []float64 }{
		{[]float64{nan, 2, 4}, []float64{0, 1, 2}},
		{[]float64{0, nan, 4, -1, inf, 6}, []float64{0, 0, 2, 0, 0, 3}},
		{[]float64{0, 5e-324, 1}, []float64{0, 1, MaxFactor}},
		{[]float64{0, 1e-9, 1e9}, []float64{0, 1, MaxFactor}},
		{[]float64{0, math.MaxFloat64, math.MaxFloat64}, []float64{0, 1, 1}},
		{[]float64{0, 0, 0}, []float64{0, 0, 0}},
		{nil, nil},
	} {
		if got := Factors(nil, c.speed); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.speed, got, c.want)
		}
	}
	widest := Job{S: []float64{0, MaxFactor, MaxFactor}, Min: 1, Max: 2}
	jobs := slices.Repeat([]Job{widest}, MaxJobs)
	if a, ok := new(Solver).Solve(jobs, 2*MaxJobs); !ok || a.Sum != MaxFactor*MaxJobs {
		t.Errorf("sum %v, %v, want %v without overflow", a.Sum, ok, float64(MaxFactor*MaxJobs))
	}
}

// Ensure that sizes whose sums could overflow are refused.
func TestTooLarge(t *testing.T) {
	defer func() {
		if got, want := fmt.Sprint(recover()),
			"elastic: 0 jobs on -1 GPUs, want at most 16384 on 0..1048576"; got != want {
			t.Errorf("panic %q, want %q", got, want)
		}
	}()
	new(Solver).Solve(nil, -1)
}
