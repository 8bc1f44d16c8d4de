package server

import (
	"testing"

	"github.com/trainyard/trainyard/sched"
)

// Ensure that a node is said to be drained if its user wants that, and not because no one rents it.
func TestDrained(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		node sched.NodeState
		gpus [2]sched.GPUState
		want bool
	}{
		"up":                     {sched.NodeUp, [2]sched.GPUState{}, false},
		"drained":                {sched.NodeDraining, [2]sched.GPUState{}, true},
		"one GPU drained":        {sched.NodeUp, [2]sched.GPUState{sched.GPUWithheld}, false},
		"all GPUs drained":       {sched.NodeUp, [2]sched.GPUState{sched.GPUWithheld, sched.GPUWithheld}, true},
		"not rented":             {sched.NodeGone, [2]sched.GPUState{}, false},
		"not rented and drained": {sched.NodeGone, [2]sched.GPUState{sched.GPUWithheld, sched.GPUWithheld}, true},
	} {
		v := &sched.View{Nodes: []sched.Node{{Spec: sched.NodeSpec{GPUs: 2}, State: c.node}}}
		for _, s := range c.gpus {
			v.GPUs = append(v.GPUs, sched.GPU{State: s})
		}
		if got := drained(v, &v.Nodes[0]); got != c.want {
			t.Errorf("%s: drained %v, want %v", name, got, c.want)
		}
	}
}

// Ensure that a task waits for others of its array only once all that it depends on is done, whatever became of the
// tasks before it.
func TestWaitsForTasks(t *testing.T) {
	t.Parallel()
	spec := sched.JobSpec{After: []sched.JobID{0},
		Ties: sched.Ties{Array: sched.Array{Place: 2, Index: 2, Size: 4, AtOnce: 2}}}
	v := &sched.View{Jobs: []sched.Job{{State: sched.Waiting, Spec: &sched.JobSpec{}},
		{State: sched.Held, Spec: &spec}}}
	task := &v.Jobs[1]
	for _, c := range []struct {
		blockers int32
		before   sched.JobState
		paused   bool
		want     string
	}{
		{2, sched.Waiting, false, "held"}, {1, sched.Waiting, false, "held"}, {1, sched.Done, false, "waiting"},
		{1, sched.Done, true, "held"}, {0, sched.Done, false, "held"},
	} {
		task.SetBlockedBy(c.blockers)
		v.Jobs[0].State, task.Paused = c.before, c.paused
		if got := stateOf(v, task); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
