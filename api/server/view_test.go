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
