package engine

import (
	"fmt"
	"slices"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/internal/arena"
	"github.com/trainyard/trainyard/sched"
)

// Restore returns the state that shows v, of which it keeps nothing, under a log with header h: it goes on from there
// as the state that v was taken from would have. v is that of a moment between two batches. What can be counted is
// counted again: holders and targets of GPUs, busy GPUs, nodes of pools, jobs to be waited for.
//
// A job without Spec is one that is done and of which its keeper has forgotten all but, maybe, Outcome and End. It
// keeps its number.
func Restore(h eventlog.Header, v sched.View) (*State, error) {
	s := NewState(h)
	s.view.Now, s.view.Version, s.seq = v.Now, v.Version, v.Version
	if len(v.Pools) < len(h.Pools) {
		return nil, fmt.Errorf("engine: restore: %d pools, want the %d of the header", len(v.Pools), len(h.Pools))
	}
	s.view.Pools = slices.Clone(v.Pools)
	if err := s.restoreNodes(&v); err != nil {
		return nil, fmt.Errorf("engine: restore: %w", err)
	}
	s.Expect(len(v.Jobs))
	for i := range v.Jobs {
		if err := s.restoreJob(&v, sched.JobID(i)); err != nil {
			return nil, fmt.Errorf("engine: restore: job %d: %w", i, err)
		}
	}
	return s, nil
}

// restoreNodes takes nodes and GPUs.
func (s *State) restoreNodes(v *sched.View) error {
	s.view.Nodes, s.view.GPUs = slices.Clone(v.Nodes), slices.Clone(v.GPUs)
	for i := range s.view.Pools {
		s.view.Pools[i].Nodes = 0
	}
	next := sched.GPUID(0)
	for i := range s.view.Nodes {
		n, id := &s.view.Nodes[i], sched.NodeID(i)
		if n.First != next || n.Spec.GPUs < 1 || n.Spec.GPUs > len(v.GPUs)-int(next) {
			return fmt.Errorf("node %d has GPUs from %d, %d of them; want some from %d, %d in all", i, n.First,
				n.Spec.GPUs, next, len(v.GPUs))
		}
		for ; next < n.First+sched.GPUID(n.Spec.GPUs); next++ {
			g, rests := &s.view.GPUs[next], v.GPUs[next].Rests
			*g = sched.GPU{Node: id, State: g.State, Quarantined: g.Quarantined, Blamed: g.Blamed}
			s.rests.set(&s.view, next, rests)
		}
		n.Busy = 0
		if p := s.view.PoolOf(n); p != nil && n.Joined() {
			p.Nodes++
		}
		if n.Spec.Name != "" || n.State != sched.NodeGone {
			s.slots.byName[n.Spec.Name] = id
		}
		if n.State == sched.NodeGone {
			s.slots.goneOf(n.Spec.GPUs, len(s.view.Nodes)).Set(i)
		}
		s.markMoving(id)
	}
	if int(next) != len(v.GPUs) {
		return fmt.Errorf("%d GPUs, %d of them of nodes", len(v.GPUs), next)
	}
	lay(s)
	for n := range s.view.Nodes {
		recheck(s, sched.NodeID(n))
	}
	return nil
}

// restoreJob takes job id and what follows from it.
func (s *State) restoreJob(v *sched.View, id sched.JobID) error {
	j := v.Jobs[id]
	j.Detach()
	if j.Spec == nil {
		return s.restoreForgotten(&j)
	}
	if err := checkSets(&j, len(v.GPUs)); err != nil {
		return err
	}
	j.GPUs, j.Target = s.sets.CopyOf(j.GPUs), s.sets.CopyOf(j.Target)
	if j.Later() != nil {
		later := *j.Later()
		later.GPUs = slices.Clone(later.GPUs)
		j.SetLater(&later)
	}
	s.view.Users.ID(j.Spec.User)
	if err := s.restoreDependencies(&j, id); err != nil {
		return err
	}
	hold(s, j.GPUs, j.Live.Share, 1)
	addTenants(s, j.Target, j.Share, j.Trial, 1)
	s.view.Jobs, s.work.listed = append(s.view.Jobs, j), append(s.work.listed, false)
	if j.State != sched.Done {
		s.live++
	}
	if j.HoldsDevices() && (astray(&j) || capped(&j)) || !j.HoldsDevices() && len(j.Target) > 0 {
		s.work.mark(id)
	}
	if isReady(v, &j) || j.NotBefore > v.Now {
		s.alarms.Push(arena.JobAt{At: max(v.Now, j.NotBefore), Job: id})
	}
	return nil
}

// isReady reports whether a job that is held need not be, or has waited in vain.
func isReady(v *sched.View, j *sched.Job) bool {
	return j.State == sched.Held && (j.BlockedBy() == 0 && !j.Paused || j.Spec.Unmeetable(v) != sched.None)
}

// checkSets names a set of a job that cannot be.
func checkSets(j *sched.Job, gpus int) error {
	for _, set := range [][]sched.GPUID{j.GPUs, j.Target} {
		if slices.ContainsFunc(set, func(g sched.GPUID) bool { return g < 0 || int(g) >= gpus }) {
			return fmt.Errorf("set %v, want GPUs below %d", set, gpus)
		}
	}
	if (len(j.GPUs) > 0) != j.HoldsDevices() {
		return fmt.Errorf("attempt is %v, holds %v", j.Attempt, j.GPUs)
	}
	return nil
}

// restoreDependencies counts the jobs that job id, which is j, waits for.
func (s *State) restoreDependencies(j *sched.Job, id sched.JobID) error {
	blocked, was := int32(0), j.BlockedBy()
	for _, d := range j.Spec.After {
		if d < 0 || d >= id {
			return fmt.Errorf("depends on job %d, want an earlier one", d)
		}
		if s.view.Jobs[d].State != sched.Done {
			blocked++
			s.dependents[d] = append(s.dependents[d], id)
		}
	}
	j.SetBlockedBy(blocked)
	if was > blocked && j.State != sched.Done { // it waits for others of its array as well
		s.lines.queue(j, id)
	}
	return nil
}

// forgotten stands in for the Spec of jobs of which nothing is known any more: everybody may read the Spec of every
// job.
var forgotten = sched.JobSpec{GPUs: sched.Rigid(1)}

// restoreForgotten keeps the number of a job that is done.
func (s *State) restoreForgotten(j *sched.Job) error {
	if j.State != sched.Done && j.State != sched.Held || len(j.GPUs)+len(j.Target) > 0 || j.HoldsDevices() {
		return fmt.Errorf("without a spec and %v, attempt %v, holds %v, target %v; want one that is done", j.State,
			j.Attempt, j.GPUs, j.Target)
	}
	s.view.Jobs = append(s.view.Jobs, sched.Job{Spec: &forgotten, State: sched.Done, Outcome: j.Outcome, End: j.End,
		FirstStart: sched.None, LastStart: sched.None})
	s.work.listed = append(s.work.listed, false)
	return nil
}
