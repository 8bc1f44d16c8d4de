package fakenode

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// gpu is one GPU of the fleet.
type gpu struct {
	node  string
	index int // -1: one that the node does not have
}

// holder is one pod that has a GPU.
type holder struct {
	pod   *pod
	claim string // UID of the claim by which it holds it; "" where it has it by the environment or the device plugin
	part  bool   // it holds a share, as consumable capacity has it
}

// books say who holds which GPU.
type books map[gpu][]holder

// release takes a pod out of the books. gpus is the number of GPUs of its node.
func (b books) release(p *pod, gpus int) {
	for i := range gpus {
		g := gpu{p.node.name, i}
		b[g] = slices.DeleteFunc(b[g], func(h holder) bool { return h.pod == p })
	}
}

// request is a GPU that a pod is to get.
type wanted struct {
	gpu
	holder
	name string // as it was named, for messages
}

// take gives the GPUs to the pod, notes a violation for each that another must not share with it, and returns their
// UUIDs. Both run then, as they would on real hardware. Callers hold mu.
func (f *Fleet) take(p *pod, requests []wanted) []string {
	var uuids []string
	for _, w := range requests {
		holders := f.books[w.gpu]
		for _, h := range holders {
			if !f.mayShare(h, w.holder, len(holders)) {
				f.violate("%s of node %s has two owners: pod %s and pod %s", w.name, w.gpu.node, h.pod.key(), p.key())
			}
		}
		f.books[w.gpu] = append(holders, w.holder)
		uuids = append(uuids, UUID(w.gpu.node, w.index))
	}
	return uuids
}

// mayShare says whether a and b may have one GPU that n pods have already.
func (f *Fleet) mayShare(a, b holder, n int) bool {
	switch {
	case a.pod == b.pod, a.part && b.part:
		return true
	case a.claim == "" && b.claim == "":
		return n < f.options.EnvSharers
	}
	return a.claim == b.claim
}

// requests returns the GPUs that the pod is to get, or why it cannot start yet. Callers hold mu.
func (f *Fleet) requests(p *pod) (requests []wanted, wait string) {
	for _, ref := range p.first.Spec.ResourceClaims {
		claim := f.claim(p.at, ref)
		switch {
		case claim == nil:
			return nil, "claim " + ref.Name + " is not there"
		case claim.Status.Allocation == nil:
			return nil, "claim " + claim.Name + " is not allocated"
		case !reserved(claim, p.at):
			return nil, "claim " + claim.Name + " is not reserved for the pod"
		}
		for _, r := range claim.Status.Allocation.Devices.Results {
			if r.Driver != Driver || r.AdminAccess != nil && *r.AdminAccess {
				continue
			}
			h := holder{pod: p, claim: string(claim.UID), part: r.ShareID != nil}
			requests = append(requests, wanted{gpu{r.Pool, f.index(r.Device, "gpu-")}, h, r.Device})
		}
	}
	requests = append(requests, f.visible(p)...)
	counted, ok := f.counted(p, requests)
	if !ok {
		return nil, "not enough GPUs of the device plugin are free"
	}
	requests = append(requests, counted...)
	for _, w := range requests {
		if w.gpu.node != p.node.name || p.node.hidden || w.index < 0 {
			return nil, noDevice + w.name + " of " + w.gpu.node
		}
	}
	return requests, ""
}

// noDevice starts the reason of a pod that waits for a GPU which its node does not have.
const noDevice = "no device "

// index returns which GPU a name or a UUID is, given what stands before the number; -1: none.
func (f *Fleet) index(name, prefix string) int {
	number, ok := strings.CutPrefix(name, prefix)
	i, err := strconv.Atoi(number)
	if !ok || err != nil || i < 0 || i >= f.options.GPUs {
		return -1
	}
	return i
}

// claim returns the claim that ref of the pod means: one by name, or the one made from a template. nil: not there.
func (f *Fleet) claim(pod *corev1.Pod, ref corev1.PodResourceClaim) *resourcev1.ResourceClaim {
	name := ref.ResourceClaimName
	for _, s := range pod.Status.ResourceClaimStatuses {
		if name == nil && s.Name == ref.Name {
			name = s.ResourceClaimName
		}
	}
	if name == nil {
		return nil
	}
	o, ok, err := f.claimStore.GetByKey(pod.Namespace + "/" + *name)
	if !ok || err != nil {
		return nil
	}
	return o.(*resourcev1.ResourceClaim)
}

func reserved(claim *resourcev1.ResourceClaim, pod *corev1.Pod) bool {
	return slices.ContainsFunc(claim.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool {
		return r.Resource == "pods" && r.UID == pod.UID
	})
}

// visibleDevices is the variable by which NVIDIA's container runtime knows the GPUs of a container.
const visibleDevices = "NVIDIA_VISIBLE_DEVICES"

// visible returns the GPUs that the pod names in its environment, by value or by an annotation (downward API).
func (f *Fleet) visible(p *pod) []wanted {
	var value string
	for _, e := range p.first.Spec.Containers[0].Env {
		if e.Name != visibleDevices {
			continue
		}
		value = e.Value
		if e.ValueFrom != nil && e.ValueFrom.FieldRef != nil {
			path := e.ValueFrom.FieldRef.FieldPath
			value = p.first.Annotations[strings.TrimSuffix(strings.TrimPrefix(path, "metadata.annotations['"), "']")]
		}
	}
	if value == "" || value == "none" || value == "void" {
		return nil
	}
	var requests []wanted
	for uuid := range strings.SplitSeq(value, ",") {
		g := gpu{p.node.name, f.index(uuid, uuidPrefix(p.node.name))}
		requests = append(requests, wanted{g, holder{pod: p}, uuid})
	}
	return requests
}

// counted chooses the GPUs of a pod that asks for a number of them: the first that no one has.
func (f *Fleet) counted(p *pod, others []wanted) (requests []wanted, ok bool) {
	asked := p.first.Spec.Containers[0].Resources.Limits[plugin]
	n := int(asked.Value())
	for i := 0; i < f.options.GPUs && len(requests) < n; i++ {
		g := gpu{p.node.name, i}
		taken := slices.ContainsFunc(others, func(w wanted) bool { return w.gpu == g })
		if len(f.books[g]) == 0 && !taken {
			requests = append(requests, wanted{g, holder{pod: p}, deviceName(i)})
		}
	}
	return requests, len(requests) == n
}
