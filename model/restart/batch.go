package restart

import (
	"fmt"
	"math"

	"github.com/trainyard/trainyard/model/scaling"
	"github.com/trainyard/trainyard/model/speedup"
)

// Split is how a global batch is made on a number of GPUs: in Accum rounds of PerGPU samples on each.
type Split struct{ PerGPU, Accum int }

// Samples returns the samples of a step on width GPUs. They differ from the batch asked for by less than width*Accum.
func (s Split) Samples(width int) int { return width * s.PerGPU * s.Accum }

// maxExtraAccum is how many times as many rounds as needed are tried for a split without rest.
const maxExtraAccum = 2

// Divide splits a global batch of samples over width GPUs, at most limit samples on one at a time (0 = no limit). It
// takes the fewest rounds in which the batch fits; of up to twice as many, the fewest that divide it without rest, if
// there are any: the batch is what the training was promised, a few more rounds cost little. Otherwise PerGPU is
// rounded down, to at least 1.
//
// It is an error if an argument is out of range, or the batch is smaller than the number of GPUs: some would have
// nothing.
func Divide(global, width, limit int) (Split, error) {
	if global < 1 || width < 1 || limit < 0 || global < width {
		return Split{}, fmt.Errorf("restart: batch of %d on %d GPUs, at most %d on each, want at least one sample "+
			"on each", global, width, limit)
	}
	if limit == 0 {
		limit = global
	}
	fewest := ceilDiv(ceilDiv(global, width), limit)
	for accum := fewest; accum <= maxExtraAccum*fewest && accum <= global/width; accum++ {
		if global%width == 0 && global/width%accum == 0 {
			return Split{global / width / accum, accum}, nil
		}
	}
	return Split{scaling.PerGPU(global, width, fewest), fewest}, nil
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// Factor returns the factor on the learning rate at a batch size, where it was chosen for start; both > 0. sqr and
// variance are those of the gradient at start; both 0 = not known. A job that reports them (grad_sqr, grad_var) at
// another batch size has the same sqr, and at start a variance larger by that size over start.
func Factor(s scaling.Scaling, batch, start int, sqr, variance float64) float64 {
	switch known := sqr+variance > 0 && !math.IsInf(sqr+variance, 1); {
	case s == scaling.Linear:
		return speedup.LinearLR(batch, start)
	case s == scaling.AdaScale && known:
		return speedup.AdaScaleLR(batch, start, sqr, variance)
	case s == scaling.SquareRoot || s == scaling.AdaScale:
		return speedup.SquareRootLR(batch, start)
	}
	return 1
}
