// Package v1alpha1 is the API of Trainyard on Kubernetes: TrainingJob, what users submit; SchedulerPolicy, who decides;
// GPUPool, what may be rented; GPUProfile, what is known of the GPUs of a node.
//
// +kubebuilder:object:generate=true
// +groupName=trainyard.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion names the API.
var GroupVersion = schema.GroupVersion{Group: "trainyard.dev", Version: "v1alpha1"}

// AddToScheme makes the types of the API known to s.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &TrainingJob{}, &TrainingJobList{}, &SchedulerPolicy{}, &SchedulerPolicyList{},
		&GPUPool{}, &GPUPoolList{}, &GPUProfile{}, &GPUProfileList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// Names that objects of others carry because of us.
const (
	// Finalizer keeps a TrainingJob until none of its processes is left.
	Finalizer = "trainyard.dev/stop"
	// LabelJob and LabelAttempt stand on the claims, pods and services of an attempt: the job's name, the attempt's
	// number.
	LabelJob     = "trainyard.dev/job"
	LabelAttempt = "trainyard.dev/attempt"
	LabelRank    = "trainyard.dev/rank"
	// LabelPool names, on a node, the GPUPool it is rented from.
	LabelPool = "trainyard.dev/pool"
	// TaintPool keeps the pods of others off nodes that are ours alone; its value is the pool.
	TaintPool = "trainyard.dev/pool"
	// AnnotationGPUs lists, on a node without ResourceSlices, the UUIDs of its GPUs in order, separated by commas.
	AnnotationGPUs = "trainyard.dev/gpus"
	// AnnotationReleased stands on a node that is given back.
	AnnotationReleased = "trainyard.dev/released"
	// AnnotationProgress is what a training process says on its pod: a line of the training contract.
	AnnotationProgress = "trainyard.dev/progress"
	// AnnotationContainer names, on a pod of a job, the container that trains: webhooks may put others before it.
	AnnotationContainer = "trainyard.dev/container"
	// AnnotationDeletion says, on a TrainingJob, how an attempt ended whose pods are being deleted because of it.
	AnnotationDeletion = "trainyard.dev/fate"
)
