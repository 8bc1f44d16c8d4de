package driver

import (
	"context"
	"errors"
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
	"github.com/trainyard/trainyard/sched"
)

// remove has the pods of an attempt deleted, with its grace. What the API server will not have deleted today, for want of a right or
// because of a webhook, it may tomorrow: an attempt ends in no other way.
func (d *Driver) remove(a *attempt) {
	a.leaving, a.removed = true, true
	f := a.fate
	d.submit(a.lineName(), func(ctx context.Context) {
		d.keepFate(ctx, a, f)
		ranks := make([]int, len(a.ranks))
		for r := range ranks {
			ranks[r] = r
		}
		keepTrying(ctx, func() bool {
			ranks = slices.DeleteFunc(ranks, func(r int) bool { return d.removeRank(ctx, a, r) })
			d.o.Queue.Push(observer.KeyOfJob(a.key))
			return len(ranks) == 0
		})
	})
}

// keepTrying tries something until it is done, with pauses, or ctx is.
func keepTrying(ctx context.Context, done func() bool) {
	for pause := firstPause; !done(); pause = min(2*pause, lastRefused) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// lastRefused is the longest pause between tries of a deletion that is refused.
const lastRefused = 30 * time.Second

// removeRank has the pod of a rank deleted, and reports whether the rest is to be seen: the cache has heard of the pod, or there is none.
func (d *Driver) removeRank(ctx context.Context, a *attempt, r int) bool {
	key := types.NamespacedName{Namespace: a.key.Namespace, Name: a.podName(r)}
	var none, met bool
	err := d.crew.write(ctx, func(ctx context.Context) (err error) {
		none, met, err = d.deletePod(ctx, a, key)
		return err
	})
	d.warn(ctx, err, "a pod cannot be deleted; trying on", "pod", key)
	if err == nil && (none || met) {
		a.note(r, none, met)
		return true
	}
	return false
}

// deletePod deletes a pod of an attempt as it is known to be, so that one that came to its end meanwhile is not lost: what ended by itself
// stays, to be looked at. none says that the API server has no such pod, met that the cache has heard of it: where that is late, the pod may
// come and go before it does.
func (d *Driver) deletePod(ctx context.Context, a *attempt, key types.NamespacedName) (none, met bool, err error) {
	p := new(corev1.Pod)
	err = d.o.Client.Get(ctx, key, p)
	if met = err == nil && observer.IsOf(p, a.uid); !met && client.IgnoreNotFound(err) == nil {
		p = new(corev1.Pod)
		err = d.o.Reader.Get(ctx, key, p)
	}
	for try := 0; ; try++ {
		switch {
		case apierrors.IsNotFound(err) || err == nil && !observer.IsOf(p, a.uid):
			return true, met, nil
		case err != nil:
			return false, met, err
		case p.DeletionTimestamp != nil || isOver(p):
			return false, met, nil
		}
		err = d.o.Client.Delete(ctx, p, client.Preconditions{UID: &p.UID, ResourceVersion: &p.ResourceVersion})
		if !apierrors.IsConflict(err) || try == 3 {
			return apierrors.IsNotFound(err), met, client.IgnoreNotFound(err)
		}
		p = new(corev1.Pod)
		err = d.o.Reader.Get(ctx, key, p)
	}
}

// isOver reports whether a pod has come to its end.
func isOver(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// forcePod gives up a pod whose node is gone.
func (d *Driver) forcePod(p *corev1.Pod) {
	d.submit("pod/"+client.ObjectKeyFromObject(p).String(), func(ctx context.Context) {
		keepTrying(ctx, func() bool {
			err := d.crew.write(ctx, func(ctx context.Context) error { return d.deleteThis(ctx, p, client.GracePeriodSeconds(0)) })
			d.warn(ctx, err, "a pod of a node that is gone cannot be deleted; trying on", "pod", p.Name)
			return err == nil
		})
	})
}

// sweep has what is left removed of the attempts whose ends are durable by now. A start of the same job that comes before that is done does
// it first.
func (d *Driver) sweep() {
	for id, list := range d.unclean {
		if d.unclean[id] = slices.DeleteFunc(list, func(a *attempt) bool { return a.cleaned.Load() }); len(d.unclean[id]) == 0 {
			delete(d.unclean, id)
		}
	}
	for _, a := range d.over {
		if d.o.Observe { // nothing was made
			continue
		}
		d.unclean[a.id] = append(d.unclean[a.id], a)
		if d.attempts[a.id] == nil {
			all := slices.Clone(d.unclean[a.id])
			d.submit(a.lineName(), func(ctx context.Context) { keepTrying(ctx, func() bool { return d.clean(ctx, all) }) })
		}
	}
	d.over = d.over[:0]
}

// clean removes what is left of attempts that are over, and reports whether nothing is. What the API server will not have deleted today is
// to be tried again: nobody else gets the devices of a claim that stays.
func (d *Driver) clean(ctx context.Context, all []*attempt) (done bool) {
	done = true
	for _, a := range all {
		if !a.cleaned.Load() {
			a.cleaned.Store(d.cleanOne(ctx, a))
		}
		done = done && a.cleaned.Load()
	}
	return done
}

// cleanOne removes the claims and the Service of an attempt, and of one that lost its machines its pods, and reports whether none of them is
// left. Those that ended by themselves stay with their logs until their job is deleted.
func (d *Driver) cleanOne(ctx context.Context, a *attempt) (done bool) {
	done = true
	for r := range a.ranks {
		for _, c := range a.claimsOf(r) {
			err := d.crew.write(ctx, func(ctx context.Context) error { return d.leaveClaim(ctx, a, c) })
			d.warn(ctx, err, "a claim cannot be deleted; trying on", "claim", c.name)
			done = done && err == nil
		}
		if a.fate != nil && a.fate.outcome == sched.NodeLost {
			done = d.delete(ctx, a, &corev1.Pod{ObjectMeta: observer.MetaOf(types.NamespacedName{Namespace: a.key.Namespace, Name: a.podName(r)})}) && done
		}
	}
	if len(a.ranks) > 1 {
		done = d.delete(ctx, a, &corev1.Service{ObjectMeta: observer.MetaOf(types.NamespacedName{Namespace: a.key.Namespace, Name: a.base})}) && done
	}
	return done
}

// delete deletes an object of an attempt, and reports whether there is none.
func (d *Driver) delete(ctx context.Context, a *attempt, o client.Object) bool {
	err := d.crew.write(ctx, func(ctx context.Context) error { return d.deleteOwn(ctx, a, o) })
	d.warn(ctx, err, "something of an attempt cannot be deleted; trying on", "object", client.ObjectKeyFromObject(o))
	return err == nil
}

// deleteOwn deletes the object of a name that belongs to the job of an attempt. What others have by that name stays: an attempt may have
// failed to start because of it.
func (d *Driver) deleteOwn(ctx context.Context, a *attempt, o client.Object) error {
	if err := d.findOwn(ctx, a, o); err != nil || !observer.IsOf(o, a.uid) {
		return client.IgnoreNotFound(err)
	}
	return d.deleteThis(ctx, o)
}

// findOwn reads an object of an attempt: from the cache if it is there, else, as Services are, from the API server.
func (d *Driver) findOwn(ctx context.Context, a *attempt, o client.Object) error {
	key := client.ObjectKeyFromObject(o)
	if _, unwatched := o.(*corev1.Service); !unwatched && d.o.Client.Get(ctx, key, o) == nil && observer.IsOf(o, a.uid) {
		return nil
	}
	return d.o.Reader.Get(ctx, key, o)
}

// deleteThis deletes an object, and no other that has its name by now: where another has, there is nothing to delete.
func (d *Driver) deleteThis(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	uid, now := o.GetUID(), o.DeepCopyObject().(client.Object)
	err := d.o.Client.Delete(ctx, now, append(opts, client.Preconditions{UID: &uid})...)
	if apierrors.IsConflict(err) && d.o.Reader.Get(ctx, client.ObjectKeyFromObject(o), now) == nil && now.GetUID() != uid {
		return nil
	}
	return client.IgnoreNotFound(err)
}

// leaveClaim deletes a claim, or where jobs share it, leaves it to the others.
func (d *Driver) leaveClaim(ctx context.Context, a *attempt, c claim) error {
	o := &resourcev1.ResourceClaim{ObjectMeta: observer.MetaOf(types.NamespacedName{Namespace: a.key.Namespace, Name: c.name})}
	if !c.slot {
		return d.deleteOwn(ctx, a, o)
	}
	if err := d.o.Reader.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return client.IgnoreNotFound(err)
	}
	rest := slices.DeleteFunc(slices.Clone(o.OwnerReferences), func(r metav1.OwnerReference) bool { return r.UID == a.uid })
	if len(rest) == len(o.OwnerReferences) { // left before, or never ours
		return nil
	}
	if len(rest) == 0 {
		return client.IgnoreNotFound(d.o.Client.Delete(ctx, o, client.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion}))
	}
	was := o.DeepCopy()
	o.OwnerReferences = rest
	return client.IgnoreNotFound(d.o.Client.Patch(ctx, o, locked(was)))
}

