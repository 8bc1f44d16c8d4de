package allocate

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/model/elastic"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
)

// row is a chain of one phase of these speeds on 1, 2, ... GPUs.
func row(speed ...float64) speedup.Chain {
	return speedup.Chain{{Size: 1, Curve: speedup.Curve{Speed: append([]float64{0}, speed...)}}}
}

// twoJobs are the jobs A and B of the specification of elastic scaling, section 4, on one node, each with so many GPUs,
// the GPUs of A first.
func twoJobs(gpus, a, b int) (*sched.View, curves) {
	v := &sched.View{Now: 100e9, Nodes: []sched.Node{{Spec: sched.NodeSpec{GPUs: gpus, Pool: sched.None}}},
		GPUs: make([]sched.GPU, gpus)}
	first := 0
	for _, n := range []int{a, b} {
		j := sched.Job{Spec: &sched.JobSpec{GPUs: sched.Range{Min: 1, Want: 1, Max: 4},
			Types: sched.TypeSet(0).With(0)}, State: sched.Waiting}
		for range n {
			j.Target = append(j.Target, sched.GPUID(first))
			first++
		}
		if n > 0 {
			j.State, j.Attempts = sched.Active, 1
		}
		v.Jobs = append(v.Jobs, j)
	}
	return v, curves{row(1, 1.9, 2.7, 3.4), row(1, 1.2, 1.3, 1.35)}
}

// explained divides the GPUs there are, then explains a job.
func explained(a *Divide, v *sched.View, j sched.JobID) string {
	var d sched.Desired
	a.Allocate(v, []int32{int32(len(v.GPUs))}, []sched.JobID{0, 1}, &d, nil)
	return facts(a, v, j)
}

func facts(e sched.Explainer, v *sched.View, j sched.JobID) string {
	var list []string
	e.Explain(v, j, func(f sched.Fact) {
		if f.Text != "" {
			list = append(list, fmt.Sprintf("%s=%s", f.Name, f.Text))
			return
		}
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s=%.4g %s", f.Name, f.Value, f.Unit)))
	})
	return strings.Join(list, "; ")
}

const (
	rowA = "scaling-factors=1:1 2:1.9 3:2.7 4:3.4"
	rowB = "scaling-factors=1:1 2:1.2 3:1.3 4:1.35"
)

// Ensure that each rule says what it weighs, by the worked examples of the specification, and what it leaves out.
func TestExplain(t *testing.T) {
	worth := "; worth-of-gpus=3:0.9 4:0.8 5:0.7 6:0.2 7:0.1 8:0.05"
	for _, c := range []struct {
		name       string
		rule       Rule
		gpus, a, b int // that there are, and that A and B hold
		job        sched.JobID
		want       string
	}{
		{"sum, wide", &Sum{}, 4, 3, 1, 0, "width=3 GPUs; " + rowA + "; sum-of-factors=3.7; one-gpu-more-adds=0.7; " +
			"one-gpu-less-takes=0.8" + worth},
		{"sum, narrow", &Sum{}, 4, 3, 1, 1, "width=1 GPUs; " + rowB + "; sum-of-factors=3.7; one-gpu-more-adds=0.7; " +
			"one-gpu-less-takes=0.8" + worth},
		{"sum, nothing to spare", &Sum{}, 2, 1, 1, 0,
			"width=1 GPUs; " + rowA + "; sum-of-factors=2; one-gpu-more-adds=0.9; one-gpu-less-takes=+Inf; " +
				"worth-of-gpus=3:0.9 4:0.8"},
		{"sum, more than can be used", &Sum{}, 10, 4, 4, 0, "width=4 GPUs; " + rowA +
			"; sum-of-factors=4.75; one-gpu-more-adds=0; one-gpu-less-takes=0; worth-of-gpus=3:0.9 4:0.8 5:0.7 6:0.2 " +
			"7:0.1 8:0.05 9-20:0"},
		{"sum, left out", &Sum{}, 1, 1, 0, 1, rowB + "; fewest=1 GPUs; left-beyond-fewest-of-others=0 GPUs"},
		{"evenly", Evenly{}, 4, 2, 2, 1, "width=2 GPUs; " + rowB},
		{"afs-l", AFSL{}, 4, 3, 1, 0, "width=3 GPUs; " + rowA + "; ends-in=1333 s; gain-by-a-gpu-now=0.2593; " +
			"gain-by-a-gpu-later=0.2059"},
		{"afs-l, widest", AFSL{}, 5, 4, 1, 0, "width=4 GPUs; " + rowA + "; ends-in=1059 s"},
		{"optimus", Optimus{}, 4, 3, 1, 1, "width=1 GPUs; " + rowB + "; ends-in=3600 s; saved-by-a-gpu=600 s"},
		{"optimus, widest", Optimus{}, 5, 4, 1, 0, "width=4 GPUs; " + rowA + "; ends-in=1059 s; saved-by-a-gpu=0 s"},
		{"pollux", &Pollux{PerNode: 4, Restart: restarts(25), Seen: &Widest{gpus: []int32{3, 1}}}, 4, 3, 1, 0,
			"width=3 GPUs; " + rowA + "; fair-share=2 GPUs; speedup-over-fair-share=1.421; other-widths-count=0.8; " +
				"widest-now=4 GPUs"},
		{"pollux, narrow", &Pollux{PerNode: 4, Restart: restarts(25), Seen: &Widest{gpus: []int32{3, 1}}}, 4, 3, 1, 1,
			"width=1 GPUs; " + rowB + "; fair-share=2 GPUs; speedup-over-fair-share=0.8333; other-widths-count=0.8; " +
				"widest-now=2 GPUs"},
	} {
		v, known := twoJobs(c.gpus, c.a, c.b)
		_, sum := c.rule.(*Sum)
		a := &Divide{Rates: &Rates{Curves: known, Work: hour{}}, Rule: c.rule, Admits: sum}
		if got := explained(a, v, c.job); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.name, got, c.want)
		}
	}
}

