package record_test

import (
	"fmt"
	"testing"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that the status of a job names its GPUs and who shares each of them, those that are stopping included.
func TestAllocation(t *testing.T) {
	shared, alone := sched.Config{Share: sched.Shared}, sched.Config{}
	job := func(name string, a sched.AttemptState, c sched.Config, gpus ...sched.GPUID) sched.Job {
		return sched.Job{Spec: &sched.JobSpec{User: "lab", Name: name, GPUs: sched.Rigid(len(gpus))},
			State: sched.Active, Attempt: a, Up: true, Live: c, GPUs: gpus}
	}
	v := &sched.View{Nodes: []sched.Node{{Spec: sched.NodeSpec{Name: "n", GPUs: 4,
		Devices: []string{"U0", "U1", "U2", "U3"}}}}, GPUs: make([]sched.GPU, 4),
		Jobs: []sched.Job{job("a", sched.Running, shared, 0, 1), job("b", sched.Stopping, shared, 1),
			job("c", sched.Starting, shared, 1, 2), job("d", sched.Running, alone, 3)}}
	tenants := map[sched.GPUID][]sched.JobID{0: {0}, 1: {0, 1, 2}, 2: {2}}
	for id, want := range []string{"[{n 0 U0 []} {n 1 U1 [lab/b lab/c]}]", "[{n 1 U1 [lab/a lab/c]}]",
		"[{n 1 U1 [lab/a lab/b]} {n 2 U2 []}]", "[{n 3 U3 []}]"} {
		s := record.Extract(v, sched.JobID(id), v1alpha1.Pinned, tenants)
		if got := fmt.Sprint(s.Allocation); got != want {
			t.Errorf("job %d: %s, want %s", id, got, want)
		}
	}
}
