package fakenode

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Driver is the name of the DRA driver, and of the DeviceClass of its GPUs.
const Driver = "gpu.nvidia.com"

// plugin is the resource of the device plugin.
const plugin corev1.ResourceName = "nvidia.com/gpu"

func (f *Fleet) labels() map[string]string { return map[string]string{fleetLabel: f.id} }

func (f *Fleet) createClass(ctx context.Context) error {
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: Driver}}
	class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
		Expression: `device.driver == "` + Driver + `" && device.attributes["` + Driver + `"].type == "gpu"`,
	}}}
	_, err := f.client.ResourceV1().DeviceClasses().Create(ctx, class, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (f *Fleet) nodeObject(name string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: f.labels()}}
	n.Labels[corev1.LabelHostname] = name
	resources := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("128"),
		corev1.ResourceMemory: resource.MustParse("1Ti"),
		corev1.ResourcePods:   resource.MustParse("256"),
	}
	if f.options.Plugin {
		resources[plugin] = *resource.NewQuantity(int64(f.options.GPUs), resource.DecimalSI)
	}
	n.Status.Capacity, n.Status.Allocatable = resources, resources
	n.Status.Conditions = readyConditions()
	n.Status.NodeInfo.KubeletVersion = "v1.36.3"
	f.reachable(n)
	return n
}

func readyConditions() []corev1.NodeCondition {
	now := metav1.Now()
	return []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
		LastHeartbeatTime: now, LastTransitionTime: now,
	}}
}

func isReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// patchReady writes that a node is ready.
func (f *Fleet) patchReady(ctx context.Context, name string) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": readyConditions()}})
	if err != nil {
		return err
	}
	_, err = f.client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{},
		"status")
	return err
}

// patchStatus writes what a node says of itself when it joins.
func (f *Fleet) patchStatus(ctx context.Context, name string) error {
	patch, err := json.Marshal(map[string]any{"status": f.nodeObject(name).Status})
	if err != nil {
		return err
	}
	_, err = f.client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{},
		"status")
	return err
}

func sliceName(node string) string { return node + "-" + Driver }

// publish creates the ResourceSlice of a node.
func (f *Fleet) publish(ctx context.Context, node string) error {
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: sliceName(node), Labels: f.labels()}}
	s.Spec = resourcev1.ResourceSliceSpec{
		Driver:   Driver,
		NodeName: &node,
		Pool:     resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
	}
	for i := range f.options.GPUs {
		s.Spec.Devices = append(s.Spec.Devices, f.device(node, i))
	}
	_, err := f.client.ResourceV1().ResourceSlices().Create(ctx, s, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) { // of an adopted node
		return nil
	}
	return err
}

func deviceName(gpu int) string { return "gpu-" + strconv.Itoa(gpu) }

func (f *Fleet) device(node string, i int) resourcev1.Device {
	text := func(s string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{StringValue: &s} }
	d := resourcev1.Device{
		Name: deviceName(i),
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"type": text("gpu"), "uuid": text(UUID(node, i)), "productName": text(f.options.Product),
		},
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
			"memory": {Value: *resource.NewQuantity(f.options.MemoryGiB<<30, resource.BinarySI)},
		},
	}
	if f.options.Consumable {
		d.AllowMultipleAllocations = new(true)
	}
	return d
}

// renew writes the node's lease: the one that it wrote last, renewed, or, where that is nil, a new one.
func (f *Fleet) renew(ctx context.Context, node string, last *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	leases := f.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	now := metav1.NowMicro()
	if last != nil {
		last.Spec.RenewTime = &now
		next, err := leases.Update(ctx, last, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return next, err
		}
	}
	lease, err := leases.Get(ctx, node, metav1.GetOptions{})
	switch {
	case err == nil:
		lease.Spec.RenewTime = &now
		return leases.Update(ctx, lease, metav1.UpdateOptions{})
	case !apierrors.IsNotFound(err):
		return nil, err
	}
	lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: f.labels()}}
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &node, LeaseDurationSeconds: new(int32(40)), RenewTime: &now}
	return leases.Create(ctx, lease, metav1.CreateOptions{})
}

// cleanUp deletes what the fleet made, the DeviceClass excepted: others may use it.
func (f *Fleet) cleanUp() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	mine := metav1.ListOptions{LabelSelector: fleetLabel + "=" + f.id}
	return errors.Join(
		f.client.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, mine),
		f.client.ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, mine),
		f.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).DeleteCollection(ctx, metav1.DeleteOptions{}, mine),
	)
}
