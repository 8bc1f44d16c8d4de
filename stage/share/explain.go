package share

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/model/footprint"
	"github.com/trainyard/trainyard/sched"
)

// Separate returns a copy that can be asked what would be decided: its scratch and its explanations of sets are its
// own.
func (c *Core) Separate() Core {
	x := *c
	x.finder, x.ask = finder{rule: c.finder.rule}, newPredictor(c.Know.Learner)
	return x
}

// Separate returns such a copy; nil where nothing is known of job j, or it is done.
func (d *Company) Separate(v *sched.View, j sched.JobID) *Company {
	if !d.primed || int(j) >= len(d.Held) || int(j) >= len(d.jobs) || v.Jobs[j].State == sched.Done {
		return nil
	}
	x := *d
	x.Core, x.crowd = d.Core.Separate(), nil
	return &x
}

// Primed reports whether the book shows all of the view.
func (c *Core) Primed() bool { return c.primed }

// ReportHeld says how many jobs share the GPUs of job j, how much that slows it and may, and of a trial who is the
// newcomer, when it is over at the latest, and how much slower the epoch was that was timed.
func (d *Company) ReportHeld(v *sched.View, j sched.JobID, say func(sched.Fact)) {
	say(sched.Fact{Name: "jobs-on-its-gpus", Value: float64(d.size(j))})
	slow := d.slowOff(v, j, nil)
	say(sched.Fact{Name: "slow-down-predicted", Value: slow})
	d.ReportLimit(v, j, slow, say)
	for _, o := range d.open {
		d.crowd = d.partner(d.Held[o], d.crowd)
		if !slices.Contains(d.crowd, j) {
			continue
		}
		say(sched.Fact{Name: "on-trial", Text: NameOf(v, o)})
		if m := &d.jobs[o]; m.until != sched.Never {
			say(sched.Fact{Name: "trial-over-in", Value: max(m.until.Sub(v.Now), 0).Seconds(), Unit: "s"})
		}
		if took, alone := d.jobs[j].took, d.Know.epoch(v, j); took > 0 && alone > 0 {
			say(sched.Fact{Name: "slow-down-measured", Value: float64(took) / float64(alone)})
		}
		return
	}
}

// ReportLimit says how much slower than alone job j may be, or what it has to spare if it is so much slower.
func (d *Company) ReportLimit(v *sched.View, j sched.JobID, slow float64, say func(sched.Fact)) {
	if end := v.Jobs[j].Spec.Deadline; end > 0 {
		say(sched.Fact{Name: "slack", Value: end.Sub(d.Know.finish(v, j, slow)).Seconds(), Unit: "s"})
		return
	}
	say(sched.Fact{Name: "slow-down-limit", Value: d.limits.Slow})
}

// mostReported bounds the sets that are reported one by one.
const mostReported = 4

// ReportSets says what keeps job j, which needs n, from sharing, how many GPUs it may have by themselves and what bars
// it from the others, and the sets that were looked at, the most used first.
func (d *Company) ReportSets(v *sched.View, j sched.JobID, n Need, say func(sched.Fact)) {
	sets := 0
	set := d.First(v, n, func(gpus []sched.GPUID) bool {
		r := d.Admits(v, j, gpus)
		if sets++; sets <= mostReported {
			say(sched.Fact{Name: fmt.Sprintf("set-%d", sets), Text: where(v, gpus) + ": " + d.reportRefusal(v, r)})
		}
		return r.Code == Admitted
	})
	say(sched.Fact{Name: "sets-looked-at", Value: float64(sets)})
	if set != nil {
		say(sched.Fact{Name: "fits", Text: where(v, set)})
	}
}

// HeldBy returns how many GPUs a user holds.
func (b *book) HeldBy(v *sched.View, user string) (n int) {
	for id := range b.Held {
		if v.Jobs[id].Spec.User == user {
			n += len(b.Held[id])
		}
	}
	return n
}

var barNames = [bars]string{"gpus-it-may-have", "gpus-not-shared", "gpus-full", "gpus-too-used", "gpus-short-of-memory"}

// ReportBars says how many GPUs of its types there are by what bars the job from them.
func (d *Company) ReportBars(v *sched.View, n *Need, say func(sched.Fact)) {
	var count [bars]int
	for i := range v.Nodes {
		if node := &v.Nodes[i]; !node.Open() || !n.Types.Has(node.Spec.Type) {
			continue
		}
		spots := d.spots(v, sched.NodeID(i)).spots
		for k := range spots {
			count[d.barred(&spots[k], n)]++
		}
	}
	for why, gpus := range count {
		if gpus > 0 || bar(why) == joins {
			say(sched.Fact{Name: barNames[why], Value: float64(gpus), Unit: "GPUs"})
		}
	}
}

