package provision

import "github.com/trainyard/trainyard/sched"

// Wanted is the demand of all jobs that may be given GPUs, each as wide as it wants to be. One whose fewest GPUs can
// never be had is passed over.
type Wanted struct {
	Present
	reach reach
	// Wants says how wide a job is to run, > 0.
	Wants interface {
		Want(v *sched.View, j sched.JobID) (gpus int32, c sched.Config)
	}
}

var _ Demand = (*Wanted)(nil)

// Demand adds up over the jobs.
func (w *Wanted) Demand(v *sched.View, sum []int32) {
	w.reach.look(v, len(sum)-1)
	for _, id := range w.Jobs(v) {
		if j := &v.Jobs[id]; j.Eligible() && (len(j.Target) > 0 || w.reach.has(j, j.Spec.GPUs.Min, 0)) {
			gpus, _ := w.Wants.Want(v, id)
			sum[slot(v, j, len(sum)-1)] += gpus
		}
	}
}
