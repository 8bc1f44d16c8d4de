package driver

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/sched"
)

// Sync looks at everything there is, and tells what v does not know. The attempts that v knows are followed from now on, whoever made
// their pods.
func (d *Driver) Sync(ctx context.Context, v *sched.View) ([]sched.Event, error) {
	d.view, d.base = v, time.Now()
	d.now = v.Now
	d.at = max(sched.Time(d.base.Sub(d.o.Origin)), d.now)
	d.now = d.clock()
	d.learn()
	for i := range v.Jobs {
		d.adopt(sched.JobID(i), &v.Jobs[i])
	}
	keys, err := d.everything(ctx)
	if err != nil {
		return nil, fmt.Errorf("driver: sync: %w", err)
	}
	events := d.lookAtAll(ctx, append(keys, d.o.Queue.Take()...))
	return events, d.removeStrayServices(ctx)
}

// removeStrayServices removes the Services of attempts that ended and were not cleaned up after. They are watched by nobody.
func (d *Driver) removeStrayServices(ctx context.Context) error {
	var list corev1.ServiceList
	if err := d.o.Reader.List(ctx, &list, client.HasLabels{v1alpha1.LabelJob, v1alpha1.LabelAttempt}); err != nil {
		return fmt.Errorf("driver: sync: %w", err)
	}
	for i := range list.Items {
		if s := &list.Items[i]; observer.IsOfAnyJob(s) && d.isStray(s) {
			d.submit("service/"+client.ObjectKeyFromObject(s).String(), func(ctx context.Context) {
				err := d.crew.write(ctx, func(ctx context.Context) error { return d.deleteThis(ctx, s) })
				d.warn(ctx, err, "a service of nobody cannot be deleted", "service", s.Name)
			})
		}
	}
	return nil
}

// adopt takes over the attempt that a job has.
func (d *Driver) adopt(id sched.JobID, j *sched.Job) {
	if !j.HoldsDevices() {
		return
	}
	a := d.newAttempt(id, j.Attempts, j.GPUs, j.Live)
	a.adopted = true
	for i := range a.ranks { // once up, a pod that is not there is gone
		a.ranks[i].adopted = j.Up
	}
	if j.Attempt == sched.Stopping { // the order is given again: until then, what leaves does so by the first
		a.stop, a.leaving = sched.Preempted, true
		if j.Cancel {
			a.stop = sched.Cancelled
		}
	}
	d.attempts[id] = a
}

// everything returns the keys of all objects, and of those that the View knows and that may be gone.
func (d *Driver) everything(ctx context.Context) (keys []observer.Key, err error) {
	lists := []client.ObjectList{&v1alpha1.GPUPoolList{}, &corev1.NodeList{}, &v1alpha1.TrainingJobList{}}
	if observer.UsesClaims(d.o.Mode) {
		lists = append(lists, &resourcev1.ResourceSliceList{}, &resourcev1.ResourceClaimList{})
	}
	for _, l := range append(lists, &corev1.PodList{}) {
		var o []client.ListOption
		if _, pods := l.(*corev1.PodList); pods {
			o = append(o, client.HasLabels{v1alpha1.LabelJob})
		}
		if err := d.o.Client.List(ctx, l, o...); err != nil {
			return nil, err
		}
		keys = append(keys, keysOfList(l)...)
	}
	for i := range d.view.Nodes {
		if n := &d.view.Nodes[i]; n.Joined() {
			keys = append(keys, observer.KeyOfNode(n.Spec.Name))
		}
	}
	for i := range d.view.Pools {
		keys = append(keys, observer.KeyOfPool(d.view.Pools[i].Spec.Name))
	}
	for key, id := range d.ids {
		if d.view.Jobs[id].State != sched.Done {
			keys = append(keys, observer.KeyOfJob(key))
		}
	}
	return keys, nil
}

func keysOfList(l client.ObjectList) (keys []observer.Key) {
	switch l := l.(type) {
	case *v1alpha1.GPUPoolList:
		for i := range l.Items {
			keys = append(keys, observer.KeysOf(&l.Items[i])...)
		}
	case *corev1.NodeList:
		for i := range l.Items {
			keys = append(keys, observer.KeysOf(&l.Items[i])...)
		}
	case *v1alpha1.TrainingJobList:
		for i := range l.Items {
			keys = append(keys, observer.KeysOf(&l.Items[i])...)
		}
	case *resourcev1.ResourceSliceList:
		for i := range l.Items {
			keys = append(keys, observer.KeysOf(&l.Items[i])...)
		}
	case *resourcev1.ResourceClaimList:
		for i := range l.Items {
			keys = append(keys, observer.KeysOf(&l.Items[i])...)
		}
	case *corev1.PodList:
		for i := range l.Items {
			keys = append(keys, observer.KeysOf(&l.Items[i])...)
		}
	}
	return keys
}
