package inventory

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/devices"
	"github.com/trainyard/trainyard/kube/driver/internal/objects"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/sched"
)

// bench is an inventory over objects of a cluster, and a View without an engine.
type bench struct {
	*testing.T
	client.Client

	in      *Inventory
	v       *sched.View
	foreign map[devices.ID]bool
	unknown []string // products without a number that were asked for
}

func newBench(t *testing.T, list ...client.Object) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(list...).Build()
	b := &bench{T: t, Client: api, v: &sched.View{}, foreign: map[devices.ID]bool{}}
	b.in = New(Options{
		Mode: v1alpha1.Pinned, Log: slog.New(slog.DiscardHandler),
		Types: func(product string) (sched.TypeID, error) {
			if product != "V100" {
				return 0, errors.New("no number")
			}
			return 0, nil
		},
		NewType: func(product string) { b.unknown = append(b.unknown, product) },
	})
	return b
}

// look looks at the slice and the node of a name, as an instant of its own.
func (b *bench) look(name string, newPools ...string) Seen {
	b.Helper()
	b.in.StartLook(b.v)
	api := observer.API{Cache: b, Server: b}
	if _, err := b.in.LookAtSlice(b.Context(), api, name+"-"+objects.Driver); err != nil {
		b.Fatal(err)
	}
	seen, err := b.in.LookAtNode(b.Context(), api, name, Around{
		View: b.v, Foreign: func(id devices.ID) bool { return b.foreign[id] },
		Pool: func(*corev1.Node) sched.PoolID { return sched.None }, NewPools: newPools,
	})
	if err != nil {
		b.Fatal(err)
	}
	return seen
}

// has has the View know a node of so many GPUs as a.
func (b *bench) has(name string, gpus int) *sched.Node {
	var devices []string
	for i := range gpus {
		devices = append(devices, fmt.Sprintf("GPU-%s-%d", name, i))
		b.v.GPUs = append(b.v.GPUs, sched.GPU{})
	}
	n := sched.Node{State: sched.NodeUp, First: sched.GPUID(len(b.v.GPUs) - gpus)}
	n.Spec = sched.NodeSpec{Name: name, GPUs: gpus, Devices: devices, Pool: sched.None}
	b.v.Nodes = append(b.v.Nodes, n)
	return &b.v.Nodes[len(b.v.Nodes)-1]
}

// words says what events were found: kinds, and the GPUs and states of those about GPUs.
func words(seen Seen) (out []string) {
	for _, e := range seen.Events {
		word := e.Kind.String()
		if e.Kind == sched.GPUChanged {
			word += fmt.Sprint(" ", e.Value, " ", sched.GPUState(e.Code))
		}
		out = append(out, word)
	}
	return out
}

func (b *bench) expect(seen Seen, want ...string) {
	b.Helper()
	if got := words(seen); !slices.Equal(got, want) {
		b.Errorf("found %q, want %q", got, want)
	}
}

// Ensure that a node joins with the GPUs that it shows, that the devices others use are said, and where they are known.
func TestNodeJoins(t *testing.T) {
	b := newBench(t, objects.Node("a", 2)...)
	id := devices.ID{Driver: objects.Driver, Pool: "a", Name: "gpu-1"}
	b.foreign[id] = true
	seen := b.look("a")
	b.expect(seen, sched.NodeJoined.String(), fmt.Sprint(sched.GPUChanged, " 1 ", sched.GPUForeign))
	spec := seen.Events[0].NodeSpec
	if spec.Name != "a" || spec.GPUMemGB != 32 || !slices.Equal(spec.Devices, []string{"GPU-a-0", "GPU-a-1"}) {
		t.Errorf("%+v", spec)
	}
	if seen.Node != sched.None || b.in.NodeOf(id) != "a" || b.in.IsSilent("a") || b.in.IsGone("a") ||
		b.in.IsCordoned("a") {
		t.Errorf("node %v, device on %q", seen.Node, b.in.NodeOf(id))
	}
}

// Ensure that a node of a pool that the engine has not numbered yet is looked at again, and joins later.
func TestNodeOfNewPool(t *testing.T) {
	list := objects.Node("a", 2)
	list[0].SetLabels(map[string]string{v1alpha1.LabelPool: "spot"})
	b := newBench(t, list...)
	seen := b.look("a", "spot")
	if b.expect(seen); !slices.Contains(seen.Again, observer.KeyOfNode("a")) {
		t.Errorf("looks again at %v", seen.Again)
	}
	b.expect(b.look("a"), sched.NodeJoined.String())
}

