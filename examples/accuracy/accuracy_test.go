package main

import (
	"math"
	"testing"
)

// Ensure that mean and interval are those of paired differences: of 1, 2 and 3 the mean is 2, the deviation 1.
func TestDifference(t *testing.T) {
	mean, half := difference([]pair{{1, 1, 2}, {2, 5, 7}, {3, 0, 3}})
	if want := 4.303 / math.Sqrt(3); mean != 2 || math.Abs(half-want) > 1e-9 {
		t.Errorf("%v +- %v, want 2 +- %v", mean, half, want)
	}
}

// Ensure that both ways end after all samples, the last with the batch size that the rate is meant for.
func TestPhases(t *testing.T) {
	for _, phases := range [][]phase{alone, resized} {
		at := 0.
		for _, p := range phases {
			if p.until <= at || math.Abs(p.scale-math.Sqrt(float64(p.batch)/64)) > 1e-12 {
				t.Errorf("%+v after %v", p, at)
			}
			at = p.until
		}
		if last := phases[len(phases)-1]; at != 1 || last.batch != 64 {
			t.Errorf("the last phase is %+v", last)
		}
	}
}
