package writer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/claims"
	"github.com/trainyard/trainyard/kube/driver/devices"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/sched"
)

// MostPerClaim is how many devices one claim may have (resource.k8s.io/v1, AllocationResultsMaxSize).
const MostPerClaim = resourcev1.AllocationResultsMaxSize

// request is the name of the one request of our claims.
const request = "gpu"

// Claim is one to be made for a pod.
type Claim struct {
	Name    string
	Devices []*devices.Device
	slot    bool // of a GPU that jobs of the namespace share
}

// Claims returns the claims of rank r: one for all its GPUs, or, where jobs share them and their driver does not offer
// them to several claims, one for each GPU.
func (a *Attempt) Claims(r int) []Claim {
	all := a.Ranks[r].Devices
	if a.mode != v1alpha1.Pinned && a.mode != v1alpha1.Direct || len(all) == 0 {
		return nil
	}
	together := all
	var out []Claim
	if a.Config.Share == sched.Shared {
		together = nil
		for _, g := range all {
			if g.Shareable {
				together = append(together, g)
				continue
			}
			out = append(out, Claim{slotName(g.UUID), []*devices.Device{g}, true})
		}
	}
	name := a.base
	if len(a.Ranks) > 1 {
		name += "-r" + strconv.Itoa(r) // no claim of another job: attempts end in a number
	}
	for i := 0; len(together) > 0; i++ {
		n := min(len(together), MostPerClaim)
		if i > 0 { // of a node with more GPUs than a claim may have
			name = fmt.Sprintf("%s-%c", name, 'a'+i)
		}
		out = append(out, Claim{name, together[:n], false})
		together = together[n:]
	}
	return out
}

var noName = regexp.MustCompile(`[^a-z0-9]+`)

// slotName returns the name of the claim of a shared GPU: its UUID as far as names allow, and a hash of all of it.
func slotName(uuid string) string {
	hash := sha256.Sum256([]byte(uuid))
	plain := strings.Trim(noName.ReplaceAllString(strings.ToLower(uuid), "-"), "-")
	plain = strings.TrimPrefix(plain, "gpu-")
	return "gpu-" + strings.Trim(plain[:min(len(plain), 40)]+"-"+hex.EncodeToString(hash[:4]), "-")
}

// claimObject returns c as it is to be made, for a job.
func (a *Attempt) claimObject(c Claim, tj *v1alpha1.TrainingJob, class string) *resourcev1.ResourceClaim {
	only := &resourcev1.CELDeviceSelector{Expression: claims.Selector(c.Devices[0].ID.Driver, uuidsOf(c.Devices))}
	exact := &resourcev1.ExactDeviceRequest{
		DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount,
		Count: int64(len(c.Devices)), Selectors: []resourcev1.DeviceSelector{{CEL: only}},
	}
	if need := tj.Spec.Sharing.MemoryGiB; a.Config.Share == sched.Shared && !c.slot && need > 0 {
		exact.Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{
			"memory": *resource.NewQuantity(int64(need)<<30, resource.BinarySI),
		}}
	}
	requests := []resourcev1.DeviceRequest{{Name: request, Exactly: exact}}
	o := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: a.Key.Namespace, Name: c.Name, Labels: a.labels(),
			OwnerReferences: []metav1.OwnerReference{ownerOf(tj, true)},
			Finalizers:      []string{resourcev1.Finalizer}, // whoever allocates would write it in a write of its own
		},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: requests}},
	}
	if c.slot {
		o.Labels = map[string]string{claims.LabelSlot: strings.TrimPrefix(c.Name, "gpu-")}
		o.OwnerReferences = []metav1.OwnerReference{ownerOf(tj, false)}
	}
	return o
}

