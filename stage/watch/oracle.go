package watch

import "github.com/trainyard/trainyard/sched"

// Truth says how many times as slow as its PM scores say GPU g is at now, and when that changes next.
type Truth func(g sched.GPUID, now sched.Time) (factor float64, until sched.Time)

// Limit is the factor above which a GPU is better not used at all: that of quarantines.
const Limit = 1.3

// Oracle stands in the place of Stragglers and knows what they have to find out.
type Oracle struct {
	Truth  Truth
	Revise func(factor func(g sched.GPUID) float64) // as of Stragglers
	// Limit, if > 1, has GPUs slower than it in quarantine, for systems that know no scores.
	Limit float64

	factor   []float64 // by GPU
	next     sched.Time
	revision uint64
}

var _ sched.Observer = (*Oracle)(nil)

// Observe looks at the truth when it has changed, or the cluster has.
func (o *Oracle) Observe(v *sched.View, e *sched.Event) {
	if e.Time < o.next && len(o.factor) == len(v.GPUs) {
		return
	}
	o.next = sched.Never
	changed := false
	for g := range v.GPUs {
		if g >= len(o.factor) {
			o.factor = append(o.factor, 1)
		}
		f, until := o.Truth(sched.GPUID(g), e.Time)
		o.next = min(o.next, until)
		changed = changed || f != o.factor[g]
		o.factor[g] = f
	}
	if !changed {
		return
	}
	o.revision++
	if o.Revise != nil {
		o.Revise(func(g sched.GPUID) float64 {
			if int(g) < len(o.factor) {
				return o.factor[g]
			}
			return 1
		})
	}
}

// Revision rises when the truth changes.
func (o *Oracle) Revision() uint64 { return o.revision }

// Provision asks for the quarantines of Limit, and to be woken when the truth changes.
func (o *Oracle) Provision(v *sched.View, d *sched.Desired) {
	d.WakeBy(o.next)
	if o.Limit <= 1 {
		return
	}
	for g, f := range o.factor {
		if slow := f > o.Limit; slow != v.GPUs[g].Quarantined {
			d.GPUTargets = append(d.GPUTargets, sched.GPUTarget{GPU: sched.GPUID(g), Quarantined: slow})
		}
	}
}
