package e2e

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/controller"
	"github.com/trainyard/trainyard/kube/internal/controlplane"
	"github.com/trainyard/trainyard/kube/internal/fakenode"
)

// writes is how many objects BenchmarkWrites makes of each kind.
const writes = 400

// BenchmarkWrites measures what the writes cost that a job needs at least once: processor time of API server and etcd,
// while no one watches but the control plane itself.
func BenchmarkWrites(b *testing.B) {
	for b.Loop() {
		r := newRigOn(b, controlplane.Options{}, 1, fakenode.Options{GPUs: gpusOfNode, Heartbeat: 30 * time.Second},
			v1alpha1.SchedulerPolicySpec{System: "las"})
		job := func(i int) *v1alpha1.TrainingJob { return r.job(fmt.Sprint("job-", i), 1) }
		name := func(i int) metav1.ObjectMeta {
			return metav1.ObjectMeta{Namespace: r.space, Name: fmt.Sprint("of-", i)}
		}
		r.measure(b, "job", func(i int) error { return r.api.Create(b.Context(), job(i)) })
		for _, phase := range []v1alpha1.Phase{v1alpha1.Starting, v1alpha1.Running} {
			r.measure(b, "status-"+string(phase), func(i int) error {
				j := job(i)
				was := j.DeepCopy()
				j.Status = v1alpha1.TrainingJobStatus{Phase: phase, Reason: "on node-000/1", Attempt: 1, GPUs: "1",
					Placement: "gpu", Attained: "0s",
					Allocation: []v1alpha1.AllocatedGPU{{Node: "node-000", Device: "1",
						UUID: fakenode.UUID("node-000", 1)}}, Record: long(900),
					Conditions: []metav1.Condition{{Type: controller.Scheduled, Status: metav1.ConditionTrue,
						Reason: string(phase), LastTransitionTime: metav1.Now()}}}
				return r.api.Status().Patch(b.Context(), j, client.MergeFrom(was))
			})
		}
		r.measure(b, "config-map", func(i int) error {
			return r.api.Create(b.Context(),
				&corev1.ConfigMap{ObjectMeta: name(i), BinaryData: map[string][]byte{"record": []byte(long(900))}})
		})
		r.measure(b, "event", func(i int) error {
			about := corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "TrainingJob",
				Namespace: r.space, Name: name(i).Name, UID: "0b0c3a1e-6d5e-4f7a-8f0e-2f6a3c9d1e00"}
			return r.api.Create(b.Context(), &corev1.Event{ObjectMeta: name(i), InvolvedObject: about,
				Type: corev1.EventTypeNormal, Reason: "Started", Count: 1,
				Message: "attempt 1 runs on 1 GPU: node-000/1", FirstTimestamp: metav1.Now(),
				LastTimestamp: metav1.Now(), Source: corev1.EventSource{Component: "trainyard"}})
		})
		r.measure(b, "claim", func(i int) error {
			exact := &resourcev1.ExactDeviceRequest{DeviceClassName: fakenode.Driver,
				AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
				Selectors: []resourcev1.DeviceSelector{
					{CEL: &resourcev1.CELDeviceSelector{
						Expression: fmt.Sprintf(`device.attributes["gpu.nvidia.com"].uuid in ["GPU-%d"]`, i)}}}}
			return r.api.Create(b.Context(),
				&resourcev1.ResourceClaim{ObjectMeta: name(i), Spec: resourcev1.ResourceClaimSpec{
					Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpu",
						Exactly: exact}}}}})
		})
		r.measure(b, "pod", func(i int) error {
			p := &corev1.Pod{ObjectMeta: name(i), Spec: job(i).Spec.Template.Spec}
			p.Spec.SchedulerName = "unknown"
			return r.api.Create(b.Context(), p)
		})
		r.measure(b, "binding", func(i int) error {
			p := &corev1.Pod{ObjectMeta: name(i)}
			return r.api.SubResource("binding").Create(b.Context(), p,
				&corev1.Binding{ObjectMeta: name(i), Target: corev1.ObjectReference{Kind: "Node", Name: "nowhere"}})
		})
	}
}

// measure has a write done many times, several at a time.
func (r *rig) measure(b *testing.B, name string, write func(i int) error) {
	b.Helper()
	before := r.cpu()
	r.times(writes, write)
	used := -before["kube-apiserver"] - before["etcd"]
	now := r.cpu()
	used += now["kube-apiserver"] + now["etcd"]
	b.ReportMetric(used.Seconds()*1e3/writes, name+"-ms")
}
