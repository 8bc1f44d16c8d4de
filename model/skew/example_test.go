package skew_test

import (
	"fmt"
	"strings"

	"github.com/trainyard/trainyard/model/skew"
)

func Example() {
	for _, model := range []string{"VGG-16", "ResNet-50", "mine"} {
		s, known := skew.Of(model)
		fmt.Printf("%s: known %v, consolidate %v\n", model, known, s > skew.PackLimit)
	}
	log := "0.1 4194304\n0.2 12582912\n0.9 4194304\n1.0 12582912\n"
	p, err := skew.ParseLog(strings.NewReader(log), "mine.log")
	fmt.Println(p.Tensors, p.Skew(), 1+skew.Penalty*p.Skew(), err)
	// Output:
	// VGG-16: known true, consolidate true
	// ResNet-50: known true, consolidate false
	// mine: known false, consolidate false
	// [4 12] 0.75 1.75 <nil>
}
