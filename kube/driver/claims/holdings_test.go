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
	"github.com/trainyard/trainyard/kube/driver/internal/objects"
	"github.com/trainyard/trainyard/kube/driver/inventory"
	"github.com/trainyard/trainyard/kube/driver/observer"
)

// bench is the claims of a cluster in which every device is on node n.
type bench struct {
	*testing.T
	client.Client

	c      *Claims
	events []string
}

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

func device(name string) inventory.DeviceID {
	return inventory.DeviceID{Driver: objects.Driver, Pool: "n", Name: name}
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
	f, _, err := b.c.Look(b.Context(), api, key(name), func(inventory.DeviceID) string { return "n" })
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
	if b.c.IsForeign(device("gpu-0")) || !b.c.IsForeign(device("gpu-1")) || b.c.IsForeign(device("gpu-2")) {
		t.Error("want gpu-1 alone to be foreign")
	}
	if f := b.look("theirs"); !slices.Contains(f.Again, observer.KeyOfNode("n")) {
		t.Errorf("looks again at %v", f.Again)
	}
	b.remove("theirs")
	b.claim("second", true, "", "gpu-0")
	if b.c.IsForeign(device("gpu-1")) || !b.c.IsForeign(device("gpu-0")) {
		t.Error("want gpu-0 alone to be foreign, which two claims have")
	}
	b.claim("part", true, "1", "gpu-3")
	b.claim("other part", true, "2", "gpu-3")
	if b.c.IsForeign(device("gpu-3")) {
		t.Error("want parts of a device not to be foreign")
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
		d := &inventory.Device{ID: device(c.name), Shareable: c.shareable}
		h, held := b.c.HolderOf(key("own"), []*inventory.Device{d})
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