// Ensure that what a restart costs is reported, and the batch size; nothing of a job that is done; and what remains to
// be given where more must run than fits.
func TestExplainMore(t *testing.T) {
	v, known := twoJobs(4, 3, 1)
	v.Jobs[0].Batch = 64
	a := &Divide{Rates: &Rates{Curves: known, Horizon: 100 * time.Second, Restart: restarts(25)}, Rule: &Sum{},
		Admits: true}
	want := "width=3 GPUs; batch=64 samples; " + rowA +
		"; other-widths-count=0.75; sum-of-factors=3.7; one-gpu-more-adds=0; one-gpu-less-takes=1.275; "
	if got := explained(a, v, 0); !strings.HasPrefix(got, want) {
		t.Errorf("%s, want %s...", got, want)
	}
	v.Jobs[0].State = sched.Done
	if got := facts(a, v, 0); got != "" {
		t.Errorf("of a job that is done: %s", got)
	}
	claims := []Claim{{Job: elastic.Job{S: []float64{0, 0, 0, 3}, Min: 3, Max: 3}, Move: 1}}
	(&Sum{}).report(v, claims, 0, 2, func(f sched.Fact) {
		if f.Name != "short-of-fewest" || f.Value != 1 {
			t.Errorf("%+v, want that one GPU is missing", f)
		}
	})
}

// Ensure that systems that scale the cluster say what it is worth, behind what they divide, and that ByClass passes
// on.
func TestExplainAutoscale(t *testing.T) {
	v, known := twoJobs(4, 3, 1)
	p := &Pollux{PerNode: 4, Restart: restarts(25), Seen: &Widest{}}
	a := &Autoscale{Divide: &Divide{Rates: &Rates{Curves: known}, Rule: p}, Pollux: p, Utility: 0.5, Most: 3,
		Interval: time.Minute, nodes: 2, seen: []float64{.9, .75}}
	want := "width=1 GPUs; " + rowB + "; fewest=1 GPUs; nodes-worth-having=2 nodes; utility=0.75; utility-wished=0.5"
	for _, e := range []sched.Explainer{a, ByClass{Grants: a}} {
		if got := facts(e, v, 1); got != want {
			t.Errorf("%T: %s, want %s", e, got, want)
		}
	}
}

// Ensure that in random scenes of several types explaining any job between divisions changes none of them.
func TestExplainChangesNothing(t *testing.T) {
	for seed := range uint64(300) {
		var grants [2][]sched.Grant
		for asked := range grants {
			s := randomScene(rand.New(rand.NewPCG(seed, 1)), 1+int(seed%3))
			a := &Divide{Rates: &s.rates, Rule: &Sum{Fairness: elastic.DefaultFairness * float64(seed%2)}, Admits: true}
			for range 3 {
				var d sched.Desired
				grants[asked] = append(grants[asked], a.Allocate(&s.v, slices.Clone(s.room), s.order, &d, nil)...)
				for j := range s.v.Jobs {
					if asked == 1 {
						a.Explain(&s.v, sched.JobID(j), func(sched.Fact) {})
					}
				}
			}
		}
		if !reflect.DeepEqual(grants[0], grants[1]) {
			t.Fatalf("seed %d: %v, asked %v", seed, grants[0], grants[1])
		}
	}
}