// Is reports whether a claim of this name asks for exactly these devices, and has no other.
func (c Claim) Is(there *resourcev1.ResourceClaim) bool {
	uuids, ok := claims.Selected(there)
	if !ok || !slices.Equal(uuids, uuidsOf(c.Devices)) {
		return false
	}
	if there.Status.Allocation == nil {
		return true
	}
	return !slices.ContainsFunc(there.Status.Allocation.Devices.Results,
		func(r resourcev1.DeviceRequestAllocationResult) bool {
			return !slices.ContainsFunc(c.Devices, func(g *devices.Device) bool {
				id := devices.ID{Driver: r.Driver, Pool: r.Pool, Name: r.Device}
				return g.ID == id || g.ID == devices.ID{} // not known, while its node does not show it
			})
		})
}

// OwnsClaim reports whether a claim is one that the attempt is to have: its name, the UID of its job, its attempt, and
// that it asks for exactly the attempt's devices.
func (a *Attempt) OwnsClaim(there *resourcev1.ResourceClaim) bool {
	if there.Namespace != a.Key.Namespace || !observer.IsOf(there, a.UID) {
		return false
	}
	for r := range a.Ranks {
		for _, c := range a.Claims(r) {
			if c.Name == there.Name {
				return c.Is(there) && (c.slot || a.isLabelled(there))
			}
		}
	}
	return false
}

// isLabelled reports whether an object says that it is of this attempt.
func (a *Attempt) isLabelled(o client.Object) bool {
	for name, value := range a.labels() {
		if o.GetLabels()[name] != value {
			return false
		}
	}
	return true
}

func uuidsOf(gpus []*devices.Device) (uuids []string) {
	for _, g := range gpus {
		uuids = append(uuids, g.UUID)
	}
	return uuids
}

// ownerOf returns the reference by which the objects of a job go when it goes.
func ownerOf(tj *v1alpha1.TrainingJob, alone bool) metav1.OwnerReference {
	o := metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "TrainingJob", Name: tj.Name,
		UID: tj.UID}
	if alone {
		o.Controller, o.BlockOwnerDeletion = &alone, &alone
	}
	return o
}

// allocation returns how c is allocated by us, on a node.
func (c Claim) allocation(a *Attempt, o *resourcev1.ResourceClaim, class *resourcev1.DeviceClass,
	node string,
) *resourcev1.AllocationResult {
	there := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{onNode(node)}}
	out := &resourcev1.AllocationResult{NodeSelector: there}
	capacity := o.Spec.Devices.Requests[0].Exactly.Capacity
	for _, g := range c.Devices {
		r := resourcev1.DeviceRequestAllocationResult{
			Request: request, Driver: g.ID.Driver, Pool: g.ID.Pool, Device: g.ID.Name,
		}
		if g.Shareable && capacity != nil {
			share := types.UID(a.shareID(g))
			r.ShareID, r.ConsumedCapacity = &share, capacity.Requests
		}
		out.Devices.Results = append(out.Devices.Results, r)
	}
	for _, x := range class.Spec.Config {
		out.Devices.Config = append(out.Devices.Config, resourcev1.DeviceAllocationConfiguration{
			Source: resourcev1.AllocationConfigSourceClass, DeviceConfiguration: x.DeviceConfiguration})
	}
	for _, x := range o.Spec.Devices.Config {
		out.Devices.Config = append(out.Devices.Config, resourcev1.DeviceAllocationConfiguration{
			Source: resourcev1.AllocationConfigSourceClaim, Requests: x.Requests,
			DeviceConfiguration: x.DeviceConfiguration})
	}
	return out
}

// shareID names the part of a device that an attempt has: a UUID made of what names the attempt, always the same.
func (a *Attempt) shareID(g *devices.Device) string {
	h := sha256.Sum256([]byte(string(a.UID) + "/" + a.base + "/" + g.UUID))
	x := hex.EncodeToString(h[:16])
	return x[:8] + "-" + x[8:12] + "-" + x[12:16] + "-" + x[16:20] + "-" + x[20:]
}

// onNode selects one node by its name.
func onNode(name string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
		{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}},
	}}
}
