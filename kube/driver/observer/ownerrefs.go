package observer

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
)

// IsJob reports whether an owner is a TrainingJob.
func IsJob(o metav1.OwnerReference) bool {
	return o.Kind == "TrainingJob" && strings.HasPrefix(o.APIVersion, v1alpha1.GroupVersion.Group+"/")
}

// IsOfAnyJob reports whether an object belongs to a TrainingJob.
func IsOfAnyJob(o client.Object) bool { return slices.ContainsFunc(o.GetOwnerReferences(), IsJob) }

// IsOf reports whether an object belongs to the TrainingJob of a UID.
func IsOf(o client.Object, uid types.UID) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == uid })
}

// MetaOf returns the metadata of an object of which no more than its key is known.
func MetaOf(key types.NamespacedName) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
}