// ReportMemory says of a job that shares GPUs only by figures how much memory it is taken to have, and of the first
// GPUs that are short of it for whom.
func (c *Core) ReportMemory(v *sched.View, j sched.JobID, say func(sched.Fact)) {
	c.reportMemory(v, j, func(own, others, gpuGB float64) bool { return c.Know.Room(own+others) <= gpuGB }, say)
}

// ReportMemory is that of Core for those who find sets of GPUs: a newcomer is to leave some of their memory.
func (d *Company) ReportMemory(v *sched.View, j sched.JobID, say func(sched.Fact)) {
	d.reportMemory(v, j, func(own, others, gpuGB float64) bool { return gpuGB-d.Know.Room(others) > d.Know.Room(own) },
		say)
}

// fits reports whether a job may join others on a GPU by what they have and it has, in GB.
type fits func(own, others, gpuGB float64) bool

func (c *Core) reportMemory(v *sched.View, j sched.JobID, ok fits, say func(sched.Fact)) {
	if c.Know.Peaks == nil || v.Jobs[j].Spec.Share == sched.ShareNever {
		return
	}
	own := c.Know.memory(v, j)
	say(sched.Fact{Name: "gpu-memory", Text: c.figure(v, j)})
	said := 0
	for g, on := range c.On {
		node := &v.Nodes[v.GPUs[g].Node].Spec
		if len(on) == 0 || own == 0 || said == mostReported || !v.Jobs[j].Spec.Types.Has(node.Type) {
			continue
		}
		if text := c.crowded(v, on, own, float64(node.GPUMemGB), ok); text != "" {
			said++
			say(sched.Fact{Name: fmt.Sprintf("no-room-%d", said), Text: fmt.Sprintf("GPU %d of %s: %s",
				g-int(v.Nodes[v.GPUs[g].Node].First), node.Name, text)})
		}
	}
}

// figure says how much memory job j is taken to have, and where that is from.
func (c *Core) figure(v *sched.View, j sched.JobID) string {
	gb, from := c.Know.Peaks.Of(v, j)
	if from == footprint.Unknown {
		return footprint.Missing
	}
	return fmt.Sprintf("%.4g GB, %v", gb, from)
}

// crowded says why a job that has so much memory finds too little next to others; "" = it does not.
func (c *Core) crowded(v *sched.View, on []sched.JobID, own, gpuGB float64, ok fits) string {
	others, texts := 0.0, make([]string, len(on))
	for i, o := range on {
		gb := c.Know.memory(v, o)
		if texts[i] = NameOf(v, o) + " has " + c.figure(v, o); gb == 0 {
			return NameOf(v, o) + ": " + footprint.Missing
		}
		others += gb
	}
	switch room := c.Know.Room(own + others); {
	case gpuGB == 0:
		return "how much memory it has is unknown"
	case ok(own, others, gpuGB):
	case room <= gpuGB:
		return fmt.Sprintf("%s: with %.4g GB for this job and 5 %% to spare no memory would be left",
			strings.Join(texts, "; "), own)
	default:
		return fmt.Sprintf("%s: with %.4g GB for this job and 5 %% to spare %.4g GB are needed, it has %.4g",
			strings.Join(texts, "; "), own, room, gpuGB)
	}
	return ""
}

// reportRefusal says why a set is not for a job.
func (d *Company) reportRefusal(v *sched.View, r Refusal) string {
	switch name := NameOf(v, r.Job); r.Code {
	case TooSlow:
		if v.Jobs[r.Job].Spec.Deadline > 0 {
			return fmt.Sprintf("%s would be %.4g times slower and miss its deadline", name, r.Slow)
		}
		return fmt.Sprintf("%s would be %.4g times slower, at most %.4g is allowed", name, r.Slow, d.limits.Slow)
	case Tried:
		return name + " was taken off those there before"
	case OnTrial:
		return name + " takes part in a trial"
	case NoSave:
		return "a trial might stop it, and nothing shows that it saves"
	case NoSlack:
		return name + " has too little time to spare for a trial that fails"
	}
	return "it may have them"
}

// NameOf returns what people call job j.
func NameOf(v *sched.View, j sched.JobID) string {
	return cmp.Or(v.Jobs[j].Spec.Name, fmt.Sprintf("job %d", j))
}

// where names the nodes of gpus, which are in order.
func where(v *sched.View, gpus []sched.GPUID) string {
	text, last := fmt.Sprintf("%d GPUs of", len(gpus)), sched.NodeID(sched.None)
	for _, g := range gpus {
		if n := v.GPUs[g].Node; n != last {
			text, last = text+" "+v.Nodes[n].Spec.Name, n
		}
	}
	return text
}
