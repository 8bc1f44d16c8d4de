package controller

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	driverjobs "github.com/trainyard/trainyard/kube/driver/jobs"
)

// How jobs that are done are deleted.
const (
	removeEvery = 10 * time.Second       // between looks for those whose time is over, at most
	removeSoon  = 5 * time.Second        // and at least
	removePace  = 100 * time.Millisecond // between two deletions, so that the API server has time for others
	never       = "never"
)

// removeDone deletes jobs whose time after their end is over, until ctx ends: that which they say, or else keep. Their
// pods go with them. The cache says which these are; one that was changed since is looked at again.
func (c *Controller) removeDone(ctx context.Context, keep string) {
	for {
		next := removeEvery
		var list v1alpha1.TrainingJobList
		if err := c.o.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
			c.o.Log.Debug("jobs cannot be listed", "error", err)
		}
		now := c.o.Clock()
		for i := range list.Items {
			j := &list.Items[i]
			over, ok := expires(j, keep)
			switch left := over.Sub(now); {
			case !ok:
			case left > 0:
				next = min(next, max(left, removeSoon))
			case !c.remove(ctx, j):
				return
			}
		}
		if !pause(ctx, next) {
			return
		}
	}
}

// remove deletes a job, if it still is as it was read. It reports whether this leader goes on.
func (c *Controller) remove(ctx context.Context, j *v1alpha1.TrainingJob) bool {
	if c.o.Held() != nil {
		return false
	}
	gone := &v1alpha1.TrainingJob{}
	gone.Namespace, gone.Name = j.Namespace, j.Name
	err := c.o.Client.Delete(ctx, gone, client.Preconditions{UID: &j.UID, ResourceVersion: &j.ResourceVersion})
	switch job := client.ObjectKeyFromObject(j); {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
	case err != nil:
		c.o.Log.Warn("a job that is done cannot be deleted", "job", job, "error", err)
	default:
		c.o.Log.Info("a job is deleted, as it has been done for long", "job", job)
	}
	return pause(ctx, removePace)
}

// pause waits for a time. It reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// expires returns when a job is to be deleted; ok is false of one that is not to be, as it is not done, or is kept for
// good, or does not say when it ended.
func expires(j *v1alpha1.TrainingJob, keep string) (at time.Time, ok bool) {
	if j.DeletionTimestamp != nil || !driverjobs.IsOver(j) {
		return at, false
	}
	var ttl time.Duration
	switch own := j.Spec.TTLSecondsAfterFinished; {
	case own != nil:
		ttl = time.Duration(*own) * time.Second
	case keep == never || keep == "":
		return at, false
	default:
		var err error
		if ttl, err = time.ParseDuration(keep); err != nil {
			return at, false
		}
	}
	for _, c := range j.Status.Conditions {
		if (c.Type == Complete || c.Type == HasFailed) && c.Status == "True" && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Add(ttl), true
		}
	}
	return at, false
}
