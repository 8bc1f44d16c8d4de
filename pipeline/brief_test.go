package pipeline

import (
	"slices"
	"testing"

	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that who asks about all tasks of an array that wait for others of it has these named as who asks about one,
// one that is paused too, and looked for once: to look for each of 100,000 tasks among all of them takes minutes, in
// which nothing is decided.
func TestBriefOfArrays(t *testing.T) {
	const tasks = 5
	v := &sched.View{}
	for place := range int32(2 * tasks) {
		j := sched.Job{State: sched.Held, Spec: &sched.JobSpec{GPUs: sched.Rigid(1),
			Ties: sched.Ties{Array: sched.Array{Place: place % tasks, Index: place % tasks, Size: tasks, AtOnce: 2}}}}
		switch place % tasks {
		case 0:
			j.State = sched.Done
		case 1:
			j.State = sched.Waiting
		case 2:
			j.Paused = true
		default:
			j.SetBlockedBy(1)
		}
		v.Jobs = append(v.Jobs, j)
	}
	b := NewBrief(v, nil)
	for _, id := range []sched.JobID{3, 4, 8, 9} {
		want := []sched.JobID{1, 2}
		if id >= tasks {
			want = []sched.JobID{tasks + 1, tasks + 2}
		}
		brief, whole := b.Why(id), Why(v, nil, id)
		if brief.Code != explain.WaitArray || !slices.Equal(brief.Jobs, want) || !slices.Equal(whole.Jobs, want) {
			t.Errorf("job %d: %v for %v, asked alone for %v, want %v", id, brief.Code, brief.Jobs, whole.Jobs, want)
		}
	}
	one, other := b.Why(3), b.Why(4)
	if len(b.open) != 2 || &one.Jobs[0] != &other.Jobs[0] {
		t.Errorf("the tasks of %d arrays were looked for, want those of 2 once each", len(b.open))
	}
}
