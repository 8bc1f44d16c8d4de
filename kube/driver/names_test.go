package driver

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that what others have by a name that an attempt wants keeps the attempt from starting, and that nothing of
// theirs is touched.
func TestNamesOfOthers(t *testing.T) {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: space, Name: name} }
	taken := func(name, text string, width int32, o client.Object) scene {
		return scene{name: name, width: width, test: func(w *world) {
			must(w, w.Create(w.Context(), o))
			w.start(0, gpus(width)...)
			w.settle()
			if e := w.last(sched.StartFailed); e.Text != text {
				w.Errorf("%q, want %q", e.Text, text)
			}
			if err := w.Get(w.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				w.Errorf("what belongs to others: %v", err)
			}
		}}
	}
	play(t, []scene{
		taken("a claim", "claim train-1 is there already and belongs to someone else", 1,
			&resourcev1.ResourceClaim{ObjectMeta: meta("train-1")}),
		taken("a claim of a rank", "claim train-1-r1 is there already and belongs to someone else", 6,
			&resourcev1.ResourceClaim{ObjectMeta: meta("train-1-r1")}),
		taken("a service", "service train-1 is there already and belongs to someone else", 6,
			&corev1.Service{ObjectMeta: meta("train-1")}),
		{name: "a pod, once its machines are lost", width: 1, test: func(w *world) {
			w.run()
			must(w, w.Delete(w.Context(), w.podOf("train-1-0"), client.GracePeriodSeconds(0)))
			must(w, w.Create(w.Context(),
				&corev1.Pod{ObjectMeta: meta("train-1-0"), Spec: corev1.PodSpec{SchedulerName: "another"}}))
			w.settle()
			w.ended(sched.NodeLost, "")
			if w.podOf("train-1-0") == nil {
				w.Error("the pod of others is gone")
			}
		}},
		{name: "the claim of a GPU that is shared", width: 1, opts: func(o *Options) { o.Mode = v1alpha1.Pinned },
			test: func(w *world) {
				name := slotNameOf("GPU-a-0")
				must(w, w.Create(w.Context(), &resourcev1.ResourceClaim{ObjectMeta: meta(name)}))
				w.startAs(0, sched.Config{Share: sched.Shared}, 0)
				w.settle()
				if w.last(sched.StartFailed); w.claimNamed(name) == nil {
					w.Error("the claim of others is gone")
				}
			}},
	})
}
