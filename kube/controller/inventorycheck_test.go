package controller

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	driverinventory "github.com/trainyard/trainyard/kube/driver/inventory"
)

// Ensure that each contradiction is reported in its own words, once, and that what may be so is not reported.
func TestCheck(t *testing.T) {
	profile := func(name string, uuids ...string) v1alpha1.GPUProfile {
		p := v1alpha1.GPUProfile{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, u := range uuids {
			p.Spec.GPUs = append(p.Spec.GPUs, v1alpha1.GPUKnown{UUID: u})
		}
		return p
	}
	pool := func(name, kind, of string) v1alpha1.GPUPool {
		return v1alpha1.GPUPool{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1alpha1.GPUPoolSpec{GPUsPerNode: 2, Provider: v1alpha1.ProviderRef{Kind: kind, Name: of}}}
	}
	node := func(name, pool string) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{v1alpha1.LabelPool: pool}}}
	}
	in := &inventory{
		nodes: map[string]driverinventory.Shown{"a": {GPUs: 2, UUIDs: []string{"A0", "A1"}},
			"b": {GPUs: 2, UUIDs: []string{"B0", "B1"}}, "wide": {GPUs: 4}},
		pools: []v1alpha1.GPUPool{pool("first", "karpenter", "x"), pool("second", "karpenter", "x"),
			pool("other", "scale", "x"), pool("f", "fake", ""), pool("g", "fake", "")},
	}
	w := in.check([]v1alpha1.GPUProfile{profile("a", "A0", "X"), profile("b", "A0", "B1"), profile("later", "Z")},
		[]corev1.Node{node("a", "first"), node("b", ""), node("wide", "f"), node("boots", "g"), node("stray", "none")})
	if want := []string{
		"GPUProfile a names GPU X, which the node does not have",
		"GPUProfile b names GPU A0, of which GPUProfile a says as well; the last of them holds",
		"GPUProfile b names GPU A0, which the node does not have",
	}; !slices.Equal(w.profiles, want) {
		t.Errorf("profiles: %q, want %q", w.profiles, want)
	}
	if want := map[string]string{
		"second": "rents from karpenter x as pool first does; want one pool for each",
		"f":      "node wide has 4 GPUs, the pool says 2",
	}; !maps.Equal(w.pools, want) {
		t.Errorf("pools: %q, want %q", w.pools, want)
	}
}
