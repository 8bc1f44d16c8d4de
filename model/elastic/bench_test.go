package elastic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// general draws n rows of the given width that are neither concave nor monotone: powers of the width with noise of a
// twentieth, and a loss at each multiple of a node of 8.
func general(n, widest int) []Job {
	r := rand.New(rand.NewPCG(9, 10))
	jobs := make([]Job, n)
	for j := range jobs {
		s, p := make([]float64, widest+1), 0.4+0.55*r.Float64()
		for k := 1; k <= widest; k++ {
			s[k] = math.Pow(float64(k), p) * (1 + 0.05*r.Float64()) * (1 - 0.1*float64((k-1)/8%2))
		}
		jobs[j] = Job{S: s, Min: 1, Max: widest}
	}
	return jobs
}

// roots draws n concave rows.
func roots(n, widest int) []Job {
	r := rand.New(rand.NewPCG(11, 12))
	jobs := make([]Job, n)
	for j := range jobs {
		s, p := make([]float64, widest+1), 0.4+0.55*r.Float64()
		for k := 1; k <= widest; k++ {
			s[k] = math.Pow(float64(k), p)
		}
		jobs[j] = Job{S: s, Min: 1, Max: widest}
	}
	return jobs
}

// steps draws n rows that rise at powers of two only and are all alike: the worst case, as nothing distinguishes the
// jobs apart.
func steps(n, widest int) []Job {
	jobs := make([]Job, n)
	for j := range jobs {
		s := make([]float64, widest+1)
		for k := 1; k <= widest; k++ {
			s[k] = math.Exp2(0.9 * math.Floor(math.Log2(float64(k))))
		}
		jobs[j] = Job{S: s, Min: 1, Max: widest}
	}
	return jobs
}

func BenchmarkTable(b *testing.B) {
	for _, size := range []struct{ jobs, gpus, widest int }{{100, 400, 10}, {200, 400, 64}, {1000, 10000, 64}} {
		b.Run(fmt.Sprintf("%dx%d,%d", size.jobs, size.gpus, size.widest), func(b *testing.B) {
			jobs := general(size.jobs, size.widest)
			var table Table
			widths := make([]int, 0, len(jobs))
			table.Fill(jobs, size.gpus)
			b.ReportAllocs()
			for b.Loop() {
				table.Fill(jobs, size.gpus)
				table.Widths(widths, size.gpus)
			}
		})
	}
}

func BenchmarkSolver(b *testing.B) {
	for _, size := range []struct {
		name               string
		rows               func(n, widest int) []Job
		jobs, gpus, widest int
	}{
		{"general", general, 200, 400, 64}, {"general", general, 1000, 10000, 64},
		{"general", general, 5000, 10000, 64},
		{"steps", steps, 1000, 10000, 64}, {"steps", steps, 1000, 9999, 64},
		{"concave", roots, 200, 400, 64}, {"concave", roots, 1000, 10000, 64}, {"concave", roots, 5000, 10000, 64},
		{"concave", roots, 5000, 10000, 2000},
	} {
		b.Run(fmt.Sprintf("%s/%dx%d,%d", size.name, size.jobs, size.gpus, size.widest), func(b *testing.B) {
			jobs := size.rows(size.jobs, size.widest)
			var solver Solver
			solver.Solve(jobs, size.gpus)
			b.ReportAllocs()
			for b.Loop() {
				solver.Solve(jobs, size.gpus)
			}
			b.ReportMetric(float64(len(solver.core.jobs)), "undecided")
		})
	}
}
