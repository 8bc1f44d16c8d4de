package controller

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver"
)

// wrong is what objects say that cannot be, for those who look after the cluster.
type wrong struct {
	profiles []string          // lines of the log
	pools    map[string]string // by pool
}

// check compares profiles with the GPUs that nodes have, and pools with each other and with their nodes. A profile may tell of a node
// that is not there, or has no GPUs yet.
func (in *inventory) check(profiles []v1alpha1.GPUProfile, nodes []corev1.Node) wrong {
	w := wrong{pools: make(map[string]string)}
	of := make(map[string]string) // profile, by UUID
	for i := range profiles {
		p := &profiles[i]
		for g := range p.Spec.GPUs {
			uuid := p.Spec.GPUs[g].UUID
			if other, twice := of[uuid]; twice {
				w.profiles = append(w.profiles, fmt.Sprintf("GPUProfile %s tells of GPU %s, of which GPUProfile %s tells as well; the last of them holds", p.Name, uuid, other))
			}
			of[uuid] = p.Name
			if has := in.nodes[p.Name].UUIDs; len(has) > 0 && !slices.Contains(has, uuid) {
				w.profiles = append(w.profiles, fmt.Sprintf("GPUProfile %s tells of GPU %s, which the node does not have", p.Name, uuid))
			}
		}
	}
	rents := make(map[v1alpha1.ProviderRef]string)
	for i := range in.pools {
		p := &in.pools[i]
		if strings.HasPrefix(p.Status.Message, driver.Mistyped) {
			w.pools[p.Name] = p.Status.Message
			continue
		}
		if other, twice := rents[p.Spec.Provider]; twice && p.Spec.Provider.Kind != "fake" {
			w.pools[p.Name] = fmt.Sprintf("rents from %s %s as pool %s does; want one pool for each", p.Spec.Provider.Kind, p.Spec.Provider.Name, other)
			continue
		}
		rents[p.Spec.Provider] = p.Name
		for n := range nodes {
			name, gpus := nodes[n].Name, in.nodes[nodes[n].Name].GPUs
			if nodes[n].Labels[v1alpha1.LabelPool] == p.Name && gpus > 0 && gpus != int(p.Spec.GPUsPerNode) {
				w.pools[p.Name] = fmt.Sprintf("node %s has %d GPUs, the pool says %d", name, gpus, p.Spec.GPUsPerNode)
			}
		}
	}
	return w
}
