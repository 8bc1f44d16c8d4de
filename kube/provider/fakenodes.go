package provider

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
)

// BootsAt says, on a node of a fake pool, when it is up. Whoever plays the kubelets makes it Ready then, and publishes
// its GPUs.
const BootsAt = "trainyard.dev/boots-at"

// fake makes the objects of nodes that are missing, to be up after the boot delay, and takes away those that boot and
// are not wanted.
func (p *Provider) fake(ctx context.Context, pool *v1alpha1.GPUPool, there []corev1.Node, nodes int32) error {
	for i := len(there); i < int(nodes); i++ {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: pool.Name + "-",
			Labels: map[string]string{v1alpha1.LabelPool: pool.Name},
			Annotations: map[string]string{BootsAt: p.clock().Add(pool.Spec.Boot.Duration).UTC().Format(
				time.RFC3339Nano)}}}
		if err := p.api.Create(ctx, node); err != nil {
			return fmt.Errorf("provider: node of %s: %w", pool.Name, err)
		}
	}
	left := len(there)
	for i := 0; i < len(there) && left > int(nodes); i++ {
		if at, err := time.Parse(time.RFC3339Nano, there[i].Annotations[BootsAt]); err == nil && p.clock().Before(at) {
			if err := client.IgnoreNotFound(p.api.Delete(ctx, &there[i])); err != nil {
				return fmt.Errorf("provider: node of %s: %w", pool.Name, err)
			}
			left--
		}
	}
	return nil
}
