package observer

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
)

// Watched are the kinds of objects that a driver looks at in a mode: its cache needs their informers. Where the driver
// allocates devices, it reads DeviceClasses as well.
func Watched(m v1alpha1.Mode) []client.Object {
	all := []client.Object{&v1alpha1.TrainingJob{}, &v1alpha1.GPUPool{}, &v1alpha1.GPUProfile{}, &corev1.Node{},
		&corev1.Pod{}}
	if UsesClaims(m) {
		all = append(all, &resourcev1.ResourceSlice{}, &resourcev1.ResourceClaim{})
	}
	return all
}

// UsesClaims reports whether claims say which devices a pod has.
func UsesClaims(m v1alpha1.Mode) bool { return m == v1alpha1.Pinned || m == v1alpha1.Direct }

// Watch pushes the keys of everything that changes in the cache, until ctx is done; at first those of all that is
// there.
func (q *Queue) Watch(ctx context.Context, c cache.Cache, m v1alpha1.Mode) error {
	return q.watch(ctx, c, Watched(m))
}

// WatchSpaces does so with what of a namespace says which pods it may have.
func (q *Queue) WatchSpaces(ctx context.Context, c cache.Cache) error {
	return q.watch(ctx, c, []client.Object{&corev1.Namespace{}, &corev1.ResourceQuota{}, &corev1.LimitRange{}})
}

func (q *Queue) watch(ctx context.Context, c cache.Cache, objects []client.Object) error {
	for _, object := range objects {
		informer, err := c.GetInformer(ctx, object)
		if err != nil {
			return fmt.Errorf("driver: watch %T: %w", object, err)
		}
		push := func(o any) {
			if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			if changed, ok := o.(client.Object); ok {
				q.Push(KeysOf(changed)...)
			}
		}
		handler := toolscache.ResourceEventHandlerFuncs{AddFunc: push, UpdateFunc: func(was, o any) {
			if !isOwnStatus(was, o) && !isSameSpace(was, o) {
				push(o)
			}
		}, DeleteFunc: push}
		handle, err := informer.AddEventHandler(handler)
		if err != nil {
			return fmt.Errorf("driver: watch %T: %w", object, err)
		}
		context.AfterFunc(ctx, func() {
			_ = informer.RemoveEventHandler(handle) // an informer that has ended has none
		})
	}
	return nil
}

// isOwnStatus reports whether nothing of a job changed but what we write to it ourselves: its status.
func isOwnStatus(was, is any) bool {
	a, isJob := was.(*v1alpha1.TrainingJob)
	b, _ := is.(*v1alpha1.TrainingJob)
	return isJob && b != nil && a.UID == b.UID && a.ResourceVersion != b.ResourceVersion &&
		a.Generation == b.Generation && (a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) &&
		slices.Equal(a.Finalizers, b.Finalizers)
}

// isSameSpace reports whether nothing of a namespace changed by which rules select it.
func isSameSpace(was, is any) bool {
	a, isSpace := was.(*corev1.Namespace)
	b, _ := is.(*corev1.Namespace)
	return isSpace && b != nil && a.UID == b.UID && maps.Equal(a.Labels, b.Labels)
}

// KeysOf returns what is to be looked at because of an object, which may be gone.
func KeysOf(o client.Object) []Key {
	k := Key{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}}
	switch o.(type) {
	case *v1alpha1.TrainingJob:
		k.Kind = JobKey
	case *v1alpha1.GPUPool:
		k.Kind = PoolKey
	case *v1alpha1.GPUProfile, *corev1.Node:
		k.Kind = NodeKey
	case *resourcev1.ResourceSlice:
		k.Kind = SliceKey
	case *resourcev1.ResourceClaim:
		k.Kind = ClaimKey
	case *corev1.Pod:
		job := o.GetLabels()[v1alpha1.LabelJob]
		if job == "" {
			return nil
		}
		k.Kind = PodKey
		return []Key{k, {JobKey, types.NamespacedName{Namespace: k.Namespace, Name: job}}}
	case *corev1.Namespace:
		k.Kind = SpaceKey
	case *corev1.ResourceQuota, *corev1.LimitRange:
		k = KeyOfSpace(k.Namespace)
	default:
		return nil
	}
	return []Key{k}
}
