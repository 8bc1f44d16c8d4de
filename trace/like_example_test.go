package trace_test

import (
	"fmt"

	"github.com/trainyard/trainyard/trace"
)

// Count what the jobs of a month on a cluster like Venus ask for, without holding them in memory.
func ExampleGenerator_All() {
	g, err := trace.Like("venus")
	if err != nil {
		panic(err)
	}
	g.Seed, g.Jobs = 1, 20_000
	wide := 0
	for j := range g.All() {
		if j.Spec.GPUs.Want > 8 {
			wide++
		}
	}
	fmt.Printf("%.0f %% of %d jobs are wider than a node of 8\n", 100*float64(wide)/float64(g.Jobs), g.Jobs)
	// Output: 10 % of 20000 jobs are wider than a node of 8
}
