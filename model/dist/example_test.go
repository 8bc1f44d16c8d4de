package dist_test

import (
	"fmt"
	"strings"

	"github.com/trainyard/trainyard/model/dist"
)

func Example() {
	e, err := dist.Read(strings.NewReader("duration\n12\n4\n8\n"), "sizes.csv")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e.Count(), e.CDF(8) > 0.6, e.Quantile(0.5))
	_, err = dist.Read(strings.NewReader("duration\n12\nsoon\n"), "sizes.csv")
	fmt.Println(err)
	// Output:
	// 3 true 8
	// dist: sizes.csv: line 3: "soon", want a number >= 0
}

func ExampleLearned() {
	var l dist.Learned
	for i := range dist.FirstCount {
		fmt.Print(l.Version(), " ")
		l.Observe(float64(100 * i))
	}
	fmt.Println(l.Version(), l.Sample().Max())
	// Output: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 1500
}
