package pools

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/kube/driver/writer"
	"github.com/trainyard/trainyard/sched"
)

// bench is the pool spot of a cluster without an engine, and a provider that notes what it is asked for.
type bench struct {
	*testing.T
	client.Client

	ps       *Pools
	v        *sched.View
	cordoned map[string]bool

	mu     sync.Mutex
	asked  []string
	events []string
	fail   error // of the provider
}

func (b *bench) Scale(_ context.Context, _ *v1alpha1.GPUPool, n int32) error {
	return b.ask(fmt.Sprint("scale ", n))
}

func (b *bench) Release(_ context.Context, _ *v1alpha1.GPUPool, n *corev1.Node) error {
	return b.ask("release " + n.Name)
}

func (b *bench) ask(what string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, what)
	return b.fail
}

// newBench returns pools in a cluster that has the pool spot and nodes of it.
func newBench(t *testing.T, nodes ...string) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	pool := &v1alpha1.GPUPool{ObjectMeta: metav1.ObjectMeta{Name: "spot"}}
	pool.Spec = v1alpha1.GPUPoolSpec{
		GPUType: "V100", GPUsPerNode: 4, Max: 10, PricePerGPUHour: resource.MustParse("0.5"),
	}
	list := []client.Object{pool}
	for _, name := range nodes {
		meta := metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelPool: "spot"}}
		list = append(list, &corev1.Node{ObjectMeta: meta})
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(list...).WithStatusSubresource(pool)
	b := &bench{T: t, Client: api.Build(), v: &sched.View{Types: []string{"V100", "H100"}}, cordoned: map[string]bool{}}
	log := slog.New(slog.DiscardHandler)
	w := writer.NewWriters(nil, false, log)
	t.Cleanup(w.Close)
	b.ps = New(Options{
		Client: b, Reader: b, Provider: b, Look: func(observer.Key) {}, Log: log,
		Types: func(product string) (sched.TypeID, error) {
			if product != "V100" {
				return 0, errors.New("no number")
			}
			return 0, nil
		},
		Event: func(_ client.Object, reason, text string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.events = append(b.events, reason+": "+text)
		},
	}, w)
	return b
}

// has has the View know the pool, and nodes of it.
func (b *bench) has(nodes ...string) *sched.Pool {
	b.v.Pools = []sched.Pool{{Spec: Spec(b.pool(), 0), Nodes: int32(len(nodes))}}
	for _, name := range nodes {
		n := sched.Node{Spec: sched.NodeSpec{Name: name, GPUs: 4, Pool: 0}, State: sched.NodeUp, Target: sched.NodeUp}
		b.v.Nodes = append(b.v.Nodes, n)
	}
	return &b.v.Pools[0]
}

func (b *bench) around() Around {
	return Around{
		View: b.v, Cordoned: func(node string) bool { return b.cordoned[node] },
		Joined: func(node string) bool {
			return slices.ContainsFunc(b.v.Nodes, func(n sched.Node) bool { return n.Spec.Name == node })
		},
	}
}

// look looks at the pool, as an instant of its own.
func (b *bench) look() observer.Found {
	b.Helper()
	b.ps.StartLook()
	f, err := b.ps.Look(b.Context(), observer.API{Cache: b}, "spot", b.around())
	if err != nil {
		b.Fatal(err)
	}
	synctest.Wait()
	return f
}

// pool returns the pool as it is, nil if it is gone.
func (b *bench) pool() *v1alpha1.GPUPool {
	b.Helper()
	p := &v1alpha1.GPUPool{}
	if err := b.Get(b.Context(), client.ObjectKey{Name: "spot"}, p); err != nil {
		if !apierrors.IsNotFound(err) {
			b.Fatal(err)
		}
		return nil
	}
	return p
}

func (b *bench) isCordoned(name string) bool {
	b.Helper()
	n := &corev1.Node{}
	if err := b.Get(b.Context(), client.ObjectKey{Name: name}, n); err != nil {
		b.Fatal(err)
	}
	return n.Spec.Unschedulable
}

// wasAsked checks what the provider was asked for since this was last called.
func (b *bench) wasAsked(want ...string) {
	b.Helper()
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Equal(b.asked, want) {
		b.Errorf("the provider was asked for %q, want %q", b.asked, want)
	}
	b.asked = nil
}

