package provision

import (
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Sleep puts owned nodes to sleep that have been idle for Dwell while no job waits, and wakes as many as the jobs that
// wait may need.
//
// Source: EaCO (Haghshenas and Hashemi, arXiv 2412.08294) puts idle nodes into a low-power state and says no more; that
// the queue must be empty, and the dwell, are ours.
type Sleep struct {
	idleness
	Present
	Dwell time.Duration // >= 0
}

var (
	_ sched.Provisioner = (*Sleep)(nil)
	_ sched.Memory      = (*Sleep)(nil)
	_ sched.Observer    = (*Sleep)(nil)
)

// Provision wakes nodes, in order of their numbers, or puts them to sleep.
func (s *Sleep) Provision(v *sched.View, d *sched.Desired) {
	s.update(v, d)
	if need := s.waiting(v, d); need > 0 {
		s.wake(v, d, need)
		return
	}
	for i := range v.Nodes {
		n := &v.Nodes[i]
		if n.Spec.Pool != sched.None || !n.Open() || s.since[i] == sched.Never {
			continue
		}
		if due := s.since[i].Add(s.Dwell); due <= v.Now {
			d.Nodes = append(d.Nodes, sched.NodeTarget{Node: sched.NodeID(i), State: sched.NodeAsleep})
		} else {
			d.WakeBy(due)
		}
	}
}

// waiting returns the GPUs that those jobs ask for that may be given some, have none and are given none in d.
func (s *Sleep) waiting(v *sched.View, d *sched.Desired) int {
	sum := 0
	for _, id := range s.Jobs(v) {
		if j := &v.Jobs[id]; j.Eligible() && len(j.Target) == 0 {
			sum += int(j.Spec.GPUs.Want)
		}
	}
	for i := range d.Jobs {
		t := &d.Jobs[i]
		if j := &v.Jobs[t.Job]; t.GPUs.Len > 0 && len(j.Target) == 0 {
			sum -= int(j.Spec.GPUs.Want)
		} else if t.GPUs.Len == 0 && len(j.Target) > 0 {
			sum += int(j.Spec.GPUs.Want)
		}
	}
	return sum
}

// wake wakes nodes until those that are awake and idle, or wake up, have as many GPUs as needed.
func (s *Sleep) wake(v *sched.View, d *sched.Desired, need int) {
	for i := range v.Nodes {
		if n := &v.Nodes[i]; n.Spec.Pool == sched.None && n.Target == sched.NodeUp && n.State != sched.NodeDown &&
			s.since[i] != sched.Never {
			need -= n.Spec.GPUs
		}
	}
	for i := range v.Nodes {
		if n := &v.Nodes[i]; need > 0 && n.Spec.Pool == sched.None && n.Target == sched.NodeAsleep {
			d.Nodes = append(d.Nodes, sched.NodeTarget{Node: sched.NodeID(i), State: sched.NodeUp})
			need -= n.Spec.GPUs
		}
	}
}
