package engine

import (
	"slices"

	"github.com/trainyard/trainyard/internal/arena"
	"github.com/trainyard/trainyard/sched"
)

// Reconcile appends to plan what may be done now to bring attempts to their targets, and forgets the jobs that need
// nothing more. But for that it changes nothing that can be seen: asked again, it says the same.
//
// The stops of a plan come first, then its starts, then nodes, pools and power caps, each by number.
//
//  1. A job whose attempt is not on its target, or whose user wants it gone, is stopped.
//  2. A job without an attempt starts once every GPU of its target is free of other attempts, beyond what is shared.
//  3. A power cap is changed without a stop.
//  4. A node, or a pool, hears of its target once; a node is not put to sleep or released before it holds nothing.
//  5. What must wait (a stop under way, a GPU not yet free, a node not yet up) stays on the list.
//
// Stops free GPUs and starts only take GPUs that are free, so two jobs that exchange their sets both stop, then both
// start: no order of events can lock them.
func (s *State) Reconcile(plan *sched.Plan) {
	plan.Actions = plan.Actions[:0]
	slices.Sort(s.work.jobs) // when each was first mentioned is no part of the View
	keep := s.work.jobs[:0]
	starts, caps := false, false
	for _, id := range s.work.jobs {
		stay, start := stopIfAstray(&s.view, id, plan)
		starts = starts || start
		caps = caps || stay && !start && s.view.Jobs[id].Attempt != sched.Stopping
		if stay || start {
			keep = append(keep, id)
		} else {
			s.work.listed[id] = false
		}
	}
	s.work.jobs = keep
	if starts {
		s.startWhatCan(plan)
	}
	if len(s.moving) > 0 {
		s.moveNodes(plan)
	}
	for i := range s.view.Pools {
		if p := &s.view.Pools[i]; p.Target != p.Ordered {
			plan.Actions = append(plan.Actions, rentOf(sched.PoolID(i), p.Target))
		}
	}
	if caps {
		s.adjust(plan)
	}
}

// adjust appends an order for every attempt that goes on under another power cap.
func (s *State) adjust(plan *sched.Plan) {
	for _, id := range s.work.jobs {
		if j := &s.view.Jobs[id]; capped(j) {
			plan.Actions = append(plan.Actions, adjustOf(id, j, j.Cap))
		}
	}
}

// capped reports whether the attempt of j goes on under another power cap.
func capped(j *sched.Job) bool { return !astray(j) && j.HoldsDevices() && j.Cap != j.Live.Cap }

// astray reports whether the attempt of j must go.
func astray(j *sched.Job) bool {
	return j.Cancel || j.Requeued || j.Attempt == sched.Stopping || j.Config.Restarts(&j.Live) ||
		!arena.SameSet(j.GPUs, j.Target)
}

// moveNodes appends what is to be asked of nodes, and forgets those of which nothing is asked.
func (s *State) moveNodes(plan *sched.Plan) {
	s.moving = slices.DeleteFunc(s.moving, func(id sched.NodeID) bool {
		return s.view.Nodes[id].Target == s.view.Nodes[id].Ordered
	})
	slices.Sort(s.moving)
	for _, id := range s.moving {
		if n := &s.view.Nodes[id]; mayMove(&s.view, n) {
			plan.Actions = append(plan.Actions, setNodeOf(id, n.Target))
		}
	}
}

// mayMove reports whether node n may be brought to its target now. One that is down can only be released.
func mayMove(v *sched.View, n *sched.Node) bool {
	if n.Target == sched.NodeUp || n.Target == sched.NodeDraining {
		return n.State != sched.NodeDown
	}
	return n.Busy == 0 && !wanted(v, n) && (n.State != sched.NodeDown || n.Target == sched.NodeGone)
}

// wanted reports whether a job is to hold a GPU of n.
func wanted(v *sched.View, n *sched.Node) bool {
	for g := n.First; g < n.First+sched.GPUID(n.Spec.GPUs); g++ {
		if v.GPUs[g].Targets > 0 {
			return true
		}
	}
	return false
}

// stopIfAstray appends a stop if job id needs one, and reports whether the job must be looked at again (stay) and
// whether it wants to start.
func stopIfAstray(v *sched.View, id sched.JobID, plan *sched.Plan) (stay, start bool) {
	j := &v.Jobs[id]
	switch {
	case j.Attempt == sched.Stopping:
		return true, false
	case j.HoldsDevices():
		if !astray(j) {
			return capped(j), false
		}
		plan.Actions = append(plan.Actions,
			sched.Action{Kind: sched.Stop, Job: id, Attempt: j.Attempts, Why: stopReason(j)})
		return true, false
	default:
		return false, j.State == sched.Waiting && len(j.Target) > 0
	}
}

// startWhatCan appends a start for every job on the list whose target is free, and takes it off the list. A GPU
// promised to a start of this plan is not free for the next; where none is shared, no two targets have one in common.
func (s *State) startWhatCan(plan *sched.Plan) {
	keep, room := s.work.jobs[:0], hostRoom{view: &s.view}
	for _, id := range s.work.jobs {
		j := &s.view.Jobs[id]
		if j.HoldsDevices() || len(j.Target) == 0 || j.State != sched.Waiting || !verifiedFree(s, j) ||
			!room.admits(j) {
			keep = append(keep, id)
			continue
		}
		promise(&s.view, j.Target, 1) // taken back below
		s.work.listed[id] = false
		plan.Actions = append(plan.Actions, startOf(id, j.Attempts+1, j.Target, j.Config))
	}
	s.work.jobs = keep
	for i := range plan.Actions {
		promise(&s.view, plan.Actions[i].GPUs, -1)
	}
}

// promise counts d starts more on each GPU of set.
func promise(v *sched.View, set []sched.GPUID, d int16) {
	if v.ShareLimit == 1 {
		return
	}
	for _, g := range set {
		v.GPUs[g].Holders += d
	}
}
