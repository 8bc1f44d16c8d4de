package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
)

// cloud is an API server that has one object to be scaled.
type cloud struct {
	t        *testing.T
	api      client.WithWatch
	replicas int64
	writes   int
	version  string // of the scale
	asked    string // the version that the last write was of
	fail     error  // of the scale; nil = it does not
	p        *Provider
	now      time.Time
}

func newCloud(t *testing.T, objects ...client.Object) *cloud {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := &cloud{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	plain := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	c.api = interceptor.NewClient(plain, interceptor.Funcs{
		SubResourceGet: func(_ context.Context, _ client.Client, _ string, _, body client.Object,
			_ ...client.SubResourceGetOption) error {
			scale := body.(*unstructured.Unstructured)
			scale.SetResourceVersion(c.version)
			if c.replicas > 0 { // 0 is left out, as by a real one
				scale.Object["spec"] = map[string]any{"replicas": c.replicas}
			}
			return c.fail
		},
		SubResourceUpdate: func(_ context.Context, _ client.Client, _ string, _ client.Object,
			opts ...client.SubResourceUpdateOption) error {
			var o client.SubResourceUpdateOptions
			o.ApplyOptions(opts)
			c.asked = o.SubResourceBody.(*unstructured.Unstructured).GetResourceVersion()
			n, _, err := unstructured.NestedInt64(o.SubResourceBody.(*unstructured.Unstructured).Object, "spec",
				"replicas")
			c.replicas = n
			c.writes++
			return errors.Join(err, c.fail)
		},
	})
	c.p = New(c.api, c.api, func() time.Time { return c.now })
	return c
}

func pool(kind string) *v1alpha1.GPUPool {
	return &v1alpha1.GPUPool{ObjectMeta: metav1.ObjectMeta{Name: "spot"},
		Spec: v1alpha1.GPUPoolSpec{Boot: metav1.Duration{Duration: time.Minute},
			Provider: v1alpha1.ProviderRef{Kind: kind, Name: "gpus", APIVersion: "cluster.x-k8s.io/v1beta1",
				ObjectKind: "MachineDeployment", Namespace: "infra"}}}
}

// node is one of the pool; as Karpenter makes them, or Cluster API.
func node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelPool: "spot"},
		Annotations: map[string]string{"cluster.x-k8s.io/machine": "m-" + name,
			"cluster.x-k8s.io/cluster-namespace": "infra"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: "claim-" +
			name, UID: "1"}}}}
}

