package gittins_test

import (
	"fmt"

	"github.com/trainyard/trainyard/model/dist"
	"github.com/trainyard/trainyard/model/gittins"
)

// The worked example of Tiresias's slides: three jobs of 4, 8 and 12 GPU-seconds, and a quantum of 4.
func Example() {
	e, err := dist.NewEmpirical([]float64{4, 8, 12})
	if err != nil {
		fmt.Println(err)
		return
	}
	table := gittins.NewTable(e, 4, 0)
	for _, a := range []float64{0, 4, 8, 12} {
		fmt.Printf("attained %2v: index %.3f\n", a, table.At(a))
	}
	// Output:
	// attained  0: index 0.083
	// attained  4: index 0.125
	// attained  8: index 0.250
	// attained 12: index 0.000
}
