package writer

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/sched"
)

// Remove has the pods of an attempt deleted, with their grace. What the API server does not delete today, for want of a
// right or because of a webhook, it may delete tomorrow: an attempt ends in no other way. ending is how the attempt
// ends, to be written down before; "": nothing is.
func (o *Objects) Remove(a *Attempt, ending string) {
	o.writers.Do(a.line(), func(ctx context.Context) {
		if ending != "" {
			o.noteEnding(ctx, a, ending)
		}
		ranks := make([]int, len(a.Ranks))
		for r := range ranks {
			ranks[r] = r
		}
		keepTrying(ctx, func() bool {
			ranks = slices.DeleteFunc(ranks, func(r int) bool { return o.removeRank(ctx, a, r) })
			o.o.Look(observer.KeyOfJob(a.Key))
			return len(ranks) == 0
		})
	})
}

// removeRank has the pod of a rank deleted, and reports whether the rest is to be seen: the cache has heard of the pod,
// or there is none.
func (o *Objects) removeRank(ctx context.Context, a *Attempt, r int) bool {
	key := a.Within(a.PodName(r))
	var none, met bool
	err := o.writers.Write(ctx, func(ctx context.Context) (err error) {
		none, met, err = o.deletePod(ctx, a, key)
		return err
	})
	o.writers.Warn(ctx, err, "a pod cannot be deleted; trying on", "pod", key)
	if err == nil && (none || met) {
		a.Note(r, none, met)
		return true
	}
	return false
}

// deletePod deletes a pod of an attempt as it is known to be, so that one that came to its end meanwhile is not lost:
// what ended by itself stays, to be looked at. none says that the API server has no such pod, met that the cache has
// heard of it: where the cache is late, the pod may come and go before it hears of it.
func (o *Objects) deletePod(ctx context.Context, a *Attempt, key types.NamespacedName) (none, met bool, err error) {
	p := new(corev1.Pod)
	err = o.o.Client.Get(ctx, key, p)
	if met = err == nil && a.owns(p); !met && client.IgnoreNotFound(err) == nil {
		p = new(corev1.Pod)
		err = o.o.Reader.Get(ctx, key, p)
	}
	for try := 0; ; try++ {
		switch {
		case apierrors.IsNotFound(err) || err == nil && !a.owns(p):
			return true, met, nil
		case err != nil:
			return false, met, err
		case p.DeletionTimestamp != nil || IsOver(p):
			return false, met, nil
		}
		err = o.o.Client.Delete(ctx, p, client.Preconditions{UID: &p.UID, ResourceVersion: &p.ResourceVersion})
		if !apierrors.IsConflict(err) || try == 3 {
			return apierrors.IsNotFound(err), met, client.IgnoreNotFound(err)
		}
		p = new(corev1.Pod)
		err = o.o.Reader.Get(ctx, key, p)
	}
}