func thing(group, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(group)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func (c *cloud) scale(kind string, n int32, want int64) {
	c.t.Helper()
	if err := c.p.Scale(c.t.Context(), pool(kind), n); err != nil {
		c.t.Fatal(err)
	}
	if c.replicas != want {
		c.t.Errorf("%d replicas after a request for %d, want %d", c.replicas, n, want)
	}
}

func (c *cloud) release(kind, name string) {
	c.t.Helper()
	n := &corev1.Node{}
	if err := c.api.Get(c.t.Context(), client.ObjectKey{Name: name}, n); err != nil {
		c.t.Fatal(err)
	}
	if err := c.p.Release(c.t.Context(), pool(kind), n); err != nil {
		c.t.Fatal(err)
	}
}

// Ensure that a static NodePool gets as many replicas as are requested, that nodes which are there stay until they are
// given back by name, and that asking again does nothing.
func TestKarpenter(t *testing.T) {
	c := newCloud(t, node("a"), node("b"), thing("karpenter.sh/v1", "NodeClaim", "", "claim-a"),
		thing("karpenter.sh/v1", "NodeClaim", "", "claim-b"))
	c.scale("karpenter", 3, 3)
	c.scale("karpenter", 3, 3)
	if c.writes != 1 {
		t.Errorf("%d writes, want one", c.writes)
	}
	c.scale("karpenter", 1, 2) // the one that boots is called off; a and b are there
	c.release("karpenter", "a")
	c.release("karpenter", "a")
	if c.replicas != 1 {
		t.Errorf("%d replicas, want the one that stays", c.replicas)
	}
	for name, there := range map[string]bool{"claim-a": false, "claim-b": true} {
		err := c.api.Get(t.Context(), client.ObjectKey{Name: name}, thing("karpenter.sh/v1", "NodeClaim", "", name))
		if there != (err == nil) {
			t.Errorf("%s: %v, want it there: %v", name, err, there)
		}
	}
	c.scale("karpenter", 2, 2) // one more next to b, while a goes
	own := node("own")
	own.OwnerReferences = nil
	if err := c.api.Create(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	if err := c.p.Release(t.Context(), pool("karpenter"), own); fmt.Sprint(err) !=
		"provider: node own is of no NodeClaim, want one that Karpenter made" {
		t.Errorf("a node of no one: %v", err)
	}
}

// Ensure that a node whose giving back fails half way, and is tried again, takes none with it that boots.
func TestReleaseTriedAgain(t *testing.T) {
	lone := node("a")
	lone.OwnerReferences = nil // it has no NodeClaim to be deleted
	c := newCloud(t, lone, node("b"))
	c.replicas = 3 // and one boots
	for range 3 {
		if err := c.api.Get(t.Context(), client.ObjectKey{Name: "a"}, lone); err != nil { // as who leads next
			t.Fatal(err)
		}
		if err := c.p.Release(t.Context(), pool("karpenter"), lone); err == nil || c.replicas != 2 {
			t.Errorf("%v, %d replicas, want an error, and the one that stays with the one that boots", err, c.replicas)
		}
	}
}

// Ensure that each node that is given back while others boot is one fewer, although those given back before it are
// there still.
func TestReleaseWhileOthersBoot(t *testing.T) {
	c := newCloud(t, node("a"), node("b"), node("c"))
	c.replicas = 5
	for i, name := range []string{"a", "b"} {
		if c.release("scale", name); c.replicas != int64(4-i) {
			t.Errorf("%d replicas without %s, want %d", c.replicas, name, 4-i)
		}
	}
}

// Ensure that Cluster API knows which machine goes before there are to be fewer.
func TestMachineIsMarkedFirst(t *testing.T) {
	m := thing("cluster.x-k8s.io/v1beta1", "Machine", "infra", "m-a")
	c := newCloud(t, node("a"), m)
	c.fail = errors.New("no scale")
	n := node("a")
	if err := c.p.Release(t.Context(), pool("scale"), n); !errors.Is(err, c.fail) {
		t.Fatal(err)
	}
	if err := c.api.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil ||
		m.GetAnnotations()["cluster.x-k8s.io/delete-machine"] != "yes" {
		t.Errorf("machine %v, %v", m.GetAnnotations(), err)
	}
}

// Ensure that nodes which were given back just now do not count, though the cache has not heard of it, and that
// no one's request is written over that came meanwhile.
func TestNodesAsTheyAre(t *testing.T) {
	c := newCloud(t, node("a"), node("b"), thing("karpenter.sh/v1", "NodeClaim", "", "claim-a"),
		thing("karpenter.sh/v1", "NodeClaim", "", "claim-b"))
	var before corev1.NodeList
	if err := c.api.List(t.Context(), &before); err != nil {
		t.Fatal(err)
	}
	c.p.api = interceptor.NewClient(c.api,
		interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch, list client.ObjectList,
			_ ...client.ListOption) error {
			before.DeepCopyInto(list.(*corev1.NodeList))
			return nil
		}})
	c.scale("karpenter", 2, 2)
	if c.release("karpenter", "a"); c.replicas != 1 {
		t.Errorf("%d replicas, want 1", c.replicas)
	}
	c.version = "read before"
	if err := c.p.Scale(t.Context(), pool("karpenter"), 3); err != nil || c.asked != "read before" {
		t.Errorf("%v; written to version %q", err, c.asked)
	}
}

