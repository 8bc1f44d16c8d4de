package local

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/attempt/progress"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that where an attempt starts shows whether a job keeps its work of which no save was seen, unless its counts
// say nothing: the steps of each attempt, and what its first step shows.
func TestResumesUnseen(t *testing.T) {
	t.Parallel()
	const nothing = -1
	type run struct {
		steps []int64
		shows int32
	}
	for name, runs := range map[string][]run{
		"from one again":       {{[]int64{1, 2, 50}, nothing}, {[]int64{1}, nothing}},
		"the next step":        {{[]int64{1, 2, 50}, nothing}, {[]int64{51}, sched.WentOn}},
		"a checkpoint before":  {{[]int64{1, 2, 150}, nothing}, {[]int64{101}, sched.WentOn}},
		"each tenth":           {{[]int64{10, 20, 200}, nothing}, {[]int64{210}, sched.WentOn}},
		"after a silent one":   {{[]int64{1, 50}, nothing}, {nil, nothing}, {[]int64{51}, sched.WentOn}},
		"never a step before":  {{nil, nothing}, {[]int64{51}, nothing}, {[]int64{51}, nothing}},
		"one step before":      {{[]int64{1}, nothing}, {[]int64{1}, nothing}},
		"counts from a number": {{[]int64{5000, 5001, 5002}, nothing}, {[]int64{5003}, nothing}},
		"by the clock, faster": {{[]int64{57, 110}, nothing}, {[]int64{115}, nothing}},
		"jumps":                {{[]int64{1, 50}, nothing}, {[]int64{math.MaxInt64}, nothing}},
		"jumped":               {{[]int64{1, math.MaxInt64}, nothing}, {[]int64{51}, nothing}},
		"counts each epoch":    {{[]int64{1, 50, 1, 50}, nothing}, {[]int64{1}, nothing}},
		"counts short epochs":  {{[]int64{50, 100, 50, 100}, nothing}, {[]int64{150}, nothing}},
		"too few":              {{[]int64{1, 2}, nothing}, {[]int64{3}, nothing}},
		"few, by the clock":    {{[]int64{1, 10}, nothing}, {[]int64{8}, nothing}},
		"ranks":                {{[]int64{1, 1, 2, 1, 2, 3, 2, 29, 28, 29}, nothing}, {[]int64{30}, sched.WentOn}},
		"goes on, then not": {{[]int64{1, 50}, nothing}, {[]int64{51, 90}, sched.WentOn},
			{[]int64{1}, nothing}, {[]int64{90}, nothing}},
	} {
		r := newReader()
		for i, run := range runs {
			kept := r.a.odo.Kept
			r.tail = newTail(&attempt{d: r.a.d, odo: progress.NewOdometer(1, kept, 0)},
				progress.NewReader(progress.Auto), func(e sched.Event) { r.reported = append(r.reported, e) })
			r.a.odo.Number(int32(i+1), false)
			r.reported = nil
			for k, step := range run.steps {
				r.at(float64(k), fmt.Sprintf("TRAINYARD step=%d\n", step))
			}
			shown := int32(nothing)
			for _, e := range r.reported {
				if e.Kind == sched.Saved {
					shown = e.Code
				}
			}
			if shown != run.shows {
				t.Errorf("%s: attempt %d shows %d, want %d", name, i+1, shown, run.shows)
			}
			if bad := r.a.odo.Validate(); bad != nil {
				t.Errorf("%s: %v", name, bad)
			}
		}
	}
}

// Ensure that a first step again is a start over where the total says that the attempt before was in the same count,
// and no epoch says otherwise.
func TestStartsOver(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"TRAINYARD step=1 total=900":                      true,
		"TRAINYARD step=1 total=900 epoch=0.01":           true,
		"TRAINYARD step=1 total=900 epoch=3":              false,
		"TRAINYARD step=1 total=300":                      false,
		"TRAINYARD step=1":                                false,
		"  0%|          | 1/900 [00:01<00:15, 36.10it/s]": true,
		"  0%|          | 1/300 [00:01<00:15, 36.10it/s]": false,
	} {
		r := newReader()
		r.a.odo.FirstStep = 1
		r.a.odo.Origin = progress.Origin{Attempt: 2, Reached: 500}
		r.at(0, line+"\n")
		if r.a.odo.Steps() != 1 {
			t.Errorf("%q: step %d, want 1", line, r.a.odo.Steps())
		}
		over := slices.ContainsFunc(r.reported, func(e sched.Event) bool {
			return e.Kind == sched.Saved && e.Code == sched.StartedOver
		})
		if over != want {
			t.Errorf("%q after step 500: started over is %v, want %v", line, over, want)
		}
	}
}
