// Package scaling has what a job and its launcher must agree on when the batch size changes: the word for how the
// learning rate follows it, and how it is divided over GPUs.
package scaling

import "fmt"

// Scaling says how the learning rate follows the batch size.
type Scaling uint8

// Scalings. See package speedup for what each keeps, and package restart for their factors.
const (
	Unscaled   Scaling = iota
	Linear             // speedup.LinearLR
	SquareRoot         // speedup.SquareRootLR
	AdaScale           // speedup.AdaScaleLR; SquareRoot while gradients are not known
)

var scalings = [...]string{"none", "linear", "sqrt", "adascale"}

// String returns the word of a known Scaling, as in a job file.
func (s Scaling) String() string { return scalings[s] }

// Parse returns the Scaling with a word.
func Parse(word string) (Scaling, error) {
	for i, w := range scalings {
		if w == word {
			return Scaling(i), nil
		}
	}
	return 0, fmt.Errorf("lr_scaling %.40q, want none, linear, sqrt or adascale", word)
}

// PerGPU returns the samples on each of width GPUs in one of accum rounds (0 = 1) of a batch: rounded down, but at
// least 1. A job makes as many rounds as the batch over PerGPU*width, rounded.
func PerGPU(global, width, accum int) int { return max(global/(width*max(accum, 1)), 1) }