// Ensure that what has a scale subresource is scaled, and that Cluster API knows which machine goes.
func TestScale(t *testing.T) {
	c := newCloud(t, node("a"), thing("cluster.x-k8s.io/v1beta1", "Machine", "infra", "m-a"))
	c.scale("scale", 4, 4)
	c.release("scale", "a")
	if c.replicas != 3 { // those that boot
		t.Errorf("%d replicas, want 3", c.replicas)
	}
	m := thing("cluster.x-k8s.io/v1beta1", "Machine", "infra", "m-a")
	if err := c.api.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil ||
		m.GetAnnotations()["cluster.x-k8s.io/delete-machine"] != "yes" {
		t.Errorf("machine %v, %v", m.GetAnnotations(), err)
	}
	c.scale("scale", 0, 0)
}

// Ensure that nodes of a fake pool boot for a while, are called off while they do, and go when they are given back.
func TestFake(t *testing.T) {
	c := newCloud(t, node("old"))
	named := 0
	c.p.api = interceptor.NewClient(c.api,
		interceptor.Funcs{Create: func(ctx context.Context, api client.WithWatch, o client.Object,
			opts ...client.CreateOption) error {
			named++
			o.SetName(fmt.Sprint("spot-", named))
			return api.Create(ctx, o, opts...)
		}})
	count := func(want int) {
		t.Helper()
		var list corev1.NodeList
		if err := c.api.List(t.Context(), &list); err != nil || len(list.Items) != want {
			t.Errorf("%d nodes, want %d; %v", len(list.Items), want, err)
		}
	}
	for n, want := range []int{1, 1, 2, 3} {
		if err := c.p.Scale(t.Context(), pool("fake"), int32(n)); err != nil {
			t.Fatal(err)
		}
		count(want)
	}
	if err := c.p.Scale(t.Context(), pool("fake"), 1); err != nil { // what is up stays
		t.Fatal(err)
	}
	count(1)
	if err := c.p.Scale(t.Context(), pool("fake"), 2); err != nil {
		t.Fatal(err)
	}
	c.now = c.now.Add(2 * time.Minute)
	if err := c.p.Scale(t.Context(), pool("fake"), 0); err != nil { // both are up
		t.Fatal(err)
	}
	count(2)
	c.release("fake", "old")
	count(1)
}

// Ensure that each reason for which nothing can be rented is reported in words that help, and can be distinguished.
func TestErrors(t *testing.T) {
	pools := schema.GroupResource{Group: "karpenter.sh", Resource: "nodepools"}
	for _, c := range []struct {
		name  string
		fail  error
		want  string
		again func(error) bool
	}{
		{"no definition", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "karpenter.sh", Kind: "NodePool"},
			SearchedVersions: []string{"v1"}},
			`provider: NodePool gpus: the cluster has no karpenter.sh/v1, Kind=NodePool: want its definition ` +
				`installed: no matches for kind "NodePool"`, meta.IsNoMatchError},
		{"no such object", apierrors.NewNotFound(pools, "gpus"),
			`provider: NodePool gpus: there is none of this name, or it has no scale subresource: ` +
				`nodepools.karpenter.sh "gpus" not found`, apierrors.IsNotFound},
		{"quota", apierrors.NewForbidden(pools, "gpus", errors.New("exceeded quota: gpus")),
			`provider: NodePool gpus: nodepools.karpenter.sh "gpus" is forbidden: exceeded quota: gpus`,
			apierrors.IsForbidden},
		{"conflict", apierrors.NewConflict(pools, "gpus", errors.New("the object has been modified")),
			`provider: NodePool gpus: Operation cannot be fulfilled on`, apierrors.IsConflict},
	} {
		w := newCloud(t)
		w.fail = c.fail
		if err := w.p.Scale(t.Context(), pool("karpenter"), 3); err == nil || !strings.HasPrefix(err.Error(), c.want) ||
			!c.again(err) {
			t.Errorf("%s: %v\nwant %s", c.name, err, c.want)
		}
	}
	odd := pool("unknown")
	want := `provider: pool spot: kind "unknown", want karpenter, scale or fake`
	c := newCloud(t)
	if err := c.p.Scale(t.Context(), odd, 1); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if err := c.p.Release(t.Context(), odd, node("a")); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
