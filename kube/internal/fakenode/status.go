package fakenode

import (
	"context"
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// failing starts what a pod waits for on a node that fails starts; the reason follows.
const failing = "fails: "

// waiting says why the pod's containers do not run yet.
func (p *pod) waiting(why string) func(context.Context) error {
	state := corev1.ContainerStateWaiting{Reason: "ContainerCreating", Message: why}
	if reason, ok := strings.CutPrefix(why, failing); ok {
		state = corev1.ContainerStateWaiting{Reason: reason}
	}
	return func(ctx context.Context) error {
		return p.patch(ctx, corev1.PodPending, "", corev1.ContainerState{Waiting: &state})
	}
}

func (p *pod) running(ctx context.Context) error {
	state := corev1.ContainerStateRunning{StartedAt: p.started}
	return p.patch(ctx, corev1.PodRunning, p.fleet.address(), corev1.ContainerState{Running: &state})
}

// ended reports the exit code; reason "" means the usual one.
func (p *pod) ended(code int, reason string) func(context.Context) error {
	phase, usual := corev1.PodSucceeded, "Completed"
	if code != 0 {
		phase, usual = corev1.PodFailed, "Error"
	}
	if reason == "" {
		reason = usual
	}
	state := corev1.ContainerStateTerminated{
		ExitCode: int32(code), Reason: reason, StartedAt: p.started, FinishedAt: metav1.Now(),
	}
	return func(ctx context.Context) error {
		return p.patch(ctx, phase, "", corev1.ContainerState{Terminated: &state})
	}
}

// patch writes the pod's phase and the state of its containers, all the same. Conditions of others stay.
func (p *pod) patch(ctx context.Context, phase corev1.PodPhase, address string, state corev1.ContainerState) error {
	pod := p.first
	now := metav1.Now()
	ready := state.Running != nil
	status := corev1.PodStatus{Phase: phase, PodIP: address}
	if address != "" {
		status.StartTime, status.HostIP = &now, "127.0.0.1"
		status.PodIPs = []corev1.PodIP{{IP: address}}
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		c := corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, LastTransitionTime: now}
		if ready || kind == corev1.PodInitialized {
			c.Status = corev1.ConditionTrue
		}
		status.Conditions = append(status.Conditions, c)
	}
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, State: state, Ready: ready, Started: &ready,
		})
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return err
	}
	_, err = p.fleet.client.CoreV1().Pods(pod.Namespace).
		Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// remove takes the pod out of the API, as a kubelet does once nothing of it runs.
func (p *pod) remove(ctx context.Context) error {
	now := metav1.NewDeleteOptions(0)
	now.Preconditions = metav1.NewUIDPreconditions(string(p.first.UID))
	return p.fleet.client.CoreV1().Pods(p.first.Namespace).Delete(ctx, p.first.Name, *now)
}
