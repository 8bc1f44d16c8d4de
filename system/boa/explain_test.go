package boa

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
)

// twoPhases is a source of one chain, of jobs a quarter through its first phase: on 1, 2 and 4 GPUs that takes 100,
// 62.5 and 50 s, the second 100, 90.9 and 87.
type twoPhases struct{}

var phases = speedup.Chain{
	{Size: 100, Curve: speedup.Curve{Speed: []float64{0, 1, 1.6, 0, 2}}},
	{Size: 100, Curve: speedup.Curve{Speed: []float64{0, 1, 1.1, 0, 1.15}}},
}

func (twoPhases) Chain(*sched.View, sched.JobID) (speedup.Chain, int, float64) { return phases, 0, .25 }

// Ensure that price, class, phase, widths and savings are reported by a worked example, and that a job without a path
// gets none by that.
func TestExplain(t *testing.T) {
	const of = "; phase=1; phases=2; phase-done=0.25"
	const saved = "; cheapest-width=1 GPUs; saved-per-gpu-second=2:1.5 4:0.167"
	const atEighth = "price=0.125 waiting jobs per GPU"
	p := Params{Budget: 2.5, Known: Known{Curves: twoPhases{}, PerNode: 4,
		Restart: func(string) time.Duration { return 0 }}, plan: exactly}
	priced, known, weighty := p, p, p
	priced.Priced, weighty.Priced, weighty.Weight = true, true, 2
	known.Mix = []speedup.Class{{Model: "a", Rate: .01, Chain: phases}}
	for _, c := range []struct {
		name   string
		p      Params
		spec   sched.JobSpec
		before string // it was looked at
		after  string
	}{
		{"by price", priced, sched.JobSpec{}, atEighth + of + saved,
			atEighth + of + "; width-by-price=4 GPUs; widths-by-phase=1:4 2:1" + saved},
		{"narrow", priced, sched.JobSpec{GPUs: sched.Range{Max: 2}}, atEighth + of + saved,
			atEighth + of + "; width-by-price=2 GPUs; widths-by-phase=1:2 2:1" + saved},
		{"of priority", weighty, sched.JobSpec{Priority: 1},
			atEighth + "; worth-of-delay=2" + of + "; cheapest-width=1 GPUs; saved-per-gpu-second=2:3 4:0.333",
			atEighth + "; worth-of-delay=2" + of +
				"; width-by-price=4 GPUs; widths-by-phase=1:4 2:2; cheapest-width=1 GPUs; saved-per-gpu-second=2:3 " +
				"4:0.333"},
		// 2 GPUs are the least on which it gets done, a quarter more buys 2 GPUs in the first phase, and what is left
		// is worth 1/6.
		{"by plan", known, sched.JobSpec{Model: "a"}, "price=0.1667 waiting jobs per GPU; class=a" + of + saved,
			"price=0.1667 waiting jobs per GPU; class=a" + of + "; width-by-price=2 GPUs; widths-by-phase=1:2 2:1" +
				saved},
	} {
		w, err := newWidths(c.p)
		if err != nil {
			t.Fatal(err)
		}
		if c.spec.GPUs.Max == 0 {
			c.spec.GPUs.Max = 4
		}
		c.spec.GPUs.Min, c.spec.GPUs.Want = 1, 1
		w.menu.offerFor(phases)
		v := &sched.View{Jobs: []sched.Job{{Spec: &c.spec, State: sched.Waiting}}}
		saved := w.SaveRest(w.SaveJob(0, nil))
		if got := facts(w, v); got != c.before {
			t.Errorf("%s, not looked at:\n%s, want\n%s", c.name, got, c.before)
		}
		if now := w.SaveRest(w.SaveJob(0, nil)); len(w.jobs) > 0 || !reflect.DeepEqual(now, saved) {
			t.Errorf("%s: asking gave the job a path", c.name)
		}
		w.look(v, 0)
		if got := facts(w, v); got != c.after {
			t.Errorf("%s:\n%s, want\n%s", c.name, got, c.after)
		}
		v.Jobs[0].State = sched.Done
		if got := facts(w, v); got != "" {
			t.Errorf("%s: of a job that is done: %s", c.name, got)
		}
	}
}

// Ensure that a job whose user changes it gets another path, by what it is worth from now on.
func TestChangedJobGetsAnotherPath(t *testing.T) {
	p := Params{Budget: 2.5, Known: Known{Curves: twoPhases{}, PerNode: 4,
		Restart: func(string) time.Duration { return 0 }}, plan: exactly, Priced: true, Weight: 2}
	w, err := newWidths(p)
	if err != nil {
		t.Fatal(err)
	}
	w.menu.offerFor(phases)
	spec := sched.JobSpec{GPUs: sched.Range{Min: 1, Want: 1, Max: 4}}
	v := &sched.View{Jobs: []sched.Job{{Spec: &spec, State: sched.Waiting}}}
	w.Observe(v, &sched.Event{Kind: sched.JobArrived, Job: 0})
	w.look(v, 0)
	before := facts(w, v)
	c := spec.Change()
	c.Priority = 1
	v.Jobs[0].Spec = spec.Changed(&c)
	w.Observe(v, &sched.Event{Kind: sched.JobChanged, Job: 0, Change: &c})
	w.look(v, 0)
	after := facts(w, v)
	if !strings.Contains(before, "widths-by-phase=1:4 2:1") || !strings.Contains(after, "widths-by-phase=1:4 2:2") {
		t.Errorf("before:\n%s\nafter:\n%s\nwant the second phase on 1 GPU, then on 2", before, after)
	}
}

func facts(e sched.Explainer, v *sched.View) string {
	var list []string
	e.Explain(v, 0, func(f sched.Fact) {
		if f.Text != "" {
			list = append(list, fmt.Sprintf("%s=%s", f.Name, f.Text))
			return
		}
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s=%.4g %s", f.Name, f.Value, f.Unit)))
	})
	return strings.Join(list, "; ")
}
