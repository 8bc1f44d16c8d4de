package inventory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/sched"
)

// Shown is what a node shows of its GPUs, as a driver reports them.
type Shown struct {
	Product string   // of its GPUs, AnyProduct where it does not say; "" = it has none
	GPUs    int      // 0 while its slices are being exchanged
	UUIDs   []string // in order; nil = unknown
	Joins   bool     // a driver that does not know the node reports that it joins
	MemGiB  float32  // of a GPU
}

// Survey returns what nodes show in a mode, by name. It reads slices from api in the modes that use them: elsewhere the
// cluster need not know of such objects.
func Survey(ctx context.Context, api client.Reader, nodes []corev1.Node, mode v1alpha1.Mode) (map[string]Shown, error) {
	of := make(map[string][]*resourcev1.ResourceSlice)
	if observer.UsesClaims(mode) {
		var list resourcev1.ResourceSliceList
		if err := api.List(ctx, &list); err != nil {
			return nil, fmt.Errorf("driver: survey: %w", err)
		}
		slices.SortFunc(list.Items, func(a, b resourcev1.ResourceSlice) int { return strings.Compare(a.Name, b.Name) })
		for i := range list.Items {
			if node := list.Items[i].Spec.NodeName; node != nil {
				of[*node] = append(of[*node], &list.Items[i])
			}
		}
	}
	all := make(map[string]Shown, len(nodes))
	for i := range nodes {
		m := survey(&nodes[i], of[nodes[i].Name], nil, mode)
		if m.unsure || len(m.GPUs) == 0 {
			all[nodes[i].Name] = Shown{}
			continue
		}
		all[nodes[i].Name] = Shown{Product: m.Product, GPUs: len(m.GPUs), UUIDs: m.uuids(), MemGiB: m.MemGiB,
			Joins: m.joins()}
	}
	return all, nil
}

// Spec returns what the engine knows of a node that shows s, of GPUs of type t and rented from a pool, None if it is
// owned. What a GPUProfile says of it is not in it.
func (s *Shown) Spec(node *corev1.Node, t sched.TypeID, pool sched.PoolID) *sched.NodeSpec {
	has := node.Status.Allocatable
	return &sched.NodeSpec{Name: node.Name, GPUs: s.GPUs, Type: t, Pool: pool, GPUMemGB: s.MemGiB, Devices: s.UUIDs,
		CPUs: float32(has.Cpu().AsApproximateFloat64()), MemoryGB: gib(has.Memory().Value())}
}

// joins reports whether a node that is not known may be reported to join.
func (m *Machine) joins() bool { return m.Ready && !m.Cordoned && !m.unsure && len(m.GPUs) > 0 }
