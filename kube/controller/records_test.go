package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that a record by a leader whose clock was ten minutes ahead is taken, and none of a number or a time that
// would use up all memory, or all time.
func TestPlausible(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	c := New(Options{Clock: func() time.Time { return now }})
	const hour = sched.Time(time.Hour)
	st := v1alpha1.SchedulerPolicyStatus{Jobs: 100, Version: 5000, Now: int64(23 * hour),
		Origin: &metav1.Time{Time: now.Add(-24 * time.Hour)}}
	limits := c.plausible(&st, 10)
	for _, test := range []struct {
		id      sched.JobID
		version uint64
		settled sched.Time
		taken   bool
	}{
		{0, 1, hour, true}, {109, 6000, 24 * hour, true}, {1, 1, 24*hour + hour/6, true},
		{110, 1, 0, false}, {1 << 30, 1, 0, false}, {1, 1 << 60, 0, false}, {1, 1, 49 * hour, false},
		{1, 1, sched.Never - 1, false},
	} {
		r := record.Job{ID: test.id, Version: test.version, Job: sched.Job{Settled: test.settled}}
		if err := limits.check(&r); (err == nil) != test.taken {
			t.Errorf("%+v: %v", test, err)
		}
	}
	again := c.plausible(&v1alpha1.SchedulerPolicyStatus{}, 10) // of a policy that was made again
	if err := again.check(&record.Job{ID: 1 << 20}); err != nil {
		t.Error(err)
	}
	if again.check(&record.Job{ID: 1 << 30}) == nil {
		t.Error("want a number refused that would use up all memory")
	}
}
