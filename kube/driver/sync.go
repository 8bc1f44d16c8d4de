package driver

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/sched"
)

// Sync looks at everything there is, and reports what v does not know. From now on it follows the attempts that v
// knows, whichever leader made their pods.
func (d *Driver) Sync(ctx context.Context, v *sched.View) ([]sched.Event, error) {
	d.view, d.clock = v, clockFrom(d.o.Origin, v.Now)
	d.jobs.Learn(v)
	for id := range v.Jobs {
		d.attempts.Adopt(v, sched.JobID(id))
	}
	keys, err := d.everything(ctx)
	if err != nil {
		return nil, fmt.Errorf("driver: sync: %w", err)
	}
	events := d.look(ctx, append(keys, d.o.Queue.Take()...))
	return events, d.removeStrayServices(ctx)
}

// removeStrayServices removes the Services of attempts that ended and were not cleaned up after: no watch shows them.
func (d *Driver) removeStrayServices(ctx context.Context) error {
	ours := client.HasLabels{v1alpha1.LabelJob, v1alpha1.LabelAttempt}
	err := observer.EachPage(ctx, d.o.Reader, func(list *corev1.ServiceList) error {
		for i := range list.Items {
			if s := &list.Items[i]; observer.IsOfAnyJob(s) && d.jobs.IsStray(d.view, s) {
				d.objects.RemoveStray(s)
			}
		}
		return nil
	}, ours)
	if err != nil {
		return fmt.Errorf("driver: sync: %w", err)
	}
	return nil
}

// everything returns the keys of all objects, and of those that the View knows and that may be gone.
func (d *Driver) everything(ctx context.Context) (keys []observer.Key, err error) {
	lists := []client.ObjectList{&v1alpha1.GPUPoolList{}, &corev1.NodeList{}, &v1alpha1.TrainingJobList{}}
	if observer.UsesClaims(d.o.Mode) {
		lists = append(lists, &resourcev1.ResourceSliceList{}, &resourcev1.ResourceClaimList{})
	}
	for _, l := range append(lists, &corev1.PodList{}) {
		o := []client.ListOption{client.UnsafeDisableDeepCopy} // keys alone are taken
		if _, pods := l.(*corev1.PodList); pods {
			o = append(o, client.HasLabels{v1alpha1.LabelJob})
		}
		if err := d.o.Client.List(ctx, l, o...); err != nil {
			return nil, err
		}
		err := meta.EachListItem(l, func(item runtime.Object) error {
			if o, is := item.(client.Object); is {
				keys = append(keys, observer.KeysOf(o)...)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for i := range d.view.Nodes {
		if n := &d.view.Nodes[i]; n.Joined() {
			keys = append(keys, observer.KeyOfNode(n.Spec.Name))
		}
	}
	for i := range d.view.Pools {
		keys = append(keys, observer.KeyOfPool(d.view.Pools[i].Spec.Name))
	}
	return append(keys, d.jobs.Live(d.view)...), nil
}
