package driver

import (
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/observer"
)

// holding is what a claim has of a device.
type holding struct {
	claim types.NamespacedName
	ours  bool // a claim of Trainyard
	part  bool // of a device that lends itself to several
}

// lookAtClaim keeps who holds which device, tells whose GPUs others have, and has pods made that waited for a device.
func (d *Driver) lookAtClaim(key types.NamespacedName) error {
	var c resourcev1.ResourceClaim
	found, err := d.get(key, &c)
	if err != nil {
		return err
	}
	before := d.claims[key]
	var now []deviceID
	for _, id := range before {
		d.holders[id] = slices.DeleteFunc(d.holders[id], func(h holding) bool { return h.claim == key })
		if len(d.holders[id]) == 0 {
			delete(d.holders, id)
		}
	}
	if found && c.Status.Allocation != nil {
		for _, r := range c.Status.Allocation.Devices.Results {
			if r.AdminAccess != nil && *r.AdminAccess { // it only watches
				continue
			}
			id := deviceID{r.Driver, r.Pool, r.Device}
			d.holders[id] = append(d.holders[id], holding{key, isOurs(&c), r.ShareID != nil})
			now = append(now, id)
		}
	}
	d.claims[key] = now
	if len(now) == 0 {
		delete(d.claims, key)
	}
	for _, id := range slices.Concat(before, now) {
		if node := d.places[id]; node != "" {
			d.again(observer.KeyOfNode(node))
		}
		d.detect(id)
	}
	d.released = d.released || len(before) > 0
	if found && d.isStrayClaim(&c) {
		d.removeStrayClaim(&c)
	}
	return nil
}

// isOurs reports whether a claim was made by us.
func isOurs(c *resourcev1.ResourceClaim) bool {
	return (c.Labels[v1alpha1.LabelJob] != "" || c.Labels[LabelSlot] != "") &&
		slices.ContainsFunc(c.OwnerReferences, isOwner)
}

// isForeign reports whether a device is used by others, or given away twice.
func (d *Driver) isForeign(id deviceID) bool {
	whole := 0
	for _, h := range d.holders[id] {
		if !h.ours {
			return true
		}
		if !h.part {
			whole++
		}
	}
	return whole > 1
}

// detect tells people, once, of a device that two claims have for themselves.
func (d *Driver) detect(id deviceID) {
	var claims []string
	for _, h := range d.holders[id] {
		if !h.part {
			claims = append(claims, h.claim.String())
		}
	}
	if len(claims) < 2 {
		delete(d.doubles, id)
		return
	}
	if d.doubles[id] {
		return
	}
	d.doubles[id] = true
	slices.Sort(claims)
	text := fmt.Sprintf("device %s of pool %s (%s) is allocated to %s at the same time", id.name, id.pool, id.driver, strings.Join(claims, " and "))
	d.o.Log.Error("a device is allocated twice", "device", id.name, "pool", id.pool, "claims", claims)
	for _, h := range d.holders[id] {
		about := &resourcev1.ResourceClaim{ObjectMeta: metaOf(h.claim)}
		_, _ = d.get(h.claim, about) // for its UID, by which one finds what is told of it
		d.o.Event(about, "DoubleAllocation", text)
	}
}

// heldBy returns a claim that keeps an attempt from its devices, other than its own, and whether it is one of others; ok is false if
// there is none.
func (d *Driver) heldBy(a *attempt) (h holding, ok bool) {
	for r := range a.ranks {
		for _, c := range a.claimsOf(r) {
			for _, g := range c.gpus {
				for _, h := range d.holders[g.id] {
					own := h.claim == types.NamespacedName{Namespace: a.key.Namespace, Name: c.name}
					if !own && !(h.part && g.lends) {
						return h, true
					}
				}
			}
		}
	}
	return holding{}, false
}

// letGo has the pods made of attempts whose devices were given back.
func (d *Driver) letGo() {
	d.released = false
	for _, a := range d.attempts {
		if a.waits {
			d.again(observer.KeyOfJob(a.key))
		}
	}
}
