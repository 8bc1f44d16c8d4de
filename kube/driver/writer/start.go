package writer

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
	"github.com/trainyard/trainyard/kube/driver/observer"
)

// Start has the objects of an attempt made for a job, once all is removed of the attempts of the job that are over.
func (o *Objects) Start(a *Attempt, tj *v1alpha1.TrainingJob) {
	before := slices.Clone(o.unclean[a.Job])
	o.writers.Do(a.line(), func(ctx context.Context) {
		o.clean(ctx, before)
		err := o.carryOut(ctx, a, tj)
		if ctx.Err() != nil { // called off: the task that did so removes what there is
			return
		}
		a.set(func(n *News) { n.refused = err })
		o.o.Look(observer.KeyOfJob(a.Key))
		keepTrying(ctx, func() bool { return o.clean(ctx, before) }) // as a rule it is
	})
}

// carryOut makes everything that an attempt consists of, in order. What is there already is as it should be: it has the
// name of this attempt. It fails only if the API server refuses something for good, or ctx ends.
func (o *Objects) carryOut(ctx context.Context, a *Attempt, tj *v1alpha1.TrainingJob) error {
	if len(a.Ranks) > 1 {
		if _, _, err := o.create(ctx, a, a.service(tj)); err != nil {
			return err
		}
	}
	claims := make(map[string]*resourcev1.ResourceClaim) // as they were made, by name
	for r := range a.Ranks {
		for _, c := range a.Claims(r) {
			made, err := o.createClaim(ctx, a, c, tj)
			if err != nil {
				return err
			}
			claims[c.Name] = made
		}
	}
	a.set(func(n *News) { n.claimed = time.Now() })
	o.o.Look(observer.KeyOfJob(a.Key))
	select {
	case <-a.free:
	case <-ctx.Done():
		return ctx.Err()
	}
	made, err := o.createPods(ctx, a, tj, claims)
	if err != nil {
		return err
	}
	a.set(func(n *News) { n.made = made })
	return nil
}

