package allocate

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/place"
)

// sizesOf are known sizes, in seconds.
type sizesOf []float64

// Left returns that of a job, twice.
func (s sizesOf) Left(_ *sched.View, j sched.JobID) (effective, expected float64) { return s[j], s[j] }

// Ensure that the price, what GPUs are worth to jobs, and for whom a job gave its GPUs up are reported as of the last
// decision, and that asking changes nothing that is saved.
func TestClearExplains(t *testing.T) {
	v, c := twoJobs(4, 4, 0)
	v.Jobs[0].Spec.GPUs, v.Jobs[1].Spec.GPUs = sched.Rigid(4), sched.Rigid(4)
	for g := range v.GPUs {
		v.GPUs[g].Holders = 1
	}
	v.Jobs[0].GPUs = v.Jobs[0].Target
	a := &Clear{Constants: Chosen(), Sizes: sizesOf{8000, 100}, Place: place.Count{},
		Rates: &Rates{Curves: c, Restart: func(string) time.Duration { return 10 * time.Second }}}
	var none int
	a.Prices(func(sched.TypeID, float64) { none++ })
	a.Bids(v, sched.None, func(sched.JobID, sched.Bid) { none++ })
	if none != 0 || facts(a, v, 0) != "" {
		t.Errorf("%d figures before the first decision, %q", none, facts(a, v, 0))
	}
	var d sched.Desired
	grants := a.Allocate(v, []int32{4}, []sched.JobID{0, 1}, &d, nil)
	if len(grants) != 1 || grants[0].Job != 1 {
		t.Fatalf("%+v, want all GPUs for the short job", grants)
	}
	before := a.SaveRest(a.SaveJob(1, a.SaveJob(0, nil)))
	var prices []float64
	a.Prices(func(_ sched.TypeID, p float64) { prices = append(prices, p) })
	bids := map[sched.JobID]sched.Bid{}
	a.Bids(v, sched.None, func(j sched.JobID, b sched.Bid) { bids[j] = b })
	w, h := bids[0], bids[1]
	if len(prices) != 1 || len(bids) != 2 || w.Held != 0 || w.Wants != 4 || !(w.Worth > 0) || w.Price != prices[0] ||
		w.Worth > w.Price || w.Left != 8000 || h.Held != 4 || !(h.Holds > h.Price) || h.Wants != 0 || h.Left != 100 {
		t.Errorf("prices %v, bids %+v", prices, bids)
	}
	a.Bids(v, 1, func(j sched.JobID, b sched.Bid) {
		if j != 1 || b != h {
			t.Errorf("job 1 alone: %d %+v, want %+v", j, b, h)
		}
	})
	lost, holds := facts(a, v, 0), facts(a, v, 1)
	for _, want := range []string{"gpu-price=", "worth-of-gpus=1-4:", "expected-work=8000 s", "restart=10 s",
		"gave-up-gpus-to=job 1", "gained-by-that=", "lost-by-that=", "horizon="} {
		if !strings.Contains(lost, want) {
			t.Errorf("job 0: %q, want %s", lost, want)
		}
	}
	if strings.Contains(holds, "gave-up") || strings.Contains(holds, "restart") {
		t.Errorf("job 1: %q", holds)
	}
	if !bytes.Equal(before, a.SaveRest(a.SaveJob(1, a.SaveJob(0, nil)))) {
		t.Error("asking changed what is saved")
	}
	v.Jobs[0].State = sched.Done
	if facts(a, v, 0) != "" {
		t.Errorf("a job that is done: %q", facts(a, v, 0))
	}
}
