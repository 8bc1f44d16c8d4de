package driver

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/claims"
	"github.com/trainyard/trainyard/kube/driver/observer"
)

// start has an attempt begun, or tells why it cannot be.
func (d *Driver) start(a *attempt) {
	tj := new(v1alpha1.TrainingJob)
	found, err := d.get(a.key, tj)
	if err == nil && (!found || tj.UID != a.uid) {
		tj = new(v1alpha1.TrainingJob)
		found, err = d.ask(a.key, tj)
	}
	if err == nil && (!found || tj.UID != a.uid) {
		err = fmt.Errorf("TrainingJob %s is gone", a.key)
	}
	if err == nil {
		err = possible(tj)
	}
	if missing := d.findDevices(a); err == nil {
		err = missing
	}
	if err != nil {
		a.fate = &fate{text: err.Error()}
		d.o.Queue.Push(observer.KeyOfJob(a.key))
		return
	}
	a.begun = true
	if !d.o.Observe { // else nothing is made, at any time
		a.due = time.Now().Add(d.o.StartTimeout)
	}
	before := slices.Clone(d.unclean[a.id])
	d.submit(a.lineName(), func(ctx context.Context) {
		d.clean(ctx, before)
		err := d.carryOut(ctx, a, tj)
		if ctx.Err() != nil { // called off: whoever did that removes what there is
			return
		}
		a.mu.Lock()
		a.refused = err
		a.mu.Unlock()
		d.o.Queue.Push(observer.KeyOfJob(a.key))
		keepTrying(ctx, func() bool { return d.clean(ctx, before) }) // as a rule it is
	})
}

// carryOut makes everything that an attempt is made of, in order. What is there already is as it should be: it has the name of this
// attempt. It fails only if the API server refuses something for good, or ctx ends.
func (d *Driver) carryOut(ctx context.Context, a *attempt, tj *v1alpha1.TrainingJob) error {
	if len(a.ranks) > 1 {
		if _, _, err := d.create(ctx, a, a.service(tj)); err != nil {
			return err
		}
	}
	claims := make(map[string]*resourcev1.ResourceClaim) // as they were made, by name
	for r := range a.ranks {
		for _, c := range a.claimsOf(r) {
			made, err := d.createClaim(ctx, a, c, tj)
			if err != nil {
				return err
			}
			claims[c.name] = made
		}
	}
	a.mu.Lock()
	a.claimed = time.Now()
	a.mu.Unlock()
	d.o.Queue.Push(observer.KeyOfJob(a.key))
	select {
	case <-a.free:
	case <-ctx.Done():
		return ctx.Err()
	}
	made := time.Time{} // of the last pod, where all were there before
	for r := range a.ranks {
		p, old, err := d.create(ctx, a, a.pod(r, tj, d.o.PriorityClass))
		if err != nil {
			return err
		}
		if a.mode == v1alpha1.Direct {
			if err := d.allocate(ctx, a, r, p.(*corev1.Pod), claims); err != nil {
				return err
			}
		}
		at := time.Now() // not by the clock of the API server, which may be another
		if old {
			at = p.GetCreationTimestamp().Time
		}
		if at.After(made) {
			made = at
		}
	}
	a.mu.Lock()
	a.made = made
	a.mu.Unlock()
	return nil
}

// create makes an object of an attempt and returns it as it is. One that is there already, an old one, is taken over if it is of this very
// job.
func (d *Driver) create(ctx context.Context, a *attempt, o client.Object) (there client.Object, old bool, err error) {
	err = d.crew.write(ctx, func(ctx context.Context) error {
		there = o.DeepCopyObject().(client.Object)
		made := d.o.Client.Create(ctx, there)
		if old = apierrors.IsAlreadyExists(made); !old {
			return refusal(made, o)
		}
		switch found := d.o.Reader.Get(ctx, client.ObjectKeyFromObject(o), there); {
		case found != nil:
			return retry(found)
		case !observer.IsOf(there, a.uid) && !isLeaving(there, a):
			return fatal(fmt.Errorf("%s %s is there already and belongs to somebody else", kindOf(o), o.GetName()))
		case !observer.IsOf(there, a.uid), there.GetDeletionTimestamp() != nil && kindOf(o) == "claim": // of this attempt: no pod of it is there yet
			return retry(fmt.Errorf("%s %s is on its way out", kindOf(o), o.GetName()))
		}
		return nil
	})
	return there, old, err
}

// isLeaving reports whether an object is about to go: it is being deleted, or it belongs to an earlier job of the name of an attempt's,
// which is gone.
func isLeaving(o client.Object, a *attempt) bool {
	return o.GetDeletionTimestamp() != nil ||
		slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return observer.IsJob(r) && r.Name == a.key.Name && r.UID != a.uid })
}