func run(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// Ensure that a pool is reported once, kept from going, and what cannot be is said.
func TestLook(t *testing.T) {
	run(t, "new", func(t *testing.T) {
		b := newBench(t)
		f := b.look()
		if len(f.Events) != 1 || f.Events[0].PoolSpec.Price != 2 || !slices.Equal(b.ps.Added(), []string{"spot"}) {
			t.Errorf("%+v, added %v", f.Events, b.ps.Added())
		}
		if !slices.Contains(b.pool().Finalizers, v1alpha1.Finalizer) {
			t.Error("want our finalizer")
		}
		b.has()
		if f = b.look(); len(f.Events) > 0 || len(b.ps.Added()) > 0 {
			t.Errorf("again: %+v", f.Events)
		}
	})
	run(t, "of a type that is not known", func(t *testing.T) {
		b := newBench(t)
		p := b.pool()
		p.Spec.GPUType = "X"
		if err := b.Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if f := b.look(); len(f.Events) > 0 || !slices.Equal(b.events, []string{"Invalid: no number"}) {
			t.Errorf("%+v, people see %q", f.Events, b.events)
		}
	})
	run(t, "whose nodes have other GPUs", func(t *testing.T) {
		b := newBench(t, "spot-1")
		b.has("spot-1")
		b.v.Nodes[0].Spec.Type = 1
		b.ps.CheckType(b.v, &b.v.Nodes[0])
		synctest.Wait()
		want := Mistyped + "node spot-1 has H100, the pool says V100; nothing is rented"
		if m := b.pool().Status.Message; m != want {
			t.Errorf("it says %q, want %q", m, want)
		}
		if f := b.look(); len(f.Events) != 1 || f.Events[0].PoolSpec.Max != 0 || f.Events[0].PoolSpec.Name != "spot" {
			t.Errorf("%+v", f.Events)
		}
		b.ps.CheckType(b.v, &b.v.Nodes[0])
		if synctest.Wait(); len(b.events) != 1 {
			t.Errorf("people see %q", b.events)
		}
	})
}

// Ensure that a deleted pool closes its nodes, has no name once nothing is left of it, and goes once the provider has
// let all go.
func TestDeletedPool(t *testing.T) {
	run(t, "", func(t *testing.T) {
		b := newBench(t, "spot-1", "boots")
		b.look()
		if err := b.Delete(t.Context(), b.pool()); err != nil {
			t.Fatal(err)
		}
		p := b.has("spot-1")
		if f := b.look(); len(f.Events) != 1 || f.Events[0].PoolSpec.Max != 0 || f.Events[0].PoolSpec.Name == "" {
			t.Errorf("with a node: %+v", f.Events)
		}
		if !b.isCordoned("spot-1") || b.isCordoned("boots") {
			t.Error("want the node that has joined closed, and no other yet")
		}
		if m := b.pool().Status.Message; !strings.HasPrefix(m, "is deleted, and goes once its 1 nodes") {
			t.Errorf("it says %q", m)
		}
		b.v.Nodes[0].State, p.Nodes = sched.NodeGone, 0
		f := b.look()
		if len(f.Events) != 1 || f.Events[0].PoolSpec.Name != "" ||
			!slices.Contains(f.Again, observer.KeyOfPool("spot")) {
			t.Errorf("without: %+v", f)
		}
		b.wasAsked()
		p.Spec.Name = ""
		b.look()
		b.wasAsked("release boots", "scale 0")
		if !b.isCordoned("boots") || b.pool() != nil {
			t.Error("want the node that boots cordoned, and the pool gone")
		}
	})
}

// Ensure that the provider is asked for a number of nodes, after those that no one sees were given back.
func TestRent(t *testing.T) {
	run(t, "", func(t *testing.T) {
		b := newBench(t, "spot-1", "unseen")
		b.has("spot-1")
		for _, c := range []struct {
			count int32
			want  []string
		}{{3, []string{"scale 3"}}, {2, []string{"scale 2"}}, {1, []string{"release unseen", "scale 1"}}} {
			b.ps.Rent(t.Context(), 0, c.count, b.around())
			b.wasAsked(c.want...)
		}
	})
}

// Ensure that the number of nodes is asked for again once one that was given back has left, and not if it left by
// itself.
func TestNodeLeft(t *testing.T) {
	run(t, "", func(t *testing.T) {
		b := newBench(t)
		b.has("spot-1").Ordered = 2
		n := &b.v.Nodes[0]
		if f := b.ps.NodeLeft(t.Context(), n, b.around()); !slices.Contains(f.Again, observer.KeyOfPool("spot")) {
			t.Errorf("%+v", f)
		}
		b.wasAsked()
		n.Target = sched.NodeGone
		b.ps.NodeLeft(t.Context(), n, b.around())
		b.wasAsked("scale 2")
		n.Spec.Pool = sched.None
		if f := b.ps.NodeLeft(t.Context(), n, b.around()); len(f.Again) > 0 {
			t.Errorf("of a node that is owned: %+v", f)
		}
		b.wasAsked()
	})
}

// Ensure that nodes are cordoned, taken into use again, and given back.
func TestSetNode(t *testing.T) {
	run(t, "", func(t *testing.T) {
		b := newBench(t, "spot-1")
		b.has("spot-1")
		set := func(s sched.NodeState) {
			b.ps.SetNode(b.v, &sched.Action{Node: 0, State: s})
			synctest.Wait()
		}
		if set(sched.NodeDraining); !b.isCordoned("spot-1") {
			t.Error("want it cordoned")
		}
		if set(sched.NodeUp); b.isCordoned("spot-1") {
			t.Error("want it in use")
		}
		b.wasAsked()
		set(sched.NodeGone)
		b.wasAsked("release spot-1")
		if !b.isCordoned("spot-1") {
			t.Error("want it cordoned before it is given back")
		}
		b.v.Nodes[0].Spec.Pool = sched.None
		set(sched.NodeGone)
		b.wasAsked()
	})
}

// Ensure that what a provider refuses is tried on, said by the pool, and taken back when it is granted; and that it is
// not tried on once something else is wanted.
func TestInsist(t *testing.T) {
	run(t, "", func(t *testing.T) {
		b := newBench(t)
		b.has()
		b.fail = apierrors.NewForbidden(schema.GroupResource{Resource: "nodepools"}, "gpus",
			errors.New("exceeded quota"))
		b.ps.Rent(t.Context(), 0, 3, b.around())
		time.Sleep(time.Minute)
		synctest.Wait()
		if m := b.pool().Status.Message; !strings.HasSuffix(m, "exceeded quota") || len(b.events) != 1 {
			t.Errorf("it says %q, people see %q", m, b.events)
		}
		b.mu.Lock()
		tries := len(b.asked)
		b.asked, b.fail = nil, nil
		b.mu.Unlock()
		if tries < 5 || tries > 12 {
			t.Errorf("%d tries in a minute", tries)
		}
		b.ps.Rent(t.Context(), 0, 2, b.around())
		time.Sleep(2 * lastRent)
		b.wasAsked("scale 2")
		if m := b.pool().Status.Message; m != "" {
			t.Errorf("it says %q", m)
		}
	})
}

// Ensure that what may mend itself is said only after a few tries.
func TestInsistIsPatient(t *testing.T) {
	run(t, "", func(t *testing.T) {
		b := newBench(t)
		b.has()
		b.fail = apierrors.NewInternalError(errors.New("busy"))
		b.ps.Rent(t.Context(), 0, 3, b.around())
		said := func() int { synctest.Wait(); b.mu.Lock(); defer b.mu.Unlock(); return len(b.events) }
		time.Sleep(500 * time.Millisecond)
		if said() != 0 {
			t.Errorf("people see %q after half a second", b.events)
		}
		time.Sleep(500 * time.Millisecond)
		if said() != 1 {
			t.Errorf("people see %q after a second", b.events)
		}
	})
}

// Ensure that a node is taken for one of our own where there is no pool of its label.
func TestOf(t *testing.T) {
	run(t, "", func(t *testing.T) {
		b := newBench(t)
		b.has()
		for label, want := range map[string]sched.PoolID{"": sched.None, "spot": 0, "other": sched.None} {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelPool: label}}}
			if got := b.ps.Of(b.v, n); got != want {
				t.Errorf("%q: %v, want %v", label, got, want)
			}
		}
	})
}
