package elastic_test

import (
	"fmt"

	"github.com/trainyard/trainyard/model/elastic"
)

// Two jobs on four GPUs: the first scales well, the second does not.
func Example() {
	jobs := []elastic.Job{
		{S: []float64{0, 1, 1.9, 2.7, 3.4}, Min: 1, Max: 4},
		{S: []float64{0, 1, 1.2, 1.3, 1.35}, Min: 1, Max: 4},
	}
	var solver elastic.Solver
	answer, ok := solver.Solve(jobs, 4)
	fmt.Printf("%v %v, sum %.1f\n", ok, answer.Widths, answer.Sum)

	var table elastic.Table
	table.Fill(jobs, 8)
	for k := 3; k <= 8; k++ {
		p, _ := table.At(2, k)
		before, _ := table.At(2, k-1)
		fmt.Printf("GPU %d is worth %.2f\n", k, p-before)
	}
	// Output:
	// true [3 1], sum 3.7
	// GPU 3 is worth 0.90
	// GPU 4 is worth 0.80
	// GPU 5 is worth 0.70
	// GPU 6 is worth 0.20
	// GPU 7 is worth 0.10
	// GPU 8 is worth 0.05
}
