package whatif

import (
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/trainyard/trainyard/model/dist"
)

// resampled returns w as it might have been learned: of every distribution a sample with replacement (Efron, 1979). What
// is not known of the distributions themselves makes all jobs of one simulated future long, or short, together.
func (w *Work) resampled(r *rand.Rand) *Work {
	x := *w
	x.Earlier = make(map[string]*dist.Empirical, len(w.Earlier))
	for _, class := range slices.Sorted(maps.Keys(w.Earlier)) {
		x.Earlier[class] = resample(w.Earlier[class], r)
	}
	if w.All != nil {
		x.All = resample(w.All, r)
	}
	return &x
}

func resample(e *dist.Empirical, r *rand.Rand) *dist.Empirical {
	sizes := e.Sizes()
	drawn := make([]float64, len(sizes))
	for i := range drawn {
		drawn[i] = sizes[r.IntN(len(sizes))]
	}
	again, err := dist.NewEmpirical(drawn)
	if err != nil {
		return e // cannot be: they were sizes before
	}
	return again
}