// createPods makes the pods of an attempt, and returns when the last one was made.
func (o *Objects) createPods(ctx context.Context, a *Attempt, tj *v1alpha1.TrainingJob,
	claims map[string]*resourcev1.ResourceClaim,
) (made time.Time, err error) {
	for r := range a.Ranks {
		p, old, err := o.create(ctx, a, a.pod(r, tj, o.o.PriorityClass))
		if err != nil {
			return made, err
		}
		if a.mode == v1alpha1.Direct {
			if err := o.allocate(ctx, a, r, p.(*corev1.Pod), claims); err != nil {
				return made, err
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
	return made, nil
}

// create makes an object of an attempt and returns it as it is. It takes over one that is there already, an old one, if
// that is what the attempt is to have.
func (o *Objects) create(ctx context.Context, a *Attempt, want client.Object,
) (there client.Object, old bool, err error) {
	kind := kindOf(want)
	err = o.write(ctx, want, "made", func(ctx context.Context) error {
		there = want.DeepCopyObject().(client.Object)
		made := o.o.Client.Create(ctx, there)
		if old = apierrors.IsAlreadyExists(made); !old {
			return refusal(made, want)
		}
		found := o.o.Reader.Get(ctx, client.ObjectKeyFromObject(want), there)
		ours := a.owns(there)
		switch {
		case found != nil:
			return retry(found)
		case !ours && !isLeaving(there, a):
			return Fatal(fmt.Errorf("%s %s is there already and belongs to someone else", kind, want.GetName()))
		case !ours, there.GetDeletionTimestamp() != nil && kind == "claim": // no pod of this attempt is there yet
			return retry(fmt.Errorf("%s %s is on its way out", kind, want.GetName()))
		}
		return nil
	})
	if err == nil {
		o.note(there)
	}
	return there, old, err
}

// write makes a call about an object until it succeeds, fails for good, or a webhook is away for too long that is asked
// about it. What is done about it, such as made or bound, is for the reason.
func (o *Objects) write(ctx context.Context, about client.Object, done string, call func(context.Context) error) error {
	var hooks patience
	return o.writers.Write(ctx, func(ctx context.Context) error { return hooks.end(call(ctx), about, done) })
}

// note notes that an object is ours.
func (o *Objects) note(there client.Object) {
	if keys := observer.KeysOf(there); len(keys) > 0 { // services are not looked at
		o.o.Made.Note(keys[0], there.GetUID())
	}
}

// isLeaving reports whether an object is about to go: it is being deleted, or it belongs to an earlier job of the name
// of an attempt's, which is gone.
func isLeaving(there client.Object, a *Attempt) bool {
	earlier := func(r metav1.OwnerReference) bool {
		return observer.IsJob(r) && r.Name == a.Key.Name && r.UID != a.UID
	}
	return there.GetDeletionTimestamp() != nil || slices.ContainsFunc(there.GetOwnerReferences(), earlier)
}

// createClaim makes a claim of an attempt and returns it as it is. Of a claim that jobs share it makes the attempt's
// job an owner, and returns nil.
func (o *Objects) createClaim(ctx context.Context, a *Attempt, c Claim,
	tj *v1alpha1.TrainingJob,
) (*resourcev1.ResourceClaim, error) {
	want := a.claimObject(c, tj, o.o.DeviceClass)
	if c.slot {
		return nil, o.write(ctx, want, "shared", func(ctx context.Context) error { return o.joinClaim(ctx, a, c, tj) })
	}
	made, _, err := o.create(ctx, a, want)
	if err != nil {
		return nil, err
	}
	return made.(*resourcev1.ResourceClaim), nil
}

// joinClaim makes a claim that jobs share, or has the job own the one that is there.
func (o *Objects) joinClaim(ctx context.Context, a *Attempt, c Claim, tj *v1alpha1.TrainingJob) error {
	want := a.claimObject(c, tj, o.o.DeviceClass)
	err := o.o.Client.Create(ctx, want)
	if !apierrors.IsAlreadyExists(err) {
		if err == nil {
			o.note(want)
		}
		return refusal(err, want)
	}
	there := new(resourcev1.ResourceClaim)
	switch err := o.o.Reader.Get(ctx, client.ObjectKeyFromObject(want), there); {
	case err != nil:
		return retry(err)
	case there.DeletionTimestamp != nil: // its last user left; it goes when the devices are given back
		return retry(fmt.Errorf("claim %s is on its way out", want.Name))
	case !observer.IsOfAnyJob(there) || !c.Is(there):
		return Fatal(fmt.Errorf("claim %s is there already and belongs to someone else", want.Name))
	case observer.IsOf(there, a.UID):
		return nil
	}
	was := there.DeepCopy()
	there.OwnerReferences = append(there.OwnerReferences, ownerOf(tj, false))
	return o.o.Client.Patch(ctx, there, Locked(was)) // a conflict: others came or went meanwhile
}

// allocate gives the pod of rank r its claims, which are known as they were made, and binds it. The order is: claim,
// allocation and reservation, binding.
func (o *Objects) allocate(ctx context.Context, a *Attempt, r int, p *corev1.Pod,
	made map[string]*resourcev1.ResourceClaim,
) error {
	for _, c := range a.Claims(r) {
		known := made[c.Name]
		about := &resourcev1.ResourceClaim{ObjectMeta: observer.MetaOf(a.Within(c.Name))}
		err := o.write(ctx, about, "allocated", func(ctx context.Context) error {
			there := known
			known = nil // if it is not that any more, the next try asks
			return o.allocateClaim(ctx, a, r, c, p, there)
		})
		if err != nil {
			return err
		}
	}
	return o.write(ctx, p, "bound", func(ctx context.Context) error { return o.bind(ctx, p, a.Ranks[r].NodeName) })
}

// bind binds a pod to a node.
func (o *Objects) bind(ctx context.Context, p *corev1.Pod, node string) error {
	key := client.ObjectKeyFromObject(p)
	b := &corev1.Binding{ObjectMeta: observer.MetaOf(key), Target: corev1.ObjectReference{Kind: "Node", Name: node}}
	b.UID = p.UID
	err := o.o.Client.SubResource("binding").Create(ctx, p.DeepCopy(), b)
	if !apierrors.IsConflict(err) {
		return err
	}
	there := new(corev1.Pod) // bound already, or another pod of that name
	if failed := o.o.Reader.Get(ctx, key, there); failed != nil {
		return retry(failed)
	}
	if there.UID == p.UID && there.Spec.NodeName == node {
		return nil
	}
	return Fatal(err)
}

// allocateClaim gives pod p claim there; nil: it asks the API server for the claim.
func (o *Objects) allocateClaim(ctx context.Context, a *Attempt, r int, c Claim, p *corev1.Pod,
	there *resourcev1.ResourceClaim,
) error {
	if there == nil {
		there = new(resourcev1.ResourceClaim)
		if err := o.o.Reader.Get(ctx, a.Within(c.Name), there); err != nil {
			return err
		}
	}
	class := new(resourcev1.DeviceClass)
	if err := o.o.Client.Get(ctx, types.NamespacedName{Name: o.o.DeviceClass}, class); err != nil {
		return err
	}
	if !slices.Contains(there.Finalizers, resourcev1.Finalizer) { // taken away when it was free for a moment
		there.Finalizers = append(there.Finalizers, resourcev1.Finalizer)
		if err := o.o.Client.Update(ctx, there); err != nil {
			return err
		}
	}
	if there.Status.Allocation == nil {
		there.Status.Allocation = c.allocation(a, there, class, a.Ranks[r].NodeName)
	}
	pod := resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: p.Name, UID: p.UID}
	same := func(x resourcev1.ResourceClaimConsumerReference) bool { return x.UID == p.UID }
	if slices.ContainsFunc(there.Status.ReservedFor, same) {
		return nil
	}
	there.Status.ReservedFor = append(there.Status.ReservedFor, pod)
	return o.o.Client.Status().Update(ctx, there)
}
