package provision

import (
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/allocate"
)

// Wanted is the demand of all jobs that may be given GPUs, each as wide as it wants to be.
type Wanted struct {
	Present
	Wants allocate.Wants
}

var _ Demand = (*Wanted)(nil)

// Demand adds up over the jobs.
func (w *Wanted) Demand(v *sched.View, dst []int32) []int32 {
	dst, types := zeros(v, dst)
	for _, id := range w.Jobs(v) {
		if j := &v.Jobs[id]; j.Eligible() {
			gpus, _ := w.Wants.Want(v, id)
			dst[slot(v, j, types)] += gpus
		}
	}
	return dst
}
