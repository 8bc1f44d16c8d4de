package boa

import (
	"math"
	"testing"
	"time"

	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that the response is that of the curves, whatever the rates: widths are 1/price where s = k^0.5, and GPU time
// their root; at prices at which all widths are the least, or the largest, there is none, and none is known before
// anything arrived. Reference: specs of BOA, section 4.1.
func TestResponse(t *testing.T) {
	root := &speedup.Throughputs{Batches: []int{1}, Worth: speedup.Samples{3600}, Rates: [][]float64{nil}}
	for k := 1; k <= 64; k++ {
		root.GPUs, root.Rates[0] = append(root.GPUs, k), append(root.Rates[0], math.Sqrt(float64(k)))
	}
	p := Params{Budget: 8, Priced: true, Known: Known{PerNode: 1,
		Curves:  speedup.NewOracle(map[string]speedup.App{"root": root}, 1, 64),
		Restart: func(string) time.Duration { return 0 }}}
	w, err := newWidths(p)
	if err != nil {
		t.Fatal(err)
	}
	v := &sched.View{}
	if w.seen.response(v, &w.menu) != nil {
		t.Error("a response before anything arrived")
	}
	for range 3 {
		v.Jobs = append(v.Jobs, sched.Job{Spec: &sched.JobSpec{Model: "root",
			GPUs: sched.Range{Min: 1, Want: 1, Max: 64}}})
		w.Observe(v, &sched.Event{Kind: sched.JobArrived, Job: sched.JobID(len(v.Jobs) - 1)})
		r := w.seen.response(v, &w.menu)
		for price, want := range map[float64]float64{1. / 8: 0.5, 1. / 16: 0.5, 50: 0, 1. / 1000: 0} {
			if got := r(price); math.Abs(got-want) > 0.05 {
				t.Errorf("%d jobs: response %.3f at price %v, want %v", len(v.Jobs), got, price, want)
			}
		}
	}
}