// IsOver reports whether a pod has come to its end.
func IsOver(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// ForcePod gives up a pod whose node is gone.
func (o *Objects) ForcePod(p *corev1.Pod) {
	o.writers.Do("pod/"+client.ObjectKeyFromObject(p).String(), func(ctx context.Context) {
		keepTrying(ctx, func() bool {
			err := o.writers.Write(ctx, func(ctx context.Context) error {
				return o.deleteThis(ctx, p, client.GracePeriodSeconds(0))
			})
			o.writers.Warn(ctx, err, "a pod of a node that is gone cannot be deleted; trying on", "pod", p.Name)
			return err == nil
		})
	})
}

// Retire takes an attempt whose end is reported: Sweep removes what is left of it, with its pods if they lost their
// machines.
func (o *Objects) Retire(a *Attempt, podsToo bool) {
	a.podsToo = podsToo
	o.over = append(o.over, a)
}

// Sweep has what is left removed of the attempts whose ends are durable by now. A start of the same job that comes
// before that is done does it first.
func (o *Objects) Sweep(isAlive func(sched.JobID) bool) {
	for id, list := range o.unclean {
		left := slices.DeleteFunc(list, func(a *Attempt) bool { return a.cleaned.Load() })
		if o.unclean[id] = left; len(left) == 0 {
			delete(o.unclean, id)
		}
	}
	for _, a := range o.over {
		if o.writers.idle { // nothing was made
			continue
		}
		o.unclean[a.Job] = append(o.unclean[a.Job], a)
		if !isAlive(a.Job) {
			all := slices.Clone(o.unclean[a.Job])
			o.writers.Do(a.line(), func(ctx context.Context) {
				keepTrying(ctx, func() bool { return o.clean(ctx, all) })
			})
		}
	}
	o.over = o.over[:0]
}

// clean removes what is left of attempts that are over, and reports whether nothing is. What the API server does not
// delete today is to be tried again: no other job gets the devices of a claim that stays.
func (o *Objects) clean(ctx context.Context, all []*Attempt) (done bool) {
	done = true
	for _, a := range all {
		if !a.cleaned.Load() {
			a.cleaned.Store(o.cleanOne(ctx, a))
		}
		done = done && a.cleaned.Load()
	}
	return done
}

// cleanOne removes the claims and the Service of an attempt, and the pods of one that lost its machines. It reports
// whether none of them is left. Pods that ended by themselves stay with their logs until their job is deleted.
func (o *Objects) cleanOne(ctx context.Context, a *Attempt) (done bool) {
	done = true
	for r := range a.Ranks {
		for _, c := range a.Claims(r) {
			err := o.writers.Write(ctx, func(ctx context.Context) error { return o.leaveClaim(ctx, a, c) })
			o.writers.Warn(ctx, err, "a claim cannot be deleted; trying on", "claim", c.Name)
			done = done && err == nil
		}
		if a.podsToo {
			done = o.delete(ctx, a, &corev1.Pod{ObjectMeta: observer.MetaOf(a.Within(a.PodName(r)))}) && done
		}
	}
	if len(a.Ranks) > 1 {
		done = o.delete(ctx, a, &corev1.Service{ObjectMeta: observer.MetaOf(a.Within(a.base))}) && done
	}
	return done
}

// delete deletes an object of an attempt, and reports whether there is none.
func (o *Objects) delete(ctx context.Context, a *Attempt, old client.Object) bool {
	err := o.writers.Write(ctx, func(ctx context.Context) error { return o.deleteOwn(ctx, a, old) })
	key := client.ObjectKeyFromObject(old)
	o.writers.Warn(ctx, err, "something of an attempt cannot be deleted; trying on", "object", key)
	return err == nil
}

// deleteOwn deletes the object of a name that the attempt has. What others have by that name stays: an
// attempt may have failed to start because of it.
func (o *Objects) deleteOwn(ctx context.Context, a *Attempt, old client.Object) error {
	if err := o.findOwn(ctx, a, old); err != nil || !a.owns(old) {
		return client.IgnoreNotFound(err)
	}
	return o.deleteThis(ctx, old)
}

// findOwn reads an object of an attempt: from the cache if it is there, else, as Services are, from the API server.
func (o *Objects) findOwn(ctx context.Context, a *Attempt, old client.Object) error {
	key := client.ObjectKeyFromObject(old)
	_, unwatched := old.(*corev1.Service)
	if !unwatched && o.o.Client.Get(ctx, key, old) == nil && a.owns(old) {
		return nil
	}
	return o.o.Reader.Get(ctx, key, old)
}

// deleteThis deletes an object, and no other that has its name by now: where another has, there is nothing to delete.
func (o *Objects) deleteThis(ctx context.Context, old client.Object, opts ...client.DeleteOption) error {
	uid, now := old.GetUID(), old.DeepCopyObject().(client.Object)
	err := o.o.Client.Delete(ctx, now, append(opts, client.Preconditions{UID: &uid})...)
	if !apierrors.IsConflict(err) {
		return client.IgnoreNotFound(err)
	}
	if o.o.Reader.Get(ctx, client.ObjectKeyFromObject(old), now) == nil && now.GetUID() != uid {
		return nil
	}
	return err
}

// leaveClaim deletes a claim, or where jobs share it, leaves it to the others.
func (o *Objects) leaveClaim(ctx context.Context, a *Attempt, c Claim) error {
	there := &resourcev1.ResourceClaim{ObjectMeta: observer.MetaOf(a.Within(c.Name))}
	if !c.slot {
		return o.deleteOwn(ctx, a, there)
	}
	if err := o.o.Reader.Get(ctx, client.ObjectKeyFromObject(there), there); err != nil {
		return client.IgnoreNotFound(err)
	}
	own := func(r metav1.OwnerReference) bool { return r.UID == a.UID }
	rest := slices.DeleteFunc(slices.Clone(there.OwnerReferences), own)
	if len(rest) == len(there.OwnerReferences) { // left before, or never ours
		return nil
	}
	if len(rest) == 0 {
		same := client.Preconditions{UID: &there.UID, ResourceVersion: &there.ResourceVersion}
		return client.IgnoreNotFound(o.o.Client.Delete(ctx, there, same))
	}
	was := there.DeepCopy()
	there.OwnerReferences = rest
	return client.IgnoreNotFound(o.o.Client.Patch(ctx, there, Locked(was)))
}

// RemoveStray has an object deleted that belongs to no attempt that is alive: a leader before us may have made it too
// late.
func (o *Objects) RemoveStray(stray client.Object) {
	kind, key := kindOf(stray), client.ObjectKeyFromObject(stray)
	o.writers.Do(kind+"/"+key.String(), func(ctx context.Context) {
		err := o.writers.Write(ctx, func(ctx context.Context) error { return o.deleteThis(ctx, stray) })
		o.writers.Warn(ctx, err, "a "+kind+" of no attempt cannot be deleted", kind, key)
	})
}
