package driver

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/internal/objects"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that an attempt ends as it does by itself, although the leader changes while its pods are being deleted
// because of that.
func TestFateOutlivesLeader(t *testing.T) {
	for name, c := range map[string]struct {
		width int32
		end   func(w *world) // by itself
		gone  string         // node whose pod is gone when the next leader comes
		want  sched.Outcome
		code  int32
	}{
		"done, another container is not": {2, func(w *world) { w.exitTrainer("train-1-0", 0) }, "",
			sched.Finished, 0},
		"done, and the other one went since": {2, func(w *world) { w.exitTrainer("train-1-0", 0) }, "a",
			sched.Finished, 0},
		"failed, another container has not ended": {2, func(w *world) { w.exitTrainer("train-1-0", 3) }, "",
			sched.Failed,
			3},
		"failed, and the others save": {12, func(w *world) {
			w.cluster.exit(w.Context(), w.podOf("train-1-1"), 3)
		}, "", sched.Failed, 3},
		"failed, and one of the others is gone": {12, func(w *world) {
			w.cluster.exit(w.Context(), w.podOf("train-1-1"), 3)
		}, "c", sched.Failed, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tj := objects.Job("train", c.width, nil)
				tj.Spec.Template.Spec.Containers = append(tj.Spec.Template.Spec.Containers,
					corev1.Container{Name: "side", Image: "side"})
				w := open(t,
					newCluster(t,
						slices.Concat(objects.Node("a", 4), objects.Node("b", 4), objects.Node("c", 4),
							[]client.Object{tj})...), nil)
				w.start(0, gpus(c.width)...)
				w.pass(10 * time.Second)
				w.attempt(0, sched.Running)
				w.silence("a", "b", "c")
				c.end(w)
				w.pass(3 * time.Second) // pods are deleted
				w.attempt(0, sched.Running)
				w.d.Close()
				w.silence(slices.DeleteFunc([]string{"a", "b", "c"}, func(n string) bool { return n == c.gone })...)
				for range 100 {
					time.Sleep(10 * time.Millisecond)
					w.tick()
				}
				w.take(options(w.cluster))
				w.silence()
				w.pass(5 * time.Second)
				if e := w.last(sched.AttemptEnded); e.Outcome != c.want || e.Code != c.code {
					t.Errorf("%v with code %d: %s, want %v with %d", e.Outcome, e.Code, e.Text, c.want, c.code)
				}
			})
		})
	}
}

// Ensure that a gang of which one rank failed ends in time although how it ends cannot be written down.
func TestFateThatCannotBeKept(t *testing.T) {
	play(t, []scene{{name: "", width: 6, test: func(w *world) {
		w.run()
		w.setFail(func(_ string, o client.Object) error {
			if _, is := o.(*v1alpha1.TrainingJob); is {
				return apierrors.NewInternalError(errors.New("failed calling webhook"))
			}
			return nil
		})
		w.cluster.exit(w.Context(), w.podOf("train-1-1"), 3)
		w.pass(time.Minute)
		if e := w.last(sched.AttemptEnded); e.Outcome != sched.Failed || e.Code != 3 {
			t.Errorf("%v with code %d: %s, want failed with 3", e.Outcome, e.Code, e.Text)
		}
	}}})
}

// exitTrainer ends the container that trains of a pod, and not the other one.
func (w *world) exitTrainer(name string, code int32) {
	p := w.podOf(name)
	p.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "side", State: corev1.ContainerState{Running: new(corev1.ContainerStateRunning)}},
		{Name: "main",
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code,
				FinishedAt: metav1.Now()}}},
	}
	must(w, w.Status().Update(w.Context(), p))
}

// silence has the kubelets of these nodes do nothing, and those of all others work.
func (w *world) silence(nodes ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.silent)
	for _, n := range nodes {
		w.cluster.silent[n] = true
	}
}
