package controller

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	driverjobs "github.com/trainyard/trainyard/kube/driver/jobs"
)

// Types of the conditions of a job.
const (
	Scheduled = "Scheduled" // it holds GPUs, or is done
	RunningOn = "Running"   // all its ranks run
	Complete  = driverjobs.Complete
	HasFailed = driverjobs.HasFailed
	IsHeld    = "Held" // the API server refuses its pods, or does not say whether it takes them
	// IsUnreadable says that its record cannot be read, so that no one decides about it.
	IsUnreadable = "Unreadable"
)

// conditions returns those that go with what a status says, but for those that were never true: each costs the API
// server time at every write. Of one that stays what it was, the time stays as well.
func conditions(old []metav1.Condition, s *v1alpha1.TrainingJobStatus, now time.Time) []metav1.Condition {
	list := slices.Clone(old)
	for _, c := range []struct {
		name string
		is   bool
	}{
		{Scheduled, s.Phase != v1alpha1.Pending},
		{RunningOn, s.Phase == v1alpha1.Running},
		{Complete, s.Phase == v1alpha1.Succeeded},
		{HasFailed, s.Phase == v1alpha1.Failed},
		{IsHeld, strings.HasPrefix(s.Reason, heldBecause)},
		{IsUnreadable, false},
	} {
		status := metav1.ConditionFalse
		switch {
		case c.is:
			status = metav1.ConditionTrue
		case meta.FindStatusCondition(list, c.name) == nil:
			continue
		}
		meta.SetStatusCondition(&list, metav1.Condition{Type: c.name, Status: status, Reason: string(s.Phase),
			Message:            s.Reason,
			LastTransitionTime: metav1.NewTime(now.Truncate(time.Second))})
	}
	return list
}