// Ensure that a node whose product has no number is left out, and that the product is reported.
func TestNodeOfUnknownType(t *testing.T) {
	list := objects.Node("a", 1)
	other := "H100"
	slice, ok := list[1].(*resourcev1.ResourceSlice)
	if !ok {
		t.Fatal("no slice")
	}
	slice.Spec.Devices[0].Attributes["productName"] = resourcev1.DeviceAttribute{StringValue: &other}
	b := newBench(t, list...)
	if b.expect(b.look("a")); !slices.Equal(b.unknown, []string{"H100"}) {
		t.Errorf("reported %v", b.unknown)
	}
}

// Ensure that what changes of a node is reported once, and what goes stays until no attempt is on it.
func TestNodeChanges(t *testing.T) {
	b := newBench(t, objects.Node("a", 2)...)
	n := b.has("a", 2)
	b.expect(b.look("a"))
	node := &corev1.Node{}
	change := func(f func()) {
		t.Helper()
		err := b.Get(t.Context(), client.ObjectKey{Name: "a"}, node)
		f()
		status := node.Status
		err = errors.Join(err, b.Update(t.Context(), node))
		node.Status = status
		if err = errors.Join(err, b.Status().Update(t.Context(), node)); err != nil {
			t.Fatal(err)
		}
	}
	change(func() { node.Spec.Unschedulable = true })
	b.expect(b.look("a"), sched.NodeChanged.String())
	if n.State = sched.NodeDraining; !b.in.IsCordoned("a") {
		t.Error("want it cordoned")
	}
	b.expect(b.look("a"))
	change(func() { node.Status.Conditions[0].Status = corev1.ConditionUnknown })
	stuck := func(g int) string { return fmt.Sprint(sched.GPUChanged, " ", g, " ", sched.GPUStuck) }
	if b.expect(b.look("a"), stuck(0), stuck(1)); !b.in.IsSilent("a") {
		t.Error("want it silent")
	}
	b.v.GPUs[0].State, b.v.GPUs[1].State = sched.GPUStuck, sched.GPUStuck
	if err := b.Delete(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	missing := func(g int) string { return fmt.Sprint(sched.GPUChanged, " ", g, " ", sched.GPUMissing) }
	n.Busy = 1
	if seen := b.look("a"); !seen.Gone || !b.in.IsGone("a") {
		t.Error("want it gone")
	} else {
		b.expect(seen, missing(0), missing(1))
	}
	n.Busy = 0
	b.expect(b.look("a"), sched.NodeLeft.String())
}

// Ensure that a node whose GPUs were exchanged leaves and joins, once no attempt is on it.
func TestNodeWithOtherGPUs(t *testing.T) {
	b := newBench(t, objects.Node("a", 2)...)
	n := b.has("a", 2)
	n.Spec.Devices[1] = "GPU-a-9"
	n.Busy = 1
	b.expect(b.look("a"), fmt.Sprint(sched.GPUChanged, " 1 ", sched.GPUMissing))
	n.Busy = 0
	b.expect(b.look("a"), sched.NodeLeft.String(), sched.NodeJoined.String())
}

// Ensure that the devices of GPUs are found by their UUIDs, and that one that is not there is named.
func TestDevices(t *testing.T) {
	b := newBench(t, objects.Node("a", 2)...)
	b.has("other", 3)
	n := b.has("a", 2)
	b.look("a")
	list, err := b.in.Devices(n, []sched.GPUID{4, 3})
	if err != nil || list[0].ID.Name != "gpu-1" || list[1].ID.Name != "gpu-0" {
		t.Errorf("%+v, %v", list, err)
	}
	n.Spec.Devices[1] = "GPU-a-9"
	list, err = b.in.Devices(n, []sched.GPUID{4})
	if err == nil || err.Error() != "GPU GPU-a-9 of node a is not there any more" || list[0].UUID != "GPU-a-9" {
		t.Errorf("%+v, %v", list, err)
	}
}

// Ensure that nodes that join get the places that the engine gives them: their own, else a free one of their size, else
// the next.
func TestNumbers(t *testing.T) {
	node := func(name string, gpus int, first sched.GPUID, s sched.NodeState) sched.Node {
		return sched.Node{Spec: sched.NodeSpec{Name: name, GPUs: gpus}, First: first, State: s}
	}
	v := &sched.View{GPUs: make([]sched.GPU, 10), Nodes: []sched.Node{
		node("up", 4, 0, sched.NodeUp), node("gone", 4, 4, sched.NodeGone), node("small", 2, 8, sched.NodeGone),
	}}
	n := numbersOf(v)
	for _, c := range []struct {
		name string
		gpus int
		want sched.GPUID
	}{{"small", 2, 8}, {"x", 4, 4}, {"gone", 4, 10}, {"up", 4, 0}, {"y", 2, 14}} {
		if got := n.first(&sched.NodeSpec{Name: c.name, GPUs: c.gpus}); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