// createClaim makes a claim of an attempt and returns it as it is, or has it own one that others share, which is nil.
func (d *Driver) createClaim(ctx context.Context, a *attempt, c claim, tj *v1alpha1.TrainingJob) (*resourcev1.ResourceClaim, error) {
	if !c.slot {
		made, _, err := d.create(ctx, a, a.claimObject(c, tj, d.o.DeviceClass))
		if err != nil {
			return nil, err
		}
		return made.(*resourcev1.ResourceClaim), nil
	}
	return nil, d.crew.write(ctx, func(ctx context.Context) error {
		o := a.claimObject(c, tj, d.o.DeviceClass)
		err := d.o.Client.Create(ctx, o)
		if !apierrors.IsAlreadyExists(err) {
			return refusal(err, o)
		}
		there := new(resourcev1.ResourceClaim)
		switch err := d.o.Reader.Get(ctx, client.ObjectKeyFromObject(o), there); {
		case err != nil:
			return retry(err)
		case there.DeletionTimestamp != nil: // its last user left; it goes when the devices are given back
			return retry(fmt.Errorf("claim %s is on its way out", o.Name))
		case !claims.IsOurs(there):
			return fatal(fmt.Errorf("claim %s is there already and belongs to somebody else", o.Name))
		case observer.IsOf(there, a.uid):
			return nil
		}
		was := there.DeepCopy()
		there.OwnerReferences = append(there.OwnerReferences, ownerOf(tj, false))
		return d.o.Client.Patch(ctx, there, locked(was)) // a conflict: others came or went meanwhile
	})
}

// allocate gives the pod of rank r its claims, which are known as they were made, and binds it, in this order: claim, allocation and
// reservation, binding.
func (d *Driver) allocate(ctx context.Context, a *attempt, r int, p *corev1.Pod, claims map[string]*resourcev1.ResourceClaim) error {
	for _, c := range a.claimsOf(r) {
		known := claims[c.name]
		err := d.crew.write(ctx, func(ctx context.Context) error {
			o := known
			known = nil // if it is not that any more, the next try asks
			return d.allocateClaim(ctx, a, r, c, p, o)
		})
		if err != nil {
			return err
		}
	}
	return d.crew.write(ctx, func(ctx context.Context) error {
		b := &corev1.Binding{ObjectMeta: observer.MetaOf(client.ObjectKeyFromObject(p)), Target: corev1.ObjectReference{Kind: "Node", Name: a.ranks[r].nodeName}}
		b.UID = p.UID
		err := d.o.Client.SubResource("binding").Create(ctx, p.DeepCopy(), b)
		if !apierrors.IsConflict(err) {
			return err
		}
		there := new(corev1.Pod) // bound already, or another pod of that name
		if failed := d.o.Reader.Get(ctx, client.ObjectKeyFromObject(p), there); failed != nil {
			return retry(failed)
		}
		if there.UID == p.UID && there.Spec.NodeName == a.ranks[r].nodeName {
			return nil
		}
		return fatal(err)
	})
}

// allocateClaim gives pod p claim o; nil = the API server is asked for it.
func (d *Driver) allocateClaim(ctx context.Context, a *attempt, r int, c claim, p *corev1.Pod, o *resourcev1.ResourceClaim) error {
	if o == nil {
		o = new(resourcev1.ResourceClaim)
		if err := d.o.Reader.Get(ctx, types.NamespacedName{Namespace: a.key.Namespace, Name: c.name}, o); err != nil {
			return err
		}
	}
	class := new(resourcev1.DeviceClass)
	if err := d.o.Client.Get(ctx, types.NamespacedName{Name: d.o.DeviceClass}, class); err != nil {
		return err
	}
	if !slices.Contains(o.Finalizers, resourcev1.Finalizer) { // taken away when it was free for a moment
		o.Finalizers = append(o.Finalizers, resourcev1.Finalizer)
		if err := d.o.Client.Update(ctx, o); err != nil {
			return err
		}
	}
	if o.Status.Allocation == nil {
		o.Status.Allocation = c.allocation(a, o, class, a.ranks[r].nodeName)
	}
	if slices.ContainsFunc(o.Status.ReservedFor, func(x resourcev1.ResourceClaimConsumerReference) bool { return x.UID == p.UID }) {
		return nil
	}
	o.Status.ReservedFor = append(o.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: p.Name, UID: p.UID})
	return d.o.Client.Status().Update(ctx, o)
}

// locked is the patch that makes an object of what it was, if it still is that.
func locked(was client.Object) client.Patch {
	return client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})
}
