package driver

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/kube/driver/attempts"
	"github.com/trainyard/trainyard/kube/driver/claims"
	"github.com/trainyard/trainyard/kube/driver/devices"
	"github.com/trainyard/trainyard/kube/driver/inventory"
	"github.com/trainyard/trainyard/kube/driver/jobs"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/kube/driver/pools"
	"github.com/trainyard/trainyard/kube/driver/writer"
	"github.com/trainyard/trainyard/sched"
)

// look looks at objects, kind by kind, and returns the events that this gave.
func (d *Driver) look(ctx context.Context, keys []observer.Key) []sched.Event {
	d.inventory.StartLook(d.view)
	d.pools.StartLook()
	d.given = ""
	return d.observer.Look(d.clock.now, keys, observer.Steps{
		Object: func(k observer.Key) (observer.Found, error) { return d.lookAt(ctx, k) },
		Kind:   func(k observer.Kind) observer.Found { return d.afterKind(ctx, k) },
	})
}

func (d *Driver) lookAt(ctx context.Context, k observer.Key) (observer.Found, error) {
	switch k.Kind {
	case observer.PoolKey:
		return d.pools.Look(ctx, d.api, k.Name, d.nodes())
	case observer.SliceKey:
		return d.inventory.LookAtSlice(ctx, d.api, k.Name)
	case observer.ClaimKey:
		return d.lookAtClaim(ctx, k.NamespacedName)
	case observer.NodeKey:
		return d.lookAtNode(ctx, k.Name)
	case observer.PodKey:
		return observer.Found{}, d.lookAtPod(ctx, k.NamespacedName)
	case observer.SpaceKey:
		if d.gate != nil {
			d.gate.SpaceChanged(k.Name)
		}
		return observer.Found{}, nil
	default:
		return d.lookAtJob(ctx, k.NamespacedName)
	}
}

// afterKind does what is to be done once all objects of a kind have been looked at.
func (d *Driver) afterKind(ctx context.Context, k observer.Kind) (f observer.Found) {
	switch {
	case k == observer.ClaimKey && d.claims.Released():
		f.LookAgain(d.attempts.Waiting()...) // their pods may be made
	case k == observer.JobKey:
		arrived, refused := d.jobs.Arrive(ctx, d.view, d.clock.now)
		f.Add(arrived)
		for _, r := range refused {
			d.objects.TurnAway(r.Job, r.Why, r.Waits, r.Reason)
			d.leaveGate(r.Job)
		}
		f.LookAgain(d.leftovers()...)
	}
	return f
}

// nodes is what pools need to know of nodes.
func (d *Driver) nodes() pools.Around {
	return pools.Around{View: d.view, Cordoned: d.inventory.IsCordoned, Joined: func(node string) bool {
		_, joined := d.inventory.NodeID(d.view, node)
		return joined
	}}
}

// lookAtClaim keeps which claim holds which device, and removes a claim of one attempt that has none, although its name
// says so: the attempt's end was reported, and then the process died.
func (d *Driver) lookAtClaim(ctx context.Context, key types.NamespacedName) (observer.Found, error) {
	f, c, err := d.claims.Look(ctx, d.api, key, d.inventory.NodeOf, d.owner(ctx))
	if err == nil && c == nil {
		d.made.Forget(observer.Key{Kind: observer.ClaimKey, NamespacedName: key})
	}
	if c != nil && c.DeletionTimestamp == nil && isOfOneAttempt(c) && d.jobs.IsStray(d.view, c) {
		d.objects.RemoveStray(c)
	}
	return f, err
}

// isOfOneAttempt reports whether a claim has the form of ours, and is not one that jobs share.
func isOfOneAttempt(c *resourcev1.ResourceClaim) bool {
	_, ours := claims.Selected(c)
	return c.Labels[claims.LabelSlot] == "" && ours
}

// lookAtNode reports how a node has changed, and has what of that concerns its pool and the attempts on it looked at.
func (d *Driver) lookAtNode(ctx context.Context, name string) (observer.Found, error) {
	own := d.owner(ctx)
	seen, err := d.inventory.LookAtNode(ctx, d.api, name, inventory.Around{
		View: d.view, Foreign: func(id devices.ID) bool { return d.claims.IsForeign(id, own) },
		NewPools: d.pools.Added(),
		Pool:     func(node *corev1.Node) sched.PoolID { return d.pools.Of(d.view, node) },
	})
	if err != nil || seen.Node == sched.None {
		return seen.Found, err
	}
	n := &d.view.Nodes[seen.Node]
	switch {
	case !seen.Gone:
		d.pools.CheckType(d.view, n)
	case n.Busy > 0:
		seen.LookAgain(d.attempts.On(seen.Node)...)
	default:
		seen.Add(d.pools.NodeLeft(ctx, n, d.nodes()))
	}
	return seen.Found, nil
}

