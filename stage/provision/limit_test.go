package provision_test

import (
	"testing"

	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/provision"
)

// Ensure that nothing is rented for jobs that their user's limit keeps from GPUs, for good or while others of the user
// hold some.
func TestNothingIsRentedBeyondALimit(t *testing.T) {
	job := func(user string, gpus int, holds ...sched.GPUID) sched.Job {
		j := sched.Job{Spec: &sched.JobSpec{User: user, GPUs: sched.Rigid(gpus)}, State: sched.Waiting, Target: holds}
		if len(holds) > 0 {
			j.State = sched.Active
		}
		return j
	}
	wide := job("a", 2)
	wide.Spec.GPUs.Want, wide.Spec.GPUs.Max = 64, 64
	for _, c := range []struct {
		name  string
		asked provision.Asked
		jobs  []sched.Job
		want  int32
	}{
		{"no limit", provision.Asked{}, []sched.Job{job("a", 9), job("b", 5)}, 14},
		{"wider than the limit", provision.Asked{PerUser: 8}, []sched.Job{job("a", 9), job("b", 5)}, 5},
		{"together wider than the limit", provision.Asked{PerUser: 8},
			[]sched.Job{job("a", 6), job("a", 3), job("a", 2), job("b", 8)}, 16},
		{"next to one that holds GPUs, though it came later", provision.Asked{PerUser: 8},
			[]sched.Job{job("a", 7), job("a", 2, 0, 1)}, 2},
		{"may be narrower", provision.Asked{PerUser: 8, Narrows: true}, []sched.Job{wide, job("a", 1)}, 8},
	} {
		v := &sched.View{Pools: []sched.Pool{{Spec: sched.PoolSpec{GPUs: 8, Max: 9}}},
			Nodes: []sched.Node{{Spec: sched.NodeSpec{GPUs: 2, Pool: sched.None}}},
			GPUs:  make([]sched.GPU, 2), Jobs: c.jobs, Version: 1}
		sum := make([]int32, 2)
		if c.asked.Demand(v, sum); sum[0]+sum[1] != c.want {
			t.Errorf("%s: %v, want %d in all", c.name, sum, c.want)
		}
	}
}
