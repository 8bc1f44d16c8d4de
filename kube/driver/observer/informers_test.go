package observer

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
)

// Ensure that of what changes in a job only our own status is passed over.
func TestOnlyTold(t *testing.T) {
	was := &v1alpha1.TrainingJob{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "1", Generation: 1}}
	for name, c := range map[string]struct {
		change func(*v1alpha1.TrainingJob)
		want   bool
	}{
		"status":       {func(tj *v1alpha1.TrainingJob) { tj.Status.Phase = v1alpha1.Running }, true},
		"spec":         {func(tj *v1alpha1.TrainingJob) { tj.Generation++ }, false},
		"finalizers":   {func(tj *v1alpha1.TrainingJob) { tj.Finalizers = []string{v1alpha1.Finalizer} }, false},
		"deletion":     {func(tj *v1alpha1.TrainingJob) { tj.DeletionTimestamp = new(metav1.Now()) }, false},
		"another":      {func(tj *v1alpha1.TrainingJob) { tj.UID = "v" }, false},
		"a fresh look": {func(tj *v1alpha1.TrainingJob) { tj.ResourceVersion = "1" }, false},
	} {
		is := was.DeepCopy()
		is.ResourceVersion = "2"
		c.change(is)
		if got := isOwnStatus(was, is); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if isOwnStatus(&corev1.Pod{}, &corev1.Pod{}) {
		t.Error("a pod is passed over")
	}
}

// heard is a cache of one informer for all kinds, which counts who listens.
type heard struct {
	cache.Cache
	cache.Informer

	handlers atomic.Int32
}

func (h *heard) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return h, nil
}

func (h *heard) AddEventHandler(toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	h.handlers.Add(1)
	return nil, nil
}

func (h *heard) RemoveEventHandler(toolscache.ResourceEventHandlerRegistration) error {
	h.handlers.Add(-1)
	return nil
}

// Ensure that no handler of a driver is left once it has ended.
func TestWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, mode := range []v1alpha1.Mode{v1alpha1.Pinned, v1alpha1.Count} {
			h := &heard{}
			ctx, stop := context.WithCancel(t.Context())
			if err := NewQueue().Watch(ctx, h, mode); err != nil || int(h.handlers.Load()) != len(Watched(mode)) {
				t.Errorf("%s: %d listen, %v", mode, h.handlers.Load(), err)
			}
			stop()
			synctest.Wait()
			if h.handlers.Load() != 0 {
				t.Errorf("%s: %d listen in the end", mode, h.handlers.Load())
			}
		}
	})
}
