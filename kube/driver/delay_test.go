package driver

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/driver/internal/objects"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that what keeps an attempt from starting is reported once it has for a while, again where it is of another
// kind and only then, and that it is reported to be over.
func TestDelays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reported []string
		w := open(t,
			newCluster(t, slices.Concat(objects.Node("a", 4), []client.Object{objects.Job("train", 2, nil)})...),
			func(o *Options) {
				o.Delayed = func(_ sched.JobID, why string) { reported = append(reported, why) }
			})
		want := func(list ...string) {
			t.Helper()
			if !slices.Equal(reported, list) {
				t.Errorf("reported %q, want %q", reported, list)
			}
		}
		startHeld(w)
		w.pass(4 * time.Second)
		want()
		w.pass(time.Minute)
		const held = "its devices are not free: claim lab/other-1 has one"
		want(held)
		w.silent[""] = true // no scheduler binds it
		w.stuck = false
		w.pass(time.Second)
		want(held, "")
		says := func(reason, message string) {
			changeStatus(w.cluster, w.podOf("train-1-0"), func(p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{
					{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message}}
			})
		}
		for _, message := range []string{"0/1 nodes", "0/2 nodes", "0/1 nodes"} { // the same, in other words
			says(corev1.PodReasonUnschedulable, message)
			w.pass(4 * time.Second)
		}
		want(held, "", "pod train-1-0 waits (Unschedulable: 0/2 nodes)")
		for _, reason := range []string{"ErrImagePull", "ImagePullBackOff", "ErrImagePull", "ImagePullBackOff"} {
			changeStatus(w.cluster, w.podOf("train-1-0"), func(p *corev1.Pod) {
				p.Status.ContainerStatuses = []corev1.ContainerStatus{
					{Name: "main",
						State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
			})
			w.pass(3 * time.Second)
		}
		want(held, "", "pod train-1-0 waits (Unschedulable: 0/2 nodes)", "pod train-1-0 waits (ImagePullBackOff)")
	})
}
