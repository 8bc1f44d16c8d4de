package place

import "github.com/trainyard/trainyard/sched"

// OneType has another rule place a job on the GPU type that it was granted, where there are several: who grants GPUs
// type by type has counted on it. What the other rule learns it must be reported by others: list it in
// pipeline.Parts.Learn.
type OneType struct {
	By sched.Placer
	Of func(j sched.JobID) (t sched.TypeID, ok bool) // ok is false where any type will do

	ghost sched.View // the View, but for the types that one job accepts
	spec  sched.JobSpec
}

var (
	_ sched.Placer    = (*OneType)(nil)
	_ sched.Shaper    = (*OneType)(nil)
	_ sched.NodeBound = (*OneType)(nil)
	_ sched.Reviser   = (*OneType)(nil)
)

// Fits asks the other rule about that type.
func (o *OneType) Fits(v *sched.View, l *sched.Ledger, j sched.JobID, n int) bool {
	return o.By.Fits(o.only(v, l, j), l, j, n)
}

// Place has the other rule place the job on that type.
func (o *OneType) Place(v *sched.View, l *sched.Ledger, j sched.JobID, n int, dst []sched.GPUID) ([]sched.GPUID, bool) {
	return o.By.Place(o.only(v, l, j), l, j, n, dst)
}

// Shape is that of the other rule.
func (o *OneType) Shape(v *sched.View, j sched.JobID) int32 {
	if s, ok := o.By.(sched.Shaper); ok {
		return s.Shape(v, j)
	}
	return 0
}

// Need is that of the other rule on that type.
func (o *OneType) Need(v *sched.View, l *sched.Ledger, j sched.JobID, n int) sched.NodeNeed {
	if b, ok := o.By.(sched.NodeBound); ok {
		return b.Need(o.only(v, l, j), l, j, n)
	}
	return sched.NodeNeed{}
}

// Revision is that of the other rule.
func (o *OneType) Revision() uint64 {
	if r, ok := o.By.(sched.Reviser); ok {
		return r.Revision()
	}
	return 0
}

// only returns v as if job j accepted the one type alone.
func (o *OneType) only(v *sched.View, l *sched.Ledger, j sched.JobID) *sched.View {
	t, ok := o.Of(j)
	if !ok || l.Types() == 1 || !v.Jobs[j].Spec.Types.Has(t) {
		return v
	}
	jobs := o.ghost.Jobs
	for len(jobs) < len(v.Jobs) {
		jobs = append(jobs, sched.Job{})
	}
	o.ghost = *v
	o.ghost.Jobs = jobs
	o.spec = *v.Jobs[j].Spec
	o.spec.Types = sched.TypeSet(0).With(t)
	jobs[j] = v.Jobs[j]
	jobs[j].Spec = &o.spec
	return &o.ghost
}