// fatalError is one that trying again does not mend, whatever it wraps.
type fatalError struct{ error }

func fatal(err error) error { return fatalError{err} }

// retryError is one that may mend itself, whatever it wraps.
type retryError struct{ error }

func retry(err error) error { return retryError{err} }

// refusal tells what the API server has against an object, by its name.
func refusal(err error, o client.Object) error {
	if err == nil || transient(err) {
		return err
	}
	return fatal(fmt.Errorf("%s %s cannot be made: %w", kindOf(o), o.GetName(), err))
}

func kindOf(o client.Object) string {
	switch o.(type) {
	case *corev1.Pod:
		return "pod"
	case *corev1.Service:
		return "service"
	case *resourcev1.ResourceClaim:
		return "claim"
	}
	return "object"
}

// warn logs that something could not be done, unless nobody wants it any more.
func (d *Driver) warn(ctx context.Context, err error, text string, args ...any) {
	if err != nil && ctx.Err() == nil && !errors.Is(err, context.Canceled) {
		d.o.Log.Warn(text, append(args, "error", err)...)
	}
}

// isStrayClaim reports whether a claim of one attempt has none, although its name says so: its end was told, and then the crew died.
func (d *Driver) isStrayClaim(c *resourcev1.ResourceClaim) bool {
	return c.DeletionTimestamp == nil && c.Labels[claims.LabelSlot] == "" && claims.IsOurs(c) && d.isStray(c)
}

