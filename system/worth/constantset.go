package worth

import (
	"fmt"

	"github.com/trainyard/trainyard/model/price/step"
	"github.com/trainyard/trainyard/model/remaining"
	"github.com/trainyard/trainyard/stage/allocate"
)

// Constants names all constants that decide, with their values: those of set, and those in code. Equal texts are equal
// sets.
func Constants(set *allocate.Constants) string {
	return fmt.Sprintf("%+v Quantum:%v Horizon:%v Company:%+v KWh:%v %s %s", *set, quantum, horizon, limits, DefaultKWh,
		step.Constants(),
		remaining.Constants())
}
