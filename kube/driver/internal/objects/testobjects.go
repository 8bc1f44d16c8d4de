// Package objects makes the objects of a cluster that tests of the driver use.
package objects

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
)

// Namespace is that of jobs, and Driver that of devices, which has a class of the same name.
const (
	Namespace = "lab"
	Driver    = "gpu.nvidia.com"
)

// Quantity returns a number as resources have it.
func Quantity(n int) *resource.Quantity { return resource.NewQuantity(int64(n), resource.DecimalSI) }

// Node returns a node that is ready and its slice, with GPUs GPU-NAME-0 and up.
func Node(name string, gpus int) []client.Object {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	n.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"),
		"nvidia.com/gpu": *Quantity(gpus),
	}
	return []client.Object{n, Slice(name, gpus)}
}

// Slice returns the slice of a node, with GPUs GPU-NAME-0 and up.
func Slice(name string, gpus int) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name + "-" + Driver}}
	pool := resourcev1.ResourcePool{Name: name, Generation: 1, ResourceSliceCount: 1}
	s.Spec = resourcev1.ResourceSliceSpec{Driver: Driver, NodeName: &name, Pool: pool}
	text := func(s string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{StringValue: &s} }
	for i := range gpus {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{
			Name: fmt.Sprint("gpu-", i),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"type": text("gpu"), "uuid": text(fmt.Sprintf("GPU-%s-%d", name, i)), "productName": text("V100"),
			},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
				"memory": {Value: resource.MustParse("32Gi")},
			},
		})
	}
	return s
}

// Job returns a TrainingJob of a width, with these variables.
func Job(name string, width int32, env map[string]string) *v1alpha1.TrainingJob {
	c := corev1.Container{Name: "main", Image: "train", Command: []string{"train"}}
	for _, k := range slices.Sorted(maps.Keys(env)) {
		c.Env = append(c.Env, corev1.EnvVar{Name: k, Value: env[k]})
	}
	meta := metav1.ObjectMeta{Namespace: Namespace, Name: name, Finalizers: []string{v1alpha1.Finalizer}}
	return &v1alpha1.TrainingJob{ObjectMeta: meta, Spec: v1alpha1.TrainingJobSpec{Preemptible: v1alpha1.PreemptAlways,
		GPUs: v1alpha1.Width{Min: width}, Checkpoint: v1alpha1.Checkpoint{GraceSeconds: 30},
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{c}}},
	}}
}
