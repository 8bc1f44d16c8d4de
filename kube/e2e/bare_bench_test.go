package e2e

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/kube/internal/fakenode"
)

// pod is the i-th pod of a benchmark, of one GPU where it is given any.
func (r *rig) pod(i int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.space, Name: fmt.Sprint("pod-", i)},
		Spec: r.job("", 1).Spec.Template.Spec}
}

// gpu is the node of the i-th pod, and its GPU there.
func (r *rig) gpu(i int) (node string, index int) {
	return fakenode.Names("node", *fillNodes)[i/gpusOfNode], i % gpusOfNode
}

// placePinned makes the i-th pod, and a claim of one GPU that kube-scheduler allocates.
func (r *rig) placePinned(ctx context.Context, i int) error {
	_, _, err := r.claimed(ctx, i, "")
	return err
}

// placeDirect makes the i-th pod, allocates the claim of its GPU and binds it: nothing is left to kube-scheduler.
func (r *rig) placeDirect(ctx context.Context, i int) error {
	p, c, err := r.claimed(ctx, i, "unknown")
	if err != nil {
		return err
	}
	node, index := r.gpu(i)
	c.Status.Allocation = &resourcev1.AllocationResult{
		Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
			{Request: "gpu", Driver: fakenode.Driver, Pool: node, Device: fmt.Sprint("gpu-", index)}}}}
	c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: p.Name, UID: p.UID}}
	if err := r.api.Status().Update(ctx, c); err != nil {
		return err
	}
	b := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
		Target: corev1.ObjectReference{Kind: "Node", Name: node}}
	return r.api.SubResource("binding").Create(ctx, p, b)
}

// claimed makes the i-th pod, for a scheduler that has its node set, and a claim of its GPU.
func (r *rig) claimed(ctx context.Context, i int, scheduler string) (*corev1.Pod, *resourcev1.ResourceClaim, error) {
	p := r.pod(i)
	node, index := r.gpu(i)
	exact := &resourcev1.ExactDeviceRequest{DeviceClassName: fakenode.Driver,
		AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
			Expression: fmt.Sprintf("device.attributes[%q].uuid in [%q]", fakenode.Driver,
				fakenode.UUID(node, index))}}}}
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name,
		Finalizers: []string{resourcev1.Finalizer}},
		Spec: resourcev1.ResourceClaimSpec{
			Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: exact}}}}}
	if err := r.api.Create(ctx, c); err != nil {
		return nil, nil, err
	}
	p.Spec.SchedulerName = scheduler
	p.Spec.Affinity = &corev1.Affinity{
		NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}}}
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &c.Name}}
	p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	return p, c, r.api.Create(ctx, p)
}
