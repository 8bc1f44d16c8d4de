package claims

import (
	"errors"
	"log/slog"
	"slices"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/devices"
	"github.com/trainyard/trainyard/kube/driver/internal/objects"
	"github.com/trainyard/trainyard/kube/driver/observer"
)

// bench is the claims of a cluster in which every device is on node n.
type bench struct {
	*testing.T
	client.Client

	c      *Claims
	others []string // pods that are not ours
	events []string
}

// owner takes those claims for ours that say so, and all pods but the others.
func (b *bench) owner() Owner {
	return Owner{
		Claim: func(c *resourcev1.ResourceClaim) bool { return c.Labels[LabelSlot] != "" },
		Pod:   func(p types.NamespacedName, _ types.UID) bool { return !slices.Contains(b.others, p.Name) },
	}
}

func (b *bench) isForeign(id devices.ID) bool { return b.c.IsForeign(id, b.owner()) }

func newBench(t *testing.T) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(resourcev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, Client: fake.NewClientBuilder().WithScheme(scheme).Build()}
	b.c = New(slog.New(slog.DiscardHandler), func(about client.Object, reason, text string) {
		b.events = append(b.events, about.GetName()+" "+reason+": "+text)
	})
	return b
}

func device(name string) devices.ID {
	return devices.ID{Driver: objects.Driver, Pool: "n", Name: name}
}

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: objects.Namespace, Name: name}
}

// claim makes a claim that has devices, and looks at it.
func (b *bench) claim(name string, ours bool, share types.UID, devices ...string) {
	b.Helper()
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: objects.Namespace, Name: name}}
	if ours {
		c.Labels = map[string]string{LabelSlot: "x"}
		c.OwnerReferences = []metav1.OwnerReference{{Kind: "TrainingJob", APIVersion: v1alpha1.GroupVersion.String()}}
	}
	c.Status.Allocation = &resourcev1.AllocationResult{}
	for _, d := range devices {
		r := resourcev1.DeviceRequestAllocationResult{Driver: objects.Driver, Pool: "n", Device: d}
		if share != "" {
			r.ShareID = &share
		}
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, r)
	}
	if err := b.Create(b.Context(), c); err != nil {
		b.Fatal(err)
	}
	b.look(name)
}

func (b *bench) remove(name string) {
	b.Helper()
	if err := b.Delete(b.Context(), &resourcev1.ResourceClaim{ObjectMeta: observer.MetaOf(key(name))}); err != nil {
		b.Fatal(err)
	}
	b.look(name)
}

func (b *bench) look(name string) observer.Found {
	b.Helper()
	api := observer.API{Cache: b, Server: b}
	f, _, err := b.c.Look(b.Context(), api, key(name), func(devices.ID) string { return "n" },
		b.owner())
	if err != nil {
		b.Fatal(err)
	}
	return f
}

// Ensure that a device is foreign while others have it, or two claims of ours, and that its node is looked at.
func TestIsForeign(t *testing.T) {
	b := newBench(t)
	b.claim("ours", true, "", "gpu-0")
	b.claim("theirs", false, "", "gpu-1")
	if b.isForeign(device("gpu-0")) || !b.isForeign(device("gpu-1")) || b.isForeign(device("gpu-2")) {
		t.Error("want gpu-1 alone to be foreign")
	}
	if f := b.look("theirs"); !slices.Contains(f.Again, observer.KeyOfNode("n")) {
		t.Errorf("looks again at %v", f.Again)
	}
	b.remove("theirs")
	b.claim("second", true, "", "gpu-0")
	if b.isForeign(device("gpu-1")) || !b.isForeign(device("gpu-0")) {
		t.Error("want gpu-0 alone to be foreign, which two claims have")
	}
	b.claim("part", true, "1", "gpu-3")
	b.claim("other part", true, "2", "gpu-3")
	if b.isForeign(device("gpu-3")) {
		t.Error("want parts of a device not to be foreign")
	}
}

// Ensure that the devices of a claim of ours are foreign while a pod of others uses it, which is reported once.
func TestPodOfOthers(t *testing.T) {
	b := newBench(t)
	b.others = []string{"stranger"}
	b.claim("ours", true, "", "gpu-0")
	c := new(resourcev1.ResourceClaim)
	use := func(pods ...string) {
		t.Helper()
		if err := b.Get(t.Context(), key("ours"), c); err != nil {
			t.Fatal(err)
		}
		c.Status.ReservedFor = nil
		for _, p := range pods {
			c.Status.ReservedFor = append(c.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{
				Resource: "pods", Name: p, UID: types.UID(p)})
		}
		if err := b.Update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		b.look("ours")
	}
	if use("own"); b.isForeign(device("gpu-0")) || len(b.events) > 0 {
		t.Errorf("used by our own pod: reported %q", b.events)
	}
	use("own", "stranger")
	b.look("ours")
	if want := []string{"ours ForeignPod: pod lab/stranger is of no attempt and uses this claim: no job is given its " +
		"GPUs before that pod ends"}; !b.isForeign(device("gpu-0")) || !slices.Equal(b.events, want) {
		t.Errorf("used by a pod of others: reported %q, want %q", b.events, want)
	}
	if use("own"); b.isForeign(device("gpu-0")) || len(b.c.strange) > 0 {
		t.Error("once it has ended")
	}
}

