package engine

import "github.com/trainyard/trainyard/sched"

// Reconcile appends to plan what may be done now to bring attempts to their targets, and forgets the jobs that need
// nothing more. But for that it changes nothing that can be seen: asked again, it says the same.
//
//  1. A job whose attempt is not on its target, or whose user wants it gone, is stopped.
//  2. A job without an attempt starts once every GPU of its target is free of other attempts, beyond what is shared.
//  3. What must wait (a stop under way, a GPU not yet free, a node not yet up) stays on the list.
//
// Stops free GPUs and starts only take GPUs that are free, so two jobs that exchange their sets both stop, then both
// start: no order of events can lock them.
func (s *State) Reconcile(plan *sched.Plan) {
	plan.Version, plan.Actions = s.view.Version, plan.Actions[:0]
	keep := s.dirty[:0]
	starts := false
	for _, id := range s.dirty {
		stay, start := s.stopIfAstray(id, plan)
		starts = starts || start
		if stay || start {
			keep = append(keep, id)
		} else {
			s.isDirty[id] = false
		}
	}
	s.dirty = keep
	if starts {
		s.startWhatCan(plan)
	}
}

// stopIfAstray appends a stop if job id needs one, and reports whether the job must be looked at again (stay) and
// whether it wants to start.
func (s *State) stopIfAstray(id sched.JobID, plan *sched.Plan) (stay, start bool) {
	j := &s.view.Jobs[id]
	switch {
	case j.Attempt == sched.Stopping:
		return true, false
	case j.HoldsDevices():
		if !j.Cancel && !j.Drift && sameSet(j.GPUs, j.Target) {
			return false, false
		}
		plan.Actions = append(plan.Actions, sched.Action{Kind: sched.Stop, Job: id, Attempt: j.Attempts, Why: stopReason(j)})
		return true, false
	default:
		return false, j.State == sched.Waiting && len(j.Target) > 0
	}
}

// startWhatCan appends a start for every job on the list whose target is free, and takes it off the list. A GPU
// promised to a start of this plan is not free for the next.
func (s *State) startWhatCan(plan *sched.Plan) {
	keep := s.dirty[:0]
	for _, id := range s.dirty {
		j := &s.view.Jobs[id]
		if j.HoldsDevices() || len(j.Target) == 0 || j.State != sched.Waiting || !s.verifiedFree(j) {
			keep = append(keep, id)
			continue
		}
		for _, g := range j.Target {
			s.view.GPUs[g].Holders++ // promised; taken back below
		}
		s.isDirty[id] = false
		plan.Actions = append(plan.Actions, s.startOf(id, j.Attempts+1, j.Target))
	}
	s.dirty = keep
	for i := range plan.Actions {
		for _, g := range plan.Actions[i].GPUs {
			s.view.GPUs[g].Holders--
		}
	}
}

// verifiedFree reports whether no attempt is on the GPUs of j's target beyond what sharing allows.
func (s *State) verifiedFree(j *sched.Job) bool {
	limit, together := int16(1), false
	if j.Share == sched.Shared {
		limit = int16(s.view.ShareLimit)
	}
	for _, g := range j.Target {
		n := s.view.GPUs[g].Holders
		if n >= limit || !s.view.Usable(g) {
			return false
		}
		together = together || n > 0
	}
	return !together || !s.besideLoner(j)
}

// besideLoner reports whether an attempt that does not share is on a GPU of j's target still.
func (s *State) besideLoner(j *sched.Job) bool {
	for id := range s.view.Jobs {
		if k := &s.view.Jobs[id]; !s.shares[id] && common(k.GPUs, j.Target) != sched.None {
			return true
		}
	}
	return false
}
