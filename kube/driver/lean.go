package driver

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/jobs"
)

// Lean leaves out of an object what no look needs of it: a cache keeps all jobs and their pods. What is needed of a job
// for a start is read again then. It may be called again with what it returned.
func Lean(o any) (any, error) {
	if object, is := o.(client.Object); is {
		object.SetManagedFields(nil)
	}
	switch is := o.(type) {
	case *v1alpha1.TrainingJob:
		return jobs.Cut(is)
	case *corev1.Pod:
		cutPod(is)
	}
	return o, nil
}

// cutPod keeps of what a pod requests where it runs, its claims and the names of its containers.
func cutPod(p *corev1.Pod) {
	s := corev1.PodSpec{NodeName: p.Spec.NodeName, ResourceClaims: p.Spec.ResourceClaims}
	for i := range p.Spec.Containers {
		s.Containers = append(s.Containers, corev1.Container{Name: p.Spec.Containers[i].Name})
	}
	p.Spec = s
}
