package controller

import (
	"context"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
)

// inputs are the objects that a system was built from, with the generation that was read of each.
type inputs map[string]int64

func inputKey(o client.Object) string { return fmt.Sprintf("%T %s", o, o.GetName()) }

func (in inputs) add(o client.Object) { in[inputKey(o)] = o.GetGeneration() }

// watch ends the run once one of them is another: system and settings, pools and budgets, what is known of GPUs. It
// ends the lead once there is a leader of a higher number: one that has nothing to write would not find that out, and
// take what the other makes for strays.
func (in inputs) watch(ctx context.Context, c cache.Cache, leader int64, stop context.CancelCauseFunc) error {
	for _, kind := range []client.Object{&v1alpha1.SchedulerPolicy{}, &v1alpha1.GPUPool{}, &v1alpha1.GPUProfile{}} {
		informer, err := c.GetInformer(ctx, kind)
		if err != nil {
			return fmt.Errorf("controller: watch %T: %w", kind, err)
		}
		look := func(o any) {
			if p, ok := o.(*v1alpha1.SchedulerPolicy); ok && p.Status.Leader > leader {
				stop(fenced(p, leader))
			}
			object, ok := o.(client.Object)
			if ok && in[inputKey(object)] != object.GetGeneration() {
				stop(fmt.Errorf("%w: %s", ErrReload, inputKey(object)))
			}
		}
		handle, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: look,
			UpdateFunc: func(_, o any) {
				look(o)
			},
			DeleteFunc: func(any) { stop(fmt.Errorf("%w: a %T is gone", ErrReload, kind)) }})
		if err != nil {
			return fmt.Errorf("controller: watch %T: %w", kind, err)
		}
		// of an informer that has ended there is none
		context.AfterFunc(ctx, func() { _ = informer.RemoveEventHandler(handle) })
	}
	return nil
}
