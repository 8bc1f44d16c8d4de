package variability_test

import (
	"fmt"
	"strings"

	"github.com/trainyard/trainyard/model/variability"
)

func Example() {
	const table = "gpu,node,pm_classA,pm_classD\n" +
		"0,0,0.96,1\n1,0,0.97,1\n2,0,1.05,1\n3,1,1.04,1\n4,1,0.96,1\n5,1,1.05,1\n"
	scores, err := variability.ReadScores(strings.NewReader(table), "scores.csv")
	if err != nil {
		fmt.Println(err)
		return
	}
	for c, bins := range (variability.Rule{}).All(scores) {
		fmt.Printf("class %s: bins %v, binned scores %.3f\n", scores.Classes[c], bins.Bin, bins.SF)
	}
	// Output:
	// class A: bins [0 0 1 1 0 1], binned scores [0.959 1.041]
	// class D: bins [0 0 0 0 0 0], binned scores [1.000]
}

func ExampleMeasure() {
	// Five runs of one GPU, one of them on a bad day, and five of another.
	var runs []variability.Run
	for i, perf := range []float64{100, 101, 99, 280, 100} {
		runs = append(runs, variability.Run{GPU: "gpu-a", Perf: perf},
			variability.Run{GPU: "gpu-b", Perf: 120 + float64(i%2)})
	}
	m, err := variability.Measure(runs, variability.ByGPU)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range m.GPUs {
		fmt.Printf("%s: %.3f, %.3f..%.3f with probability %.3f, worst %.3f\n", e.GPU, e.Score, e.Low, e.High,
			e.Coverage, e.Worst)
	}
	// Output:
	// gpu-a: 0.909, 0.900..2.545 with probability 0.938, worst 2.545
	// gpu-b: 1.091, 1.091..1.100 with probability 0.938, worst 1.100
}
