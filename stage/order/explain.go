package order

import (
	"math"

	"github.com/trainyard/trainyard/sched"
)

var (
	_ sched.Explainer = FIFO{}
	_ sched.Explainer = SJF{}
	_ sched.Explainer = SRTF{}
	_ sched.Explainer = SRSF{}
	_ sched.Explainer = FewestGPUs{}
	_ sched.Explainer = LAS{}
	_ sched.Explainer = (*MLFQ)(nil)
	_ sched.Explainer = (*LearnedGittins)(nil)
)

// Explain says the priority, unless it is the default.
func (o FIFO) Explain(v *sched.View, j sched.JobID, say func(sched.Fact)) {
	if o.Alike || v.Jobs[j].Spec.Priority == 0 {
		return
	}
	say(sched.Fact{Name: "priority", Value: float64(v.Jobs[j].Spec.Priority)})
}

// Explain says the whole work.
func (o SJF) Explain(v *sched.View, j sched.JobID, say func(sched.Fact)) {
	k, _ := o.Key(v, j)
	say(sched.Fact{Name: "whole-work", Value: k.Value, Unit: "s"})
}

// Explain says the remaining work.
func (o SRTF) Explain(v *sched.View, j sched.JobID, say func(sched.Fact)) {
	k, _ := o.Key(v, j)
	say(sched.Fact{Name: "remaining-work", Value: k.Value, Unit: "s"})
}

// Explain says the remaining service.
func (o SRSF) Explain(v *sched.View, j sched.JobID, say func(sched.Fact)) {
	k, _ := o.Key(v, j)
	say(sched.Fact{Name: "remaining-service", Value: k.Value, Unit: "GPU-seconds"})
}

// Explain says the width.
func (o FewestGPUs) Explain(v *sched.View, j sched.JobID, say func(sched.Fact)) {
	k, _ := o.Key(v, j)
	say(sched.Fact{Name: "width", Value: k.Value, Unit: "GPUs"})
}

// Explain says the attained service.
func (o LAS) Explain(v *sched.View, j sched.JobID, say func(sched.Fact)) {
	sayAttained(v, j, o.Seconds, 0, say)
}

// sayAttained says the attained service of job j since it was base.
func sayAttained(v *sched.View, j sched.JobID, seconds bool, base float64, say func(sched.Fact)) float64 {
	a, _ := attained(v, j, seconds)
	say(sched.Fact{Name: "attained-service", Value: a - base, Unit: unitOf(seconds)})
	return a - base
}

func unitOf(seconds bool) string {
	if seconds {
		return "s"
	}
	return "GPU-seconds"
}

// Explain says the queue, counted from 1, the attained service since the last promotion and the limit at which the job
// leaves its queue, the index if there is one, and how long it has waited and must have waited to be promoted.
func (o *MLFQ) Explain(v *sched.View, j sched.JobID, say func(sched.Fact)) {
	t := o.turn(j)
	if t == nil {
		return
	}
	say(sched.Fact{Name: "queue", Value: float64(t.queue + 1)})
	ex := sayAttained(v, j, o.Seconds, t.base, say)
	if int(t.queue) < len(o.Limits) {
		say(sched.Fact{Name: "queue-limit", Value: o.Limits[t.queue], Unit: unitOf(o.Seconds)})
	}
	if o.Index != nil {
		index := t.index
		if len(o.Limits) == 0 || t.rankedIn != t.queue+1 {
			index, _ = o.Index.At(ex, int(t.queue))
		}
		say(sched.Fact{Name: "gittins-index", Value: index})
	}
	if t.holding {
		return
	}
	say(sched.Fact{Name: "waited", Value: (t.waited + v.Now.Sub(t.since)).Seconds(), Unit: "s"})
	if ran := v.Jobs[j].RunNow(v.Now) - t.baseRun; t.queue > 0 && ran > 0 && o.Knob > 0 && !math.IsInf(o.Knob, 1) {
		say(sched.Fact{Name: "promoted-after", Value: ran.Seconds() * o.Knob, Unit: "s"})
	}
}

// Explain says what MLFQ does, and from how many jobs the index was learned.
func (g *LearnedGittins) Explain(v *sched.View, j sched.JobID, say func(sched.Fact)) {
	g.MLFQ.Explain(v, j, say)
	say(sched.Fact{Name: "sizes-learned", Value: float64(g.learned.Count()), Unit: "jobs"})
}
