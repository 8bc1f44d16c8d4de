package engine

import "github.com/trainyard/trainyard/sched"

// hostRoom is the processors and the memory that attempts hold of nodes that count them. It is the one check that all
// systems share: whatever a system wants, an attempt starts once these are free too, those of attempts that stop
// included. It is made where a job asks for some, and lives for one plan.
type hostRoom struct {
	view *sched.View
	held []sched.NodeSpec // by node: CPUs and MemoryGB
}

// admits reports whether job j has room on the nodes of its target, and if so holds it.
func (r *hostRoom) admits(j *sched.Job) bool {
	if j.Spec.CPUs == 0 && j.Spec.MemoryGB == 0 {
		return true
	}
	if r.held == nil {
		r.held = make([]sched.NodeSpec, len(r.view.Nodes))
		for i := range r.view.Jobs {
			if of := &r.view.Jobs[i]; of.HoldsDevices() {
				r.hold(of.Spec, of.GPUs, 1)
			}
		}
	}
	r.hold(j.Spec, j.Target, 1)
	for _, g := range j.Target {
		n := r.view.GPUs[g].Node
		held, spec := &r.held[n], &r.view.Nodes[n].Spec
		if j.Spec.CPUs > 0 && over(held.CPUs, spec.CPUs) || j.Spec.MemoryGB > 0 && over(held.MemoryGB, spec.MemoryGB) {
			r.hold(j.Spec, j.Target, -1)
			return false
		}
	}
	return true
}

// over reports whether a sum is more than what is counted of a node, 0 being none, by more than it may be inexact.
func over(sum, of float32) bool { return of > 0 && sum-of > of*1e-4 }

// hold counts what a job holds on GPUs, times d.
func (r *hostRoom) hold(spec *sched.JobSpec, gpus []sched.GPUID, d float32) {
	for _, g := range gpus {
		held := &r.held[r.view.GPUs[g].Node]
		held.CPUs, held.MemoryGB = held.CPUs+d*spec.CPUs, held.MemoryGB+d*spec.MemoryGB
	}
}
