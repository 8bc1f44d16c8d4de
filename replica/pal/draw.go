package pal

import (
	"slices"

	"github.com/trainyard/trainyard/internal/mersenne"
)

// Draw returns the raw scores that the released simulator gives its GPUs: for each GPU and each class one row of the
// class's file, drawn with replacement, over the median of the file. Rows holds the iteration time of each row, in any
// unit, > 0, at least one; seed 0 means DefaultSeed. Draw reads its arguments only.
//
// The simulator looks GPUs up by number where the files have UUIDs, so it finds none and takes the branch for GPUs that
// were not measured: a single bad run becomes a lasting property of a GPU.
//
// Source: released simulator, cluster_state.py.
func Draw(seed uint32, gpus int, rows Scores) (pm Scores) {
	var medians [Classes]float64
	for c := range rows {
		medians[c] = median(rows[c])
	}
	m := newGenerator(seed)
	for range gpus {
		for c := range rows {
			pm[c] = append(pm[c], rows[c][m.Below(len(rows[c]))]/medians[c])
		}
	}
	return pm
}

func newGenerator(seed uint32) *mersenne.Generator {
	if seed == 0 {
		seed = DefaultSeed
	}
	return mersenne.New(seed)
}

// generatorAfter is the generator as Draw leaves it.
func generatorAfter(seed uint32, gpus int, rows [Classes]int) *mersenne.Generator {
	m := newGenerator(seed)
	for range gpus {
		for _, n := range rows {
			if n > 0 {
				m.Below(n)
			}
		}
	}
	return m
}

func median(xs []float64) float64 {
	sorted := slices.Sorted(slices.Values(xs))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
