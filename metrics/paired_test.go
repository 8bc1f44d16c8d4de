package metrics_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/trainyard/trainyard/metrics"
)

// Ensure that the interval of a paired difference holds the difference, is narrow where all jobs gain alike however
// much they differ, is wide where few decide, and that there is none of too few jobs.
func TestPaired(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var base, alike, few []time.Duration
	for i := range 400 {
		d := time.Duration(1+r.IntN(1_000_000)) * time.Millisecond
		base, alike = append(base, d), append(alike, d*9/10)
		if few = append(few, d); i == 17 {
			few[i] = d + time.Duration(100)*time.Hour
		}
	}
	p := metrics.Pair(alike, base)
	if p == nil || p.Blocks != 40 || math.Abs(p.Diff+0.1) > 1e-6 || p.High-p.Low > 1e-6 {
		t.Errorf("all a tenth less: %+v", p)
	}
	if p = metrics.Pair(few, base); p == nil || p.Diff <= 0 || p.Low > 1e-9 || p.High < p.Diff {
		t.Errorf("one of them much more: %+v, want an interval from 0 on", p)
	}
	if again := metrics.Pair(few, base); *again != *p {
		t.Errorf("%+v, then %+v", p, again)
	}
	if p = metrics.Pair(base[:199], base[:199]); p != nil {
		t.Errorf("199 jobs: %+v, want none below 20 blocks of 10", p)
	}
	if p = metrics.Pair(base[:200], base[:200]); p == nil || p.Blocks != 20 {
		t.Errorf("200 jobs: %+v, want 20 blocks", p)
	}
	base[3], alike[5] = -1, -1
	if p = metrics.Pair(alike, base); p == nil || math.Abs(p.Diff+0.1) > 1e-6 {
		t.Errorf("with two that did not end: %+v", p)
	}
}
