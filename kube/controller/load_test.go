package controller

import (
	"testing"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that jobs which went while no one led are missed, and that none is for what a batch did that was cut short:
// jobs that came in it are not counted for others, and those that ended in it are.
func TestGone(t *testing.T) {
	at := func(id sched.JobID, version uint64, state sched.JobState) record.Job {
		return record.Job{ID: id, Version: version, Job: sched.Job{State: state}}
	}
	s := &v1alpha1.SchedulerPolicyStatus{Version: 20, Jobs: 4, Running: 1, Waiting: 2} // job 0 was done
	for _, c := range []struct {
		jobs []record.Job
		want int
	}{
		{[]record.Job{at(0, 5, sched.Done), at(1, 9, sched.Active), at(2, 9, sched.Waiting), at(3, 9, sched.Held)}, 0},
		{[]record.Job{at(1, 9, sched.Active), at(2, 9, sched.Waiting), at(3, 9, sched.Held)}, 0},
		{[]record.Job{at(0, 5, sched.Done), at(2, 9, sched.Waiting), at(3, 9, sched.Held)}, 1},
		{[]record.Job{at(1, 21, sched.Done), at(2, 9, sched.Waiting), at(3, 9, sched.Held)}, 0},
		{[]record.Job{at(1, 9, sched.Active), at(2, 9, sched.Waiting), at(4, 22, sched.Waiting)}, 1},
		{nil, 3},
	} {
		if got := gone(s, c.jobs); got != c.want {
			t.Errorf("of %+v %d are missed, want %d", c.jobs, got, c.want)
		}
	}
}