// lookAtPod removes a pod of ours that belongs to no attempt that is alive: a leader before us may have made it too
// late.
func (d *Driver) lookAtPod(ctx context.Context, key types.NamespacedName) error {
	p := new(corev1.Pod)
	found, err := d.api.Get(ctx, key, p)
	if err == nil && !found {
		d.made.Forget(observer.Key{Kind: observer.PodKey, NamespacedName: key})
	}
	if err != nil || !found || p.DeletionTimestamp != nil || writer.IsOver(p) || !observer.IsOfAnyJob(p) {
		return err
	}
	if d.jobs.IsStray(d.view, p) {
		d.o.Log.Warn("a pod belongs to no attempt that is alive: it is deleted", "pod", key)
		d.objects.RemoveStray(p)
	}
	return nil
}

// lookAtJob reports what is new about a job: that it is there, what its user wants, what became of its attempt.
func (d *Driver) lookAtJob(ctx context.Context, key types.NamespacedName) (f observer.Found, err error) {
	r, err := d.jobs.Read(ctx, d.api, d.view, key)
	if err != nil {
		return f, err
	}
	if id, arrived := d.jobs.ID(key); arrived && d.view.Jobs[id].State == sched.Done && !d.attempts.IsAlive(id) {
		d.attempts.Forget(id)
	}
	if !r.Known {
		if r.Job != nil {
			d.setFinalizer(r, d.jobs.Meet(r.Job))
		}
		return f, nil
	}
	j, gone := &d.view.Jobs[r.ID], jobs.IsGone(r.Job)
	d.waits(key, r.ID, r.Job)
	if j.State != sched.Done {
		if !gone && !observer.UsesClaims(d.o.Mode) { // it may have arrived in a mode with claims
			d.setFinalizer(r, jobs.Set)
		}
		if gone {
			d.attempts.Orphan(r.ID)
		}
		f = d.jobs.Requests(r.ID, j, r.Job)
	}
	if d.attempts.IsAlive(r.ID) {
		seen, err := d.observe(ctx, r.ID)
		f.Add(seen)
		return f, err
	}
	if j.State == sched.Done && r.Job != nil && gone {
		d.setFinalizer(r, jobs.Clear)
	}
	return f, nil
}

func (d *Driver) setFinalizer(r jobs.Read, to jobs.Finalizer) {
	if to != jobs.Leave {
		d.objects.SetFinalizer(r.Job, to == jobs.Set)
	}
}

// observe looks at the attempt of a job, and has written what follows from that.
func (d *Driver) observe(ctx context.Context, id sched.JobID) (observer.Found, error) {
	seen, err := d.attempts.Observe(ctx, d.api, id, attempts.Around{
		View: d.view, Now: d.clock.now, Inventory: d.inventory, Held: d.heldBy,
		Foreign: func(a *writer.Attempt) (*devices.Device, bool) { return d.foreignGPU(ctx, a) },
	})
	d.remove(seen.Remove)
	for _, p := range seen.Force {
		d.objects.ForcePod(p)
	}
	if seen.Pace != nil {
		d.objects.KeepPace(seen.Pace.Attempt, seen.Pace.Text)
	}
	if seen.Refused != nil {
		d.refused(ctx, id, *seen.Refused)
	}
	if seen.Over != nil {
		d.objects.Retire(seen.Over.Attempt, seen.Over.Lost)
	}
	return seen.Found, err
}

// heldBy returns a claim that keeps an attempt from its devices, other than its own; ok is false if there is none.
func (d *Driver) heldBy(a *writer.Attempt) (claim types.NamespacedName, ok bool) {
	for r := range a.Ranks {
		for _, c := range a.Claims(r) {
			if h, held := d.claims.HolderOf(a.Within(c.Name), c.Devices); held {
				return h.Claim, true
			}
		}
	}
	return types.NamespacedName{}, false
}
