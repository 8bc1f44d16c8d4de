package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/internal/fakenode"
)

// Ensure that a job that is done goes with its pods once its time is over, that another stays, and that jobs whose
// templates the cache has left out start: at once, after they waited, and after their controller was replaced.
func TestDoneJobsGo(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, fakenode.Options{GPUs: 2, Run: fakenode.Script(time.Second, 0, 0)}, v1alpha1.SchedulerPolicySpec{
		System: "fifo", TTLAfterFinished: "never"})
	r.serve()
	for _, name := range []string{"first", "second", "third"} {
		r.create(r.job(name, 2, func(j *v1alpha1.TrainingJob) {
			if name != "third" {
				j.Spec.TTLSecondsAfterFinished = new(int32)
			}
		}))
	}
	for _, name := range []string{"first", "second", "third"} {
		r.gone(name, name == "third")
	}
	r.kill()
	r.serve()
	for _, name := range []string{"first", "second"} {
		eventually(t, name+" is gone with its pods", func() bool {
			var pods corev1.PodList
			must(t, r.api.List(t.Context(), &pods, client.InNamespace(r.space),
				client.MatchingLabels{v1alpha1.LabelJob: name}))
			err := r.api.Get(t.Context(), client.ObjectKey{Namespace: r.space, Name: name}, &v1alpha1.TrainingJob{})
			return apierrors.IsNotFound(err) && len(pods.Items) == 0
		})
	}
	r.create(r.job("first", 2)) // another of the name
	r.until("first", v1alpha1.Succeeded)
	r.until("third", v1alpha1.Succeeded)
}

// gone waits for a job to succeed, or to be gone already if it does not stay.
func (r *rig) gone(name string, stays bool) {
	r.t.Helper()
	eventually(r.t, name+" succeeds", func() bool {
		var j v1alpha1.TrainingJob
		err := r.api.Get(r.t.Context(), client.ObjectKey{Namespace: r.space, Name: name}, &j)
		if apierrors.IsNotFound(err) {
			return !stays
		}
		return err == nil && j.Status.Phase == v1alpha1.Succeeded
	})
}
