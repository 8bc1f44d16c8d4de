package controller

import (
	"testing"

	"github.com/trainyard/trainyard/sched"
)

// Ensure that no more GPUs are ordered to be in use than there are: those of a node that does not answer are given to
// no one else, and count as long as a job holds them.
func TestFigures(t *testing.T) {
	v := &sched.View{
		Nodes: []sched.Node{{Spec: sched.NodeSpec{Name: "silent", GPUs: 4}, Busy: 3},
			{Spec: sched.NodeSpec{Name: "up", GPUs: 2}, First: 4, Busy: 1}},
		GPUs: []sched.GPU{{State: sched.GPUStuck, Holders: 1}, {State: sched.GPUStuck, Holders: 1},
			{State: sched.GPUStuck, Holders: 1}, {State: sched.GPUStuck},
			{Node: 1, Holders: 1}, {Node: 1}},
		Jobs: []sched.Job{{State: sched.Active}, {State: sched.Held}},
	}
	var all tally
	all.settle(v)
	if gpus, running, waiting := all.figures(); gpus != "4 of 5" || running != 1 || waiting != 1 {
		t.Errorf("%s in use, %d run, %d wait; want 4 of 5, 1, 1", gpus, running, waiting)
	}
}
