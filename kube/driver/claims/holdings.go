package claims

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/driver/devices"
	"github.com/trainyard/trainyard/kube/driver/observer"
)

// LabelSlot stands on the claim of one GPU that jobs of a namespace share: a hash of its UUID.
const LabelSlot = "trainyard.dev/slot"

// Holding is what a claim has of a device.
type Holding struct {
	Claim types.NamespacedName
	Part  bool // of a device that several claims may have
}

// Owner says what is Trainyard's.
type Owner struct {
	Claim func(*resourcev1.ResourceClaim) bool               // a claim that an attempt has
	Pod   func(pod types.NamespacedName, uid types.UID) bool // a pod of one
}

// Claims are the claims of a cluster that hold devices. They belong to one goroutine.
type Claims struct {
	log      *slog.Logger
	event    func(about client.Object, reason, text string)
	holders  map[devices.ID][]Holding
	devices  map[types.NamespacedName][]devices.ID              // of a claim
	kept     map[types.NamespacedName]*resourcev1.ResourceClaim // those that have devices
	doubles  map[devices.ID]bool                                // reported to be allocated twice
	strange  map[types.UID]types.UID                            // the claim that a pod of others uses, as was reported
	released bool                                               // a claim gave a device back
}

// New returns claims of which none is known yet. event reports to people what happened to an object.
func New(log *slog.Logger, event func(about client.Object, reason, text string)) *Claims {
	return &Claims{
		log: log, event: event, holders: make(map[devices.ID][]Holding),
		devices: make(map[types.NamespacedName][]devices.ID), doubles: make(map[devices.ID]bool),
		kept: make(map[types.NamespacedName]*resourcev1.ResourceClaim), strange: make(map[types.UID]types.UID),
	}
}

// Look keeps who holds which device, and has the nodes looked at whose devices changed hands. It returns the claim, nil
// if it is gone.
func (c *Claims) Look(ctx context.Context, api observer.API, key types.NamespacedName,
	nodeOf func(devices.ID) string, own Owner,
) (f observer.Found, _ *resourcev1.ResourceClaim, err error) {
	claim := new(resourcev1.ResourceClaim)
	found, err := api.Get(ctx, key, claim)
	if err != nil {
		return f, nil, err
	}
	before := c.devices[key]
	for _, id := range before {
		c.holders[id] = slices.DeleteFunc(c.holders[id], func(h Holding) bool { return h.Claim == key })
		if len(c.holders[id]) == 0 {
			delete(c.holders, id)
		}
	}
	if !found {
		if was := c.kept[key]; was != nil {
			delete(c.strange, was.UID)
		}
		claim = nil
	}
	now := c.hold(key, claim)
	for _, id := range slices.Concat(before, now) {
		if node := nodeOf(id); node != "" {
			f.LookAgain(observer.KeyOfNode(node))
		}
		c.detect(ctx, api, id)
	}
	c.released = c.released || len(before) > 0
	c.warn(key, claim, own)
	return f, claim, nil
}

// hold notes the devices that a claim has, nil for one that is gone, and returns them.
func (c *Claims) hold(key types.NamespacedName, claim *resourcev1.ResourceClaim) (now []devices.ID) {
	if claim != nil && claim.Status.Allocation != nil {
		for _, r := range claim.Status.Allocation.Devices.Results {
			if r.AdminAccess != nil && *r.AdminAccess { // it only watches
				continue
			}
			id := devices.ID{Driver: r.Driver, Pool: r.Pool, Name: r.Device}
			c.holders[id] = append(c.holders[id], Holding{key, r.ShareID != nil})
			now = append(now, id)
		}
	}
	c.devices[key], c.kept[key] = now, claim
	if len(now) == 0 {
		delete(c.devices, key)
		delete(c.kept, key)
	}
	return now
}

// stranger returns a pod that uses a claim of ours and is none of ours; ok is false if there is none.
func stranger(claim *resourcev1.ResourceClaim, own Owner) (pod types.NamespacedName, uid types.UID, ok bool) {
	for _, r := range claim.Status.ReservedFor {
		pod = types.NamespacedName{Namespace: claim.Namespace, Name: r.Name}
		if r.APIGroup != "" || r.Resource != "pods" || !own.Pod(pod, r.UID) {
			return pod, r.UID, true
		}
	}
	return pod, "", false
}

// warn reports to people, once, that a pod of others uses a claim of ours. claim is nil if it is gone.
func (c *Claims) warn(key types.NamespacedName, claim *resourcev1.ResourceClaim, own Owner) {
	if claim == nil || claim.Status.Allocation == nil || !own.Claim(claim) {
		return
	}
	pod, uid, ok := stranger(claim, own)
	if !ok {
		delete(c.strange, claim.UID)
		return
	}
	if c.strange[claim.UID] == uid {
		return
	}
	c.strange[claim.UID] = uid
	c.log.Warn("a pod of others uses a claim of ours", "claim", key, "pod", pod)
	c.event(claim, "ForeignPod", fmt.Sprintf("pod %s is of no attempt and uses this claim: no job is given its GPUs "+
		"before that pod ends", pod))
}

// IsForeign reports whether others use a device, or two claims have it.
func (c *Claims) IsForeign(id devices.ID, own Owner) bool {
	whole := 0
	for _, h := range c.holders[id] {
		if !own.Claim(c.kept[h.Claim]) {
			return true
		}
		if _, _, others := stranger(c.kept[h.Claim], own); others {
			return true
		}
		if !h.Part {
			whole++
		}
	}
	return whole > 1
}

// detect reports to people, once, a device that two claims have for themselves.
func (c *Claims) detect(ctx context.Context, api observer.API, id devices.ID) {
	var claims []string
	for _, h := range c.holders[id] {
		if !h.Part {
			claims = append(claims, h.Claim.String())
		}
	}
	if len(claims) < 2 {
		delete(c.doubles, id)
		return
	}
	if c.doubles[id] {
		return
	}
	c.doubles[id] = true
	slices.Sort(claims)
	text := fmt.Sprintf("device %s of pool %s (%s) is allocated to %s at the same time",
		id.Name, id.Pool, id.Driver, strings.Join(claims, " and "))
	c.log.Error("a device is allocated twice", "device", id.Name, "pool", id.Pool, "claims", claims)
	for _, h := range c.holders[id] {
		about := &resourcev1.ResourceClaim{ObjectMeta: observer.MetaOf(h.Claim)}
		_, _ = api.Get(ctx, h.Claim, about) // for its UID, by which people find the Event
		c.event(about, "DoubleAllocation", text)
	}
}

// HolderOf returns a claim, other than a pod's own, that keeps it from a device of its own claim; ok is false if there
// is none.
func (c *Claims) HolderOf(own types.NamespacedName, gpus []*devices.Device) (h Holding, ok bool) {
	for _, g := range gpus {
		for _, h := range c.holders[g.ID] {
			if h.Claim != own && !(h.Part && g.Shareable) {
				return h, true
			}
		}
	}
	return Holding{}, false
}

// Released reports whether a claim gave a device back since it was last asked.
func (c *Claims) Released() bool {
	was := c.released
	c.released = false
	return was
}
