package sched

import "time"

// seldom is what few jobs have. It is never changed in place: a copy of a Job keeps what it was copied with.
type seldom struct {
	later     *Later // to exchange Target for at the next epoch end; nil = none
	blockedBy int32  // jobs of Spec.After not yet finished
	loss      Loss   // by stops for others
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
	case j.seldom == nil || *j.seldom != s:
		kept := s // s itself stays where it is
		j.seldom = &kept
	}
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
