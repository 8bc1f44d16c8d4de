package boa

import (
	"fmt"
	"strings"

	"github.com/trainyard/trainyard/model/price"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
)

var _ sched.Explainer = (*widths)(nil)

// Explain says the price of GPU time, what the job's delay is worth, whether anything may be rented, its class and
// phase, its widths from here on by the price, and what each wider one saves.
func (w *widths) Explain(v *sched.View, j sched.JobID, say func(sched.Fact)) {
	job := &v.Jobs[j]
	if job.State == sched.Done {
		return
	}
	if p := w.plan.plan; w.spend.control != nil || p != nil && p.Price > 0 {
		say(sched.Fact{Name: "price", Value: w.price(), Unit: "waiting jobs per GPU"})
	}
	if x := w.menu.weight(job.Spec); x != 1 {
		say(sched.Fact{Name: "worth-of-delay", Value: x})
	}
	if w.spend.stopped() {
		say(sched.Fact{Name: "allowance-of-month", Text: "used up"})
	}
	if n := len(job.Target); n > 0 {
		say(sched.Fact{Name: "width", Value: float64(n), Unit: "GPUs"})
	}
	chain, phase, done := w.menu.curves.Chain(v, j)
	if chain == nil {
		say(sched.Fact{Name: "width-asked-for", Value: float64(job.Spec.GPUs.Want), Unit: "GPUs"})
		return
	}
	if i := w.plan.classFor(job.Spec.Model, w.menu.weight(job.Spec)); w.plan.plan != nil && i >= 0 {
		say(sched.Fact{Name: "class", Text: w.plan.classes[i].Name})
	}
	say(sched.Fact{Name: "phase", Value: float64(phase + 1)})
	say(sched.Fact{Name: "phases", Value: float64(len(chain))})
	say(sched.Fact{Name: "phase-done", Value: done})
	w.sayPath(job.Spec, j, phase, say)
	w.menu.sayWorth(job.Spec, &chain[phase], say)
}

// sayPath says the width that job j is to have in its phase, and those of all phases from it on, each from where it
// starts: "2:8 5:16". A job without a path as of now gets one at the next decision, and not by being asked about.
func (w *widths) sayPath(spec *sched.JobSpec, j sched.JobID, phase int, say func(sched.Fact)) {
	if int(j) >= len(w.jobs) {
		return
	}
	r := &w.jobs[j]
	at := phase - int(r.from)
	if r.version != w.version() || at < 0 || at >= len(r.path) {
		return
	}
	within := func(i int) int32 { return min(max(int32(w.menu.widths[i]), spec.GPUs.Min), spec.GPUs.Max) }
	var list []string
	for i, c := range r.path[at:] {
		if i == 0 || within(c) != within(r.path[at+i-1]) {
			list = append(list, fmt.Sprintf("%d:%d", phase+i+1, within(c)))
		}
	}
	say(sched.Fact{Name: "width-by-price", Value: float64(within(r.path[at])), Unit: "GPUs"})
	say(sched.Fact{Name: "widths-by-phase", Text: strings.Join(list, " ")})
}

// sayWorth says the width that costs least in a phase, and for each wider one that is worth having at some price what
// it saves of waiting, by what it is worth, for each GPU-second that it costs more than the one before: "2:0.6 4:0.2".
// But for restarts, a job takes what saves more than the price.
func (m *menu) sayWorth(spec *sched.JobSpec, phase *speedup.Phase, say func(sched.Fact)) {
	var points []price.Point
	for _, k := range m.widths {
		if k < len(phase.Speed) && phase.Speed[k] > 0 {
			t := phase.Size / phase.Speed[k]
			points = append(points, price.Point{Cost: float64(k) * t, Delay: t, Option: k})
		}
	}
	hull := price.Hull(points)
	if len(hull) == 0 {
		return
	}
	say(sched.Fact{Name: "cheapest-width", Value: float64(hull[0].Option), Unit: "GPUs"})
	var list []string
	for i := range len(hull) - 1 {
		list = append(list, fmt.Sprintf("%d:%.3g", hull[i+1].Option, m.weight(spec)*price.Worth(hull, i)))
	}
	if len(list) > 0 {
		say(sched.Fact{Name: "saved-per-gpu-second", Text: strings.Join(list, " ")})
	}
}
