package sched

import "time"

// seldom is what few jobs have. It is changed in place: who copies a Job to keep or change the copy detaches it.
type seldom struct {
	later     *Later // to exchange Target for at the next epoch end; nil = none
	blockedBy int32  // jobs of Spec.After not yet finished
	loss      Loss   // by stops for others
	// how long it had run when it was started again after its user had it requeued
	requeued time.Duration
	ownStop  bool // its latest attempt was stopped as its user had paused it
}

// few returns what j has of seldom.
func (j *Job) few() seldom {
	if j.seldom == nil {
		return seldom{}
	}
	return *j.seldom
}

// setFew gives j another seldom, or none where nothing is in it.
func (j *Job) setFew(s seldom) {
	switch {
	case s == seldom{}:
		j.seldom = nil
	case j.seldom == nil:
		kept := s // s itself stays where it is
		j.seldom = &kept
	default:
		*j.seldom = s
	}
}

// Detach makes j, a copy of another Job, independent of it: what few jobs have is otherwise one for both. What their
// slices and pointers lead to stays shared.
func (j *Job) Detach() {
	if j.seldom != nil {
		s := *j.seldom
		j.seldom = &s
	}
}

// Seldoms has room for what few jobs have, so that the first stop of a job does not cost an allocation of its own. The
// zero value is ready. A job keeps its room for as long as it lives.
type Seldoms struct{ free []seldom }

// Give gives j room, if it has none. It is for jobs that are about to need it.
func (r *Seldoms) Give(j *Job) {
	if j.seldom != nil {
		return
	}
	if len(r.free) == 0 {
		r.free = make([]seldom, 64)
	}
	j.seldom, r.free = &r.free[0], r.free[1:]
}

// Later returns what j is to exchange its target for at its next epoch end; nil = nothing. It is not to be changed.
func (j *Job) Later() *Later {
	if j.seldom == nil {
		return nil
	}
	return j.seldom.later
}

// SetLater has j exchange its target for l at its next epoch end; nil: for nothing.
func (j *Job) SetLater(l *Later) {
	if j.seldom == nil && l == nil {
		return
	}
	s := j.few()
	s.later = l
	j.setFew(s)
}

// BlockedBy returns how many jobs of Spec.After are not yet finished.
func (j *Job) BlockedBy() int32 {
	if j.seldom == nil {
		return 0
	}
	return j.seldom.blockedBy
}

// SetBlockedBy says how many jobs of Spec.After are not yet finished.
func (j *Job) SetBlockedBy(n int32) {
	if j.seldom == nil && n == 0 {
		return
	}
	s := j.few()
	s.blockedBy = n
	j.setFew(s)
}

// Loss returns what j has lost by stops for others.
func (j *Job) Loss() Loss {
	if j.seldom == nil {
		return Loss{}
	}
	return j.seldom.loss
}

// SetLoss says what j has lost by stops for others.
func (j *Job) SetLoss(l Loss) {
	if j.seldom == nil && l == (Loss{}) {
		return
	}
	s := j.few()
	s.loss = l
	j.setFew(s)
}

// SetBase says with how much work the latest attempt of j started.
func (j *Job) SetBase(work time.Duration) {
	l := j.Loss()
	l.Base = work
	j.SetLoss(l)
}

// RunSince returns how long j has run at now since it was started again after its user last had it requeued; in all if
// he never did. A limit of its time counts that.
func (j *Job) RunSince(now Time) time.Duration {
	if j.seldom == nil {
		return j.RunNow(now)
	}
	return j.RunNow(now) - j.seldom.requeued
}

// SetRunBefore says how long j had run when it was started again after its user had it requeued: see RunSince.
func (j *Job) SetRunBefore(d time.Duration) {
	if j.seldom == nil && d == 0 {
		return
	}
	s := j.few()
	s.requeued = d
	j.setFew(s)
}

// SetOwnStop says whether the latest attempt of j was stopped because its user had paused it, also if he lets it go on
// before that has ended: see ForOthers.
func (j *Job) SetOwnStop(own bool) {
	if j.seldom == nil && !own {
		return
	}
	s := j.few()
	s.ownStop = own
	j.setFew(s)
}
