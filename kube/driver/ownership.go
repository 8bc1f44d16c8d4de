package driver

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/kube/driver/claims"
	"github.com/trainyard/trainyard/kube/driver/devices"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/kube/driver/writer"
	"github.com/trainyard/trainyard/sched"
)

// owner says what is ours. Labels, names and owner references alone prove nothing: a tenant can write them on what is
// his. An object is ours if its create returned its UID or, after a crash, if it is what a live attempt is to have.
func (d *Driver) owner(ctx context.Context) claims.Owner {
	return claims.Owner{Claim: d.ownsClaim,
		Pod: func(pod types.NamespacedName, uid types.UID) bool { return d.ownsPod(ctx, pod, uid) }}
}

// ownsClaim reports whether a claim is ours.
func (d *Driver) ownsClaim(c *resourcev1.ResourceClaim) bool {
	k := observer.KeysOf(c)[0]
	if d.made.Has(k, c.UID) {
		return true
	}
	is := func(id sched.JobID) bool { return d.attempts.OwnsClaim(d.inventory, d.view, id, c) }
	if !slices.ContainsFunc(d.jobs.OwnersOf(d.view, c), is) {
		return false
	}
	d.made.Note(k, c.UID)
	return true
}

// mostStrangers is how many pods of others are remembered. Beyond that all are asked for again.
const mostStrangers = 10_000

// ownsPod reports whether the pod of a name and a UID is ours. The cache has no pods without our label: the API server
// is asked, once, for one that it lacks. What that lacks too is gone, and uses nothing.
func (d *Driver) ownsPod(ctx context.Context, key types.NamespacedName, uid types.UID) bool {
	k := observer.Key{Kind: observer.PodKey, NamespacedName: key}
	if d.made.Has(k, uid) {
		return true
	}
	if d.strangers[uid] {
		return false
	}
	p := new(corev1.Pod)
	found, err := d.api.Get(ctx, key, p)
	if err == nil && (!found || p.UID != uid) {
		p = new(corev1.Pod)
		found, err = d.api.Ask(ctx, key, p)
	}
	if err != nil || !found || p.UID != uid {
		return true
	}
	is := func(id sched.JobID) bool { return d.attempts.OwnsPod(id, p) }
	if slices.ContainsFunc(d.jobs.OwnersOf(d.view, p), is) {
		d.made.Note(k, uid)
		return true
	}
	if len(d.strangers) >= mostStrangers {
		clear(d.strangers)
	}
	d.strangers[uid] = true
	return false
}

// foreignGPU returns a GPU of an attempt that others use; ok is false if there is none.
func (d *Driver) foreignGPU(ctx context.Context, a *writer.Attempt) (g *devices.Device, ok bool) {
	if !observer.UsesClaims(d.o.Mode) {
		return nil, false
	}
	own := d.owner(ctx)
	for r := range a.Ranks {
		for _, g := range a.Ranks[r].Devices {
			if d.claims.IsForeign(g.ID, own) {
				return g, true
			}
		}
	}
	return nil, false
}