func (d *Driver) removeStrayClaim(c *resourcev1.ResourceClaim) {
	d.submit("claim/"+client.ObjectKeyFromObject(c).String(), func(ctx context.Context) {
		err := d.crew.write(ctx, func(ctx context.Context) error { return d.deleteThis(ctx, c) })
		d.warn(ctx, err, "a claim of nobody cannot be deleted", "claim", c.Name)
	})
}

// lookAtPod removes a pod of ours that belongs to no attempt that is alive: a leader before us may have made it too late.
func (d *Driver) lookAtPod(key types.NamespacedName) error {
	p := new(corev1.Pod)
	found, err := d.get(key, p)
	if err != nil || !found || p.DeletionTimestamp != nil || isOver(p) || !observer.IsOfAnyJob(p) || !d.isStray(p) {
		return err
	}
	d.o.Log.Warn("a pod belongs to no attempt that is alive: it is deleted", "pod", key)
	d.submit("pod/"+key.String(), func(ctx context.Context) {
		err := d.crew.write(ctx, func(ctx context.Context) error { return d.deleteThis(ctx, p) })
		d.warn(ctx, err, "a pod of nobody cannot be deleted", "pod", key)
	})
	return nil
}

// isStray reports whether an object names an attempt that is not alive, of a job that is known: those of others go with their owner.
func (d *Driver) isStray(o client.Object) bool {
	labels := o.GetLabels()
	id, known := d.ids[types.NamespacedName{Namespace: o.GetNamespace(), Name: labels[v1alpha1.LabelJob]}]
	if !known {
		return false
	}
	j := &d.view.Jobs[id]
	return !observer.IsOf(o, types.UID(j.Spec.Task)) || !j.HoldsDevices() || labels[v1alpha1.LabelAttempt] != fmt.Sprint(j.Attempts)
}
