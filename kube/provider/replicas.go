package provider

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
)

// scaled is the object whose scale subresource is set: for Karpenter a static NodePool.
func scaled(pool *v1alpha1.GPUPool) (*unstructured.Unstructured, error) {
	at := &pool.Spec.Provider
	u := &unstructured.Unstructured{}
	switch at.Kind {
	case "karpenter":
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodePool"})
	case "scale":
		u.SetAPIVersion(at.APIVersion)
		u.SetKind(at.ObjectKind)
		u.SetNamespace(at.Namespace)
	default:
		return nil, fmt.Errorf("provider: pool %s: kind %q, want karpenter, scale or fake", pool.Name, at.Kind)
	}
	u.SetName(at.Name)
	return u, nil
}

// setReplicas asks for so many, if that is not what is asked for already.
func (p *Provider) setReplicas(ctx context.Context, of *unstructured.Unstructured, n int32) error {
	was, version, err := p.replicas(ctx, of)
	if err != nil || was == n {
		return err
	}
	scale := emptyScale()
	scale.SetResourceVersion(version) // what another asked for meanwhile is not written over
	scale.Object["spec"] = map[string]any{"replicas": int64(n)}
	if err := p.api.SubResource("scale").Update(ctx, of, client.WithSubResourceBody(scale)); err != nil {
		return fmt.Errorf("provider: %s %s to %d nodes: %w", of.GetKind(), of.GetName(), n, plain(of, err))
	}
	return nil
}

// replicas is how many are asked for, and by which version.
func (p *Provider) replicas(ctx context.Context, of *unstructured.Unstructured) (n int32, version string, err error) {
	scale := emptyScale()
	if err = p.api.SubResource("scale").Get(ctx, of, scale); err != nil {
		return 0, "", fmt.Errorf("provider: %s %s: %w", of.GetKind(), of.GetName(), plain(of, err))
	}
	replicas, _, err := unstructured.NestedInt64(scale.Object, "spec", "replicas") // left out where it is 0
	if err != nil {
		return 0, "", fmt.Errorf("provider: scale of %s %s: %w", of.GetKind(), of.GetName(), err)
	}
	return int32(replicas), scale.GetResourceVersion(), nil
}

// plain is an error in words that say what to do, where it is known.
func plain(of *unstructured.Unstructured, err error) error {
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("the cluster has no %s: want its definition installed: %w", of.GroupVersionKind(), err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is none of this name, or it has no scale subresource: %w", err)
	}
	return err
}

// emptyScale is a Scale without a type of Go's: clients that do not know the type of an object do not know that of its
// subresource.
func emptyScale() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale"}}
}

// fewer asks for the nodes that stay, and for those that boot.
func (p *Provider) fewer(ctx context.Context, pool *v1alpha1.GPUPool, of *unstructured.Unstructured) error {
	there, err := p.registered(ctx, pool)
	if err != nil {
		return err
	}
	was, _, err := p.replicas(ctx, of)
	if err != nil {
		return err
	}
	asked := int32(0) // of those that are there
	for i := range there {
		if there[i].Annotations[v1alpha1.AnnotationReleased] != counted {
			asked++
		}
	}
	booting := max(0, was-asked)
	return p.setReplicas(ctx, of, min(was, staying(there)+booting))
}

// mark sets an annotation on an object.
func (p *Provider) mark(ctx context.Context, o client.Object, name, value string) error {
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, name, value)
	if err := p.api.Patch(ctx, o, client.RawPatch(types.MergePatchType, body)); err != nil {
		return fmt.Errorf("provider: mark %s: %w", o.GetName(), err)
	}
	return nil
}

// markMachine marks for Cluster API, where it made the node, which of its machines goes first.
func (p *Provider) markMachine(ctx context.Context, node *corev1.Node) error {
	machine := node.Annotations["cluster.x-k8s.io/machine"]
	if machine == "" {
		return nil
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta1", Kind: "Machine"})
	u.SetNamespace(node.Annotations["cluster.x-k8s.io/cluster-namespace"])
	u.SetName(machine)
	return client.IgnoreNotFound(p.mark(ctx, u, "cluster.x-k8s.io/delete-machine", "yes"))
}

// deleteClaim deletes the NodeClaim of a node, so that Karpenter has none to choose.
func (p *Provider) deleteClaim(ctx context.Context, node *corev1.Node) error {
	for _, owner := range node.OwnerReferences {
		if owner.Kind != "NodeClaim" {
			continue
		}
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodeClaim"})
		u.SetName(owner.Name)
		if err := client.IgnoreNotFound(p.api.Delete(ctx, u)); err != nil {
			return fmt.Errorf("provider: NodeClaim %s: %w", owner.Name, err)
		}
		return nil
	}
	return fmt.Errorf("provider: node %s is of no NodeClaim, want one that Karpenter made", node.Name)
}
