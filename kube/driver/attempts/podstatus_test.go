package attempts

import (
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/sched"
)

var origin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Ensure that of several things that went wrong the first counts.
func TestCause(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return origin.Add(time.Duration(s) * time.Second) }
	ok, fail1, fail2 := podStatus{stage: succeeded}, podStatus{stage: failed, code: 1, at: at(1), text: "f1"},
		podStatus{stage: failed, code: 2, at: at(2), text: "f2"}
	lost1, lost2, refused := podStatus{stage: lost, at: at(1), text: "l1"},
		podStatus{stage: lost, at: at(2), text: "l2"}, podStatus{stage: lost, unrun: true, text: "r"}
	runs := podStatus{stage: up}
	for _, c := range []struct {
		name            string
		ranks           []podStatus
		silent, started bool
		want            *ending
	}{
		{"all run", []podStatus{runs, runs}, false, true, nil},
		{"one is done before the others", []podStatus{ok, runs}, false, true, nil},
		{"all are done", []podStatus{ok, ok}, false, true, &ending{outcome: sched.Finished}},
		{"the first failure", []podStatus{fail2, fail1, ok}, false, true,
			&ending{outcome: sched.Failed, code: 1, text: "f1"}},
		{"lost before it failed", []podStatus{fail2, lost1}, false, true, &ending{outcome: sched.NodeLost, text: "l1"}},
		{"lost as it failed", []podStatus{fail1, lost1}, false, true, &ending{outcome: sched.NodeLost, text: "l1"}},
		{"lost after it failed", []podStatus{lost2, fail1}, false, true,
			&ending{outcome: sched.Failed, code: 1, text: "f1"}},
		{"failed next to a silent node", []podStatus{fail1, runs}, true, true,
			&ending{outcome: sched.NodeLost, code: 1, text: "f1; a node of another rank does not answer"}},
		{"failed alone on a silent node", []podStatus{fail1}, true, true,
			&ending{outcome: sched.Failed, code: 1, text: "f1"}},
		{"refused before it ran", []podStatus{runs, refused}, false, false, &ending{text: "r", suspect: []int{1}}},
		{"refused after it ran", []podStatus{runs, refused}, false, true, &ending{outcome: sched.NodeLost, text: "r"}},
	} {
		if got := cause(c.ranks, c.silent, c.started); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// Ensure that a pod shows what its process did, and who ended it.
func TestLook(t *testing.T) {
	t.Parallel()
	now := metav1.NewTime(origin)
	pod := func(phase corev1.PodPhase, exit int32, change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"},
			Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "main"}, {Name: "side"}}}}
		p.Status.Phase = phase
		if exit >= 0 {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "side"},
				{Name: "main", State: corev1.ContainerState{
					Terminated: &corev1.ContainerStateTerminated{ExitCode: exit, FinishedAt: now, Reason: "Why"}}}}
		}
		if change != nil {
			change(p)
		}
		return p
	}
	deleted := func(p *corev1.Pod) { p.DeletionTimestamp = &now }
	sideOver := func(p *corev1.Pod) {
		p.Status.ContainerStatuses[0].State.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: now}
	}
	putBefore := func(p *corev1.Pod) {
		p.Annotations = map[string]string{v1alpha1.AnnotationContainer: "main"}
		slices.Reverse(p.Spec.Containers)
	}
	for _, c := range []struct {
		name       string
		pod        *corev1.Pod
		ours, gone bool
		want       podStatus
	}{
		{"runs", pod(corev1.PodRunning, -1, nil), false, false, podStatus{stage: up}},
		{"is done", pod(corev1.PodSucceeded, 0, nil), false, false,
			podStatus{stage: succeeded, over: true, at: origin}},
		{"is done, another container is not", pod(corev1.PodRunning, 0, nil), false, false,
			podStatus{stage: succeeded, at: origin}},
		{"failed, another container has not ended", pod(corev1.PodRunning, 3, nil), false, false,
			podStatus{stage: failed, code: 3, at: origin, text: "pod p: exit code 3 (Why)"}},
		{"is over, and the kubelet has yet to say of what", pod(corev1.PodRunning, 0, sideOver), false, false,
			podStatus{stage: up, at: origin}},
		{"is done, another container failed", pod(corev1.PodFailed, 0, sideOver), false, false,
			podStatus{stage: succeeded, over: true, at: origin}},
		{"saves and exits with 0 at its deadline",
			pod(corev1.PodFailed, 0, func(p *corev1.Pod) { p.Status.Reason = "DeadlineExceeded" }), false, false,
			podStatus{stage: failed, over: true, at: origin, text: "pod p ran longer than its activeDeadlineSeconds"}},
		{"saves and exits with 0 as its node shuts down",
			pod(corev1.PodFailed, 0,
				func(p *corev1.Pod) { p.Status.Reason, p.Status.Message = "Terminated", "shutdown" }), false, false,
			podStatus{stage: lost, over: true, unrun: true, at: origin, text: "pod p failed (Terminated: shutdown)"}},
		{"is done, behind a container that was put before it", pod(corev1.PodRunning, 0, putBefore), false, false,
			podStatus{stage: succeeded, at: origin}},
		{"failed, behind a container that was put before it", pod(corev1.PodRunning, 3, putBefore), false, false,
			podStatus{stage: failed, code: 3, at: origin, text: "pod p: exit code 3 (Why)"}},
		{"failed", pod(corev1.PodFailed, 3, nil), false, false,
			podStatus{stage: failed, over: true, code: 3, at: origin, text: "pod p: exit code 3 (Why)"}},
		{"ended while containerd was away",
			pod(corev1.PodFailed, 255, func(p *corev1.Pod) {
				p.Status.ContainerStatuses[1].State.Terminated.Reason = "Unknown"
			}), false, false,
			podStatus{stage: lost, over: true, unrun: true, code: 255, at: origin,
				text: "pod p ended, and no one saw how (Unknown)"}},
		{"failed with last words", pod(corev1.PodFailed, 1, func(p *corev1.Pod) {
			p.Status.ContainerStatuses[1].State.Terminated.Message = "Traceback:\n  line 3\nout of memory\n\n"
		}), false, false,
			podStatus{stage: failed, over: true, code: 1, at: origin, text: "pod p: exit code 1 (Why: out of memory)"}},
		{"failed as we stopped it", pod(corev1.PodFailed, 3, deleted), true, false,
			podStatus{stage: leaving, over: true, code: 3, at: origin}},
		{"is asked to stop", pod(corev1.PodRunning, -1, deleted), true, false, podStatus{stage: leaving}},
		{"deleted by others", pod(corev1.PodRunning, -1, deleted), false, false,
			podStatus{stage: lost, at: origin, text: "someone else deleted pod p"}},
		{"exits with 0 when others end it", pod(corev1.PodSucceeded, 0, deleted), false, false,
			podStatus{stage: lost, over: true, at: origin, text: "someone else deleted pod p"}},
		{"its node is gone", pod(corev1.PodRunning, -1, nil), true, true,
			podStatus{stage: lost, text: "node n is gone"}},
		{"its node is gone after it failed", pod(corev1.PodFailed, 3, nil), false, true,
			podStatus{stage: failed, over: true, code: 3, at: origin, text: "pod p: exit code 3 (Why)"}},
		{"evicted", pod(corev1.PodFailed, -1, func(p *corev1.Pod) { p.Status.Reason = "Evicted" }), false, false,
			podStatus{stage: lost, over: true, text: "pod p was ended from outside (Evicted)"}},
		{"not bound", pod(corev1.PodPending, -1, func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
				Reason: "Unschedulable", Message: "no"}}
		}), false, false,
			podStatus{stage: pending, text: "pod p waits (Unschedulable: no)", waits: "Unschedulable", fault: true}},
		{"not bound for want of its GPUs", pod(corev1.PodPending, -1, func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
				Message: "0/9 nodes are available: 1 cannot allocate all claims, 8 others"}}
		}), false, false,
			podStatus{stage: pending,
				text: "pod p waits (0/9 nodes are available: 1 cannot allocate all claims, 8 others)"}},
		{"not bound for want of so many GPUs", pod(corev1.PodPending, -1, func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
				Message: "0/9 nodes are available: 1 Insufficient nvidia.com/gpu, 8 others"}}
		}), false, false,
			podStatus{stage: pending,
				text: "pod p waits (0/9 nodes are available: 1 Insufficient nvidia.com/gpu, 8 others)"}},
	} {
		got := statusOf(c.pod, c.ours, c.gone)
		if !got.at.Equal(c.want.at) {
			t.Errorf("%s: at %v, want %v", c.name, got.at, c.want.at)
		}
		got.at = c.want.at
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
