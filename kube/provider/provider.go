// Package provider makes rented nodes come and go: by Karpenter, by anything that has a scale subresource, or, for
// tests, by itself.
package provider

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/pools"
)

// Provider asks whom the pool names. Who is asked again for what is under way does nothing, a Release that was cut
// short excepted.
//
// None of those it asks promises which node goes when there are to be fewer: they learn which one is empty. The node
// that is really lost is the one whose object is deleted, and the driver names that one.
type Provider struct {
	api    client.Client
	reader client.Reader // reads what the API has now
	clock  func() time.Time
}

var _ pools.Provider = (*Provider)(nil)

// New returns a provider that writes by api. Nodes it reads by reader: a cache has not heard of those that were given
// back just now, and so they would be counted with those that stay.
func New(api client.Client, reader client.Reader, clock func() time.Time) *Provider {
	return &Provider{api, reader, clock}
}

// Scale asks for a number of nodes in all.
func (p *Provider) Scale(ctx context.Context, pool *v1alpha1.GPUPool, nodes int32) error {
	there, err := p.registered(ctx, pool)
	if err != nil {
		return err
	}
	if pool.Spec.Provider.Kind == "fake" {
		return p.fake(ctx, pool, there, nodes)
	}
	of, err := scaled(pool)
	if err != nil {
		return err
	}
	return p.setReplicas(ctx, of, max(nodes, staying(there))) // who goes is said by Release
}

// Release gives back exactly this node, as far as the provider follows what it is asked: what the provider knows the
// node by is marked, and there are to be fewer; a NodeClaim is deleted. A crash half way may have one that boots called
// off: once the node has gone, the driver asks for the right number again.
func (p *Provider) Release(ctx context.Context, pool *v1alpha1.GPUPool, node *corev1.Node) error {
	if pool.Spec.Provider.Kind == "fake" {
		return client.IgnoreNotFound(p.api.Delete(ctx, node))
	}
	of, err := scaled(pool)
	if err != nil {
		return err
	}
	if pool.Spec.Provider.Kind != "karpenter" { // as soon as there are to be fewer, Cluster API chooses
		if err := p.markMachine(ctx, node); err != nil {
			return err
		}
		return p.count(ctx, pool, node, of)
	}
	if err := p.count(ctx, pool, node, of); err != nil {
		return err
	}
	return p.deleteClaim(ctx, node) // not before: another would be made in its place
}

// count has one node fewer asked for because this one goes, once however often it is called.
func (p *Provider) count(ctx context.Context, pool *v1alpha1.GPUPool, node *corev1.Node,
	of *unstructured.Unstructured) error {
	if node.Annotations[v1alpha1.AnnotationReleased] == counted {
		return nil
	}
	if err := p.mark(ctx, node, v1alpha1.AnnotationReleased, "yes"); err != nil { // those that stay are without
		return err
	}
	if err := p.fewer(ctx, pool, of); err != nil {
		return err
	}
	return p.mark(ctx, node, v1alpha1.AnnotationReleased, counted)
}

// counted is what a node that is given back says once there are to be fewer because of it.
const counted = "counted"

// staying counts the nodes that were not given back.
func staying(nodes []corev1.Node) (n int32) {
	for i := range nodes {
		if nodes[i].Annotations[v1alpha1.AnnotationReleased] == "" {
			n++
		}
	}
	return n
}

// registered returns the nodes of a pool.
func (p *Provider) registered(ctx context.Context, pool *v1alpha1.GPUPool) ([]corev1.Node, error) {
	var list corev1.NodeList
	if err := p.reader.List(ctx, &list, client.MatchingLabels{v1alpha1.LabelPool: pool.Name}); err != nil {
		return nil, fmt.Errorf("provider: nodes of %s: %w", pool.Name, err)
	}
	return list.Items, nil
}