// Ensure that only the form in which Trainyard writes claims is taken for it.
func TestSelected(t *testing.T) {
	ours := func(change func(*resourcev1.ResourceClaim)) *resourcev1.ResourceClaim {
		c := new(resourcev1.ResourceClaim)
		cel := &resourcev1.CELDeviceSelector{Expression: Selector("gpu.nvidia.com", []string{"GPU-0", `odd"], [`})}
		c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{
			DeviceClassName: "gpu.nvidia.com", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 2,
			Selectors: []resourcev1.DeviceSelector{{CEL: cel}}}}}
		if change != nil {
			change(c)
		}
		return c
	}
	if got, ok := Selected(ours(nil)); !ok || !slices.Equal(got, []string{"GPU-0", `odd"], [`}) {
		t.Fatalf("%q, %v", got, ok)
	}
	selects := func(expression string) func(*resourcev1.ResourceClaim) {
		return func(c *resourcev1.ResourceClaim) {
			c.Spec.Devices.Requests[0].Exactly.Selectors[0].CEL.Expression = expression
		}
	}
	good := Selector("gpu.nvidia.com", []string{"GPU-0", "GPU-1"})
	for i, change := range []func(*resourcev1.ResourceClaim){
		func(c *resourcev1.ResourceClaim) { c.Spec.Devices.Requests[0].Exactly.Count = 3 },
		func(c *resourcev1.ResourceClaim) { c.Spec.Devices.Requests[0].Exactly.AdminAccess = new(true) },
		func(c *resourcev1.ResourceClaim) {
			c.Spec.Devices.Requests[0].Exactly.AllocationMode = resourcev1.DeviceAllocationModeAll
		},
		func(c *resourcev1.ResourceClaim) {
			c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, c.Spec.Devices.Requests[0])
		},
		func(c *resourcev1.ResourceClaim) { c.Spec.Devices.Requests[0].Exactly.Selectors = nil },
		func(c *resourcev1.ResourceClaim) { c.Spec.Devices.Requests[0].Exactly = nil },
		selects(good + " || true"), selects("true || " + good), selects("!(" + good + ")"), selects(good[:len(good)-1]),
		selects(`device.attributes["gpu.nvidia.com"].uuid in ["GPU-0", "GPU-1", ]`),
		selects(`device.attributes["gpu.nvidia.com"].uuid in ["GPU-0","GPU-1"]`),
		selects("device.attributes["), selects(""),
		selects(`device.attributes["gpu.nvidia.com"].uuid in [`),
		selects(`device.attributes["gpu.nvidia.com"].uuid in ["`),
	} {
		if got, ok := Selected(ours(change)); ok {
			t.Errorf("change %d is taken for ours, of %q", i, got)
		}
	}
}

// Ensure that a device that two claims have is reported once to each, and again only after it was given back.
func TestDoubles(t *testing.T) {
	b := newBench(t)
	b.claim("a", true, "", "gpu-0")
	b.claim("b", true, "", "gpu-0")
	b.look("b")
	const text = " DoubleAllocation: device gpu-0 of pool n (gpu.nvidia.com) is allocated to lab/a and lab/b " +
		"at the same time"
	if !slices.Equal(b.events, []string{"a" + text, "b" + text}) {
		t.Errorf("reported %q", b.events)
	}
	b.remove("b")
	b.claim("b", true, "", "gpu-0")
	if len(b.events) != 4 || len(b.c.doubles) != 1 {
		t.Errorf("reported %q", b.events)
	}
	b.remove("a")
	b.remove("b")
	if len(b.c.doubles)+len(b.c.holders)+len(b.c.devices) > 0 {
		t.Errorf("kept %v, %v, %v", b.c.doubles, b.c.holders, b.c.devices)
	}
}

// Ensure that a pod waits for the claims of others on its devices, and not for its own nor for parts of a device that
// several may have.
func TestHolderOf(t *testing.T) {
	b := newBench(t)
	b.claim("own", true, "", "gpu-0")
	b.claim("other", false, "", "gpu-1")
	b.claim("part", true, "1", "gpu-2")
	for _, c := range []struct {
		name      string
		shareable bool
		want      string
	}{{"gpu-0", false, ""}, {"gpu-1", false, "other"}, {"gpu-1", true, "other"}, {"gpu-2", true, ""},
		{"gpu-2", false, "part"}, {"gpu-3", false, ""}} {
		d := &devices.Device{ID: device(c.name), Shareable: c.shareable}
		h, held := b.c.HolderOf(key("own"), []*devices.Device{d})
		if h.Claim.Name != c.want || held != (c.want != "") {
			t.Errorf("%s: held by %q, want %q", c.name, h.Claim.Name, c.want)
		}
	}
}

// Ensure that it is said once that a device was given back.
func TestReleased(t *testing.T) {
	b := newBench(t)
	b.claim("a", true, "", "gpu-0")
	if b.c.Released() {
		t.Error("released before anything was given back")
	}
	b.remove("a")
	if !b.c.Released() || b.c.Released() {
		t.Error("want it released once")
	}
}
