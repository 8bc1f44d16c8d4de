package price_test

import (
	"fmt"

	"github.com/trainyard/trainyard/model/price"
)

// Three jobs an hour of an hour's work each, whose speed on 1, 2, 4 and 8 GPUs is known, on 3.5 GPUs on average.
func Example() {
	class := price.Class{Name: "resnet", Rate: 3, Times: [][]float64{nil}}
	for _, s := range []struct {
		gpus  int
		speed float64
	}{{1, 1}, {2, 1.8}, {4, 3}, {8, 4.2}} {
		class.Configs = append(class.Configs, price.Config{GPUs: s.gpus})
		class.Times[0] = append(class.Times[0], 1/s.speed)
	}
	exact, err := price.NewExact([]price.Class{class})
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := exact.At(3.5)
	if err != nil {
		fmt.Println(err)
		return
	}
	m := plan.Classes[0]
	fmt.Printf("%d GPUs, and %d for %.0f%% of the jobs\n", class.Configs[m.Path[0]].GPUs,
		class.Configs[m.Other[0]].GPUs, 100*m.Share)
	fmt.Printf("%.1f GPUs on average, %.0f minutes per job\n", plan.Usage, 60*plan.Delay)
	fmt.Printf("one more GPU saves %.0f minutes\n", 60*plan.Price/3)
	// Output:
	// 2 GPUs, and 4 for 25% of the jobs
	// 3.5 GPUs on average, 30 minutes per job
	// one more GPU saves 20 minutes
}
