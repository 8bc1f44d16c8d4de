package share

import (
	"cmp"
	"slices"

	"github.com/trainyard/trainyard/model/footprint"
	"github.com/trainyard/trainyard/sched"
)

// relieve takes a job off each GPU whose jobs were measured to have more memory than fits: the one that has most beyond
// what it stated, never to be put next to the same jobs again. It returns the jobs that were on such GPUs.
func relieve(d *Company, v *sched.View, out *sched.Desired) (jobs []sched.JobID) {
	if d.Know.Peaks == nil || !d.Dirty {
		return nil
	}
	var gone []sched.JobID
	for g, on := range d.On {
		seen := slices.ContainsFunc(on, func(id sched.JobID) bool { return slices.Contains(jobs, id) })
		if seen || len(on) < 2 || !overfull(d, v, sched.GPUID(g)) {
			continue
		}
		id := greediest(d, v, on)
		if id == sched.None {
			continue
		}
		d.crowd = d.partner(d.Held[id], d.crowd)
		others, has := d.others(id), d.Know.memory(v, id)
		d.undo(id, others, true, out)
		out.Jobs[len(out.Jobs)-1].Why.A = has
		for _, o := range others {
			out.Notes = append(out.Notes, sched.Note{Job: o, Why: sched.Reason{Code: sched.WhyKept, Job: id, A: has}})
		}
		gone, jobs = append(gone, id), append(append(jobs, others...), id)
		retry(d, others, gone, out)
	}
	return jobs
}

// retry has the trials go on that any of jobs take part in, next to those that stay.
func retry(d *Company, jobs, gone []sched.JobID, out *sched.Desired) {
	has := func(list []sched.JobID) func(sched.JobID) bool {
		return func(o sched.JobID) bool { return slices.Contains(list, o) }
	}
	for _, id := range d.open {
		d.crowd = d.partner(d.Held[id], d.crowd)
		if slices.Contains(gone, id) || !slices.ContainsFunc(d.crowd, has(jobs)) {
			continue
		}
		if d.crowd = slices.DeleteFunc(d.others(id), has(gone)); len(d.crowd) > 0 {
			d.tryOut(id, out)
		}
	}
}

// overfull reports whether the jobs on a GPU are known to have more memory than fits. Of a job that spreads over its
// GPUs it is not known how much it has on which.
func overfull(d *Company, v *sched.View, g sched.GPUID) bool {
	all := 0.0
	for _, id := range d.On[g] {
		if d.spreads(v.Jobs[id].Spec.Model) {
			return false
		}
		all += d.Know.memory(v, id)
	}
	total := float64(v.Nodes[v.GPUs[g].Node].Spec.GPUMemGB)
	return total > 0 && d.Know.Room(all) > total
}

// greediest returns who has most memory beyond what it stated, of equal ones the latest; None where none that may be
// stopped was measured to have more.
func greediest(d *Company, v *sched.View, on []sched.JobID) sched.JobID {
	worst, most := sched.JobID(sched.None), 0.0
	for _, id := range on {
		j := &v.Jobs[id]
		gb, from := d.Know.Peaks.Of(v, id)
		if from != footprint.Measured || d.limits.Unsaved.Protects(j) {
			continue
		}
		beyond := 0.0
		if j.Spec.GPUMemGB > 0 {
			beyond = gb - float64(j.Spec.GPUMemGB)
		}
		if worst == sched.None || cmp.Or(cmp.Compare(beyond, most), cmp.Compare(j.Began, v.Jobs[worst].Began)) >= 0 {
			worst, most = id, beyond
		}
	}
	return worst
}
