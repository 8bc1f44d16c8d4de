package driver

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/internal/objects"
	"github.com/trainyard/trainyard/kube/driver/inventory"
	"github.com/trainyard/trainyard/sched"
)

// oneRank is an attempt on two GPUs of a node, the first of which is its third.
func oneRank(m v1alpha1.Mode, id sched.JobID) *attempt {
	return &attempt{id: id, number: 1, base: "train-1", mode: m, firstGPU: 2, ranks: []rank{{nodeName: "a", gpus: gpus(2), devices: []*inventory.Device{{UUID: "GPU-2"}, {UUID: "GPU-3"}}}}}
}

// Ensure that no container of a pod asks for GPUs by number beside those that were decided, and that those that asked have the same ones.
func TestEquip(t *testing.T) {
	two := corev1.ResourceList{inventory.ResourceGPU: *objects.Quantity(2)}
	always := corev1.ContainerRestartPolicyAlways
	for _, mode := range []v1alpha1.Mode{v1alpha1.Pinned, v1alpha1.Direct, v1alpha1.Visible, v1alpha1.Count} {
		tj := objects.Job("train", 2, nil)
		s := &tj.Spec.Template.Spec
		s.Containers[0].Resources.Limits = two.DeepCopy()
		s.Containers = append(s.Containers, corev1.Container{Name: "watch", Resources: corev1.ResourceRequirements{Limits: two.DeepCopy(), Requests: two.DeepCopy()}}, corev1.Container{Name: "log"})
		s.InitContainers = []corev1.Container{{Name: "check", Resources: corev1.ResourceRequirements{Limits: two.DeepCopy()}},
			{Name: "side", RestartPolicy: &always, Resources: corev1.ResourceRequirements{Limits: two.DeepCopy()}}, {Name: "fetch"}}
		p := oneRank(mode, 0).pod(0, tj, "")
		got := make(map[string]string)
		for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
			has := ""
			for _, e := range c.Env {
				if e.Name == visibleGPUs {
					has += "sees " + e.Value
				}
			}
			if _, asks := c.Resources.Requests[inventory.ResourceGPU]; asks {
				has += " requests"
			}
			if n, asks := c.Resources.Limits[inventory.ResourceGPU]; asks {
				has += "counts " + n.String()
			}
			if len(c.Resources.Claims) > 0 {
				has += fmt.Sprint("claims ", len(c.Resources.Claims))
			}
			got[c.Name] = has
		}
		own := map[v1alpha1.Mode]string{v1alpha1.Pinned: "claims 1", v1alpha1.Direct: "claims 1", v1alpha1.Visible: "sees GPU-2,GPU-3", v1alpha1.Count: "counts 2"}[mode]
		want := map[string]string{"main": own, "watch": own, "log": "", "check": own, "side": own, "fetch": ""}
		if mode == v1alpha1.Count { // what runs beside it would have others
			want["watch"], want["side"] = "", ""
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", mode, got, want)
		}
		if p.Annotations[v1alpha1.AnnotationContainer] != "main" {
			t.Errorf("%s: annotations %v, want the container that trains", mode, p.Annotations)
		}
	}
}

// Ensure that jobs in the network of their node meet at ports of their own and find each other.
func TestHostNetwork(t *testing.T) {
	tj := objects.Job("train", 2, nil)
	port := func(id sched.JobID, first int) string {
		a := oneRank(v1alpha1.Pinned, id)
		a.firstGPU = first
		return variable(a.pod(0, tj, ""), "MASTER_PORT")
	}
	if port(7, 2) != "29500" {
		t.Errorf("port %s in a network of its own, want torchrun's", port(7, 2))
	}
	tj.Spec.Template.Spec.HostNetwork = true
	seen := make(map[string]bool)
	for first := range 15 {
		seen[port(7, first)] = true
		seen[port(sched.JobID(8+first), first)] = true
	}
	if len(seen) != 30 || port(100_000, 15) > "29755" {
		t.Errorf("%d ports of 30 jobs, and %s: want them apart, up to 29755", len(seen), port(100_000, 15))
	}
	if p := oneRank(v1alpha1.Pinned, 7).pod(0, tj, ""); p.Spec.DNSPolicy != corev1.DNSClusterFirstWithHostNet {
		t.Errorf("DNS policy %q, want one by which rank 0 is found", p.Spec.DNSPolicy)
	}
	tj.Spec.Template.Spec.DNSPolicy = corev1.DNSNone
	if p := oneRank(v1alpha1.Pinned, 7).pod(0, tj, ""); p.Spec.DNSPolicy != corev1.DNSNone {
		t.Errorf("DNS policy %q, want the user's", p.Spec.DNSPolicy)
	}
}
