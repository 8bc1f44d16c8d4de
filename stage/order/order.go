// Package order holds the rules that rank jobs. Each is a small type in a file of its own; what a rule may know is
// visible in its fields. The smallest key comes first; ties go to the job that arrived first.
package order

import (
	"github.com/trainyard/trainyard/sched"
)

// FIFO ranks by priority, larger first, then by arrival. It assumes nothing.
type FIFO struct{ Alike bool } // Alike: by arrival alone

var _ sched.Orderer = FIFO{}

// Key never changes.
func (o FIFO) Key(v *sched.View, j sched.JobID) (sched.Key, sched.Time) {
	if o.Alike {
		return sched.Key{}, sched.Never
	}
	return sched.Key{Level: -int64(v.Jobs[j].Spec.Priority)}, sched.Never
}

// SJF ranks by the whole work of a job, least first, whatever has been done of it. It assumes an estimate of the work.
type SJF struct{ Work sched.Remainer }

var _ sched.Orderer = SJF{}

// Key is the work in seconds: what remains and what is done.
func (o SJF) Key(v *sched.View, j sched.JobID) (sched.Key, sched.Time) {
	return sched.Key{Value: (o.Work.Remaining(v, j) + v.Jobs[j].WorkNow(v.Now)).Seconds()}, sched.Never
}

// SRTF ranks by remaining work in seconds, least first. It assumes an estimate of the remaining work.
type SRTF struct{ Work sched.Remainer }

var _ sched.Orderer = SRTF{}

// Key falls by the job's rate while it runs.
func (o SRTF) Key(v *sched.View, j sched.JobID) (sched.Key, sched.Time) {
	return remaining(o.Work, v, j, 1)
}

// SRSF ranks by remaining service, least first: remaining work times the width that it is counted in, in GPU-seconds.
// It assumes an estimate of the remaining work. It is the two-dimensional reference with full knowledge of Gu et al.,
// NSDI'19 (Tiresias).
type SRSF struct{ Work sched.Remainer }

var _ sched.Orderer = SRSF{}

// Key falls by width times rate while the job runs.
func (o SRSF) Key(v *sched.View, j sched.JobID) (sched.Key, sched.Time) {
	return remaining(o.Work, v, j, float64(v.Jobs[j].Unit()))
}

// remaining is the key of remaining work times weight. A restart holds the key still until work goes on.
func remaining(r sched.Remainer, v *sched.View, id sched.JobID, weight float64) (sched.Key, sched.Time) {
	j := &v.Jobs[id]
	k := sched.Key{Value: r.Remaining(v, id).Seconds() * weight}
	if j.Attempt != sched.Running {
		return k, sched.Never
	}
	if v.Now < j.WorkFrom {
		return k, j.WorkFrom
	}
	k.Slope = -j.Rate * weight
	if f, ok := r.(fading); ok {
		return k, f.Until(v, id)
	}
	return k, sched.Never
}

// fading is a Remainer whose estimates do not just fall by the work that is done: it is to be asked again at a time.
type fading interface {
	Until(v *sched.View, j sched.JobID) sched.Time
}

// FewestGPUs ranks by width, narrowest first. It assumes nothing.
type FewestGPUs struct{}

var _ sched.Orderer = FewestGPUs{}

// Key never changes.
func (FewestGPUs) Key(v *sched.View, j sched.JobID) (sched.Key, sched.Time) {
	return sched.Key{Value: float64(v.Jobs[j].Spec.GPUs.Want)}, sched.Never
}

// LAS ranks by attained service, least first: GPU-seconds, or seconds if Seconds is set. It assumes nothing. Source: Gu
// et al., NSDI'19, continuous 2D-LAS. Its keys grow while jobs run, so a system needs a quantum or a round.
type LAS struct{ Seconds bool }

var _ sched.Orderer = LAS{}

// Key grows by the width (or by one) per second while the job runs.
func (o LAS) Key(v *sched.View, id sched.JobID) (sched.Key, sched.Time) {
	a, rate := attained(v, id, o.Seconds)
	return sched.Key{Value: a, Slope: rate}, sched.Never
}

// attained returns the attained service of job id and its growth per second.
func attained(v *sched.View, id sched.JobID, seconds bool) (service, rate float64) {
	j := &v.Jobs[id]
	if j.Up {
		rate = 1
		if !seconds {
			rate = float64(len(j.GPUs))
		}
	}
	if seconds {
		return j.RunNow(v.Now).Seconds(), rate
	}
	return float64(j.ServiceNow(v.Now)), rate
}
