package text

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/sched"
)

// GPUName names a GPU as its driver does.
func GPUName(v *sched.View, g sched.GPUID) string {
	n := &v.Nodes[v.GPUs[g].Node]
	if n.Spec.Devices == nil {
		return strconv.Itoa(int(g))
	}
	return n.Spec.Devices[g-n.First]
}

// gpus lists GPUs.
func (r *Renderer) gpus(list []sched.GPUID) string {
	var words []string
	for _, g := range list[:min(len(list), most)] {
		words = append(words, GPUName(r.View, g))
	}
	if n := len(list) - most; n > 0 {
		words = append(words, fmt.Sprintf("%d more", n))
	}
	return strings.Join(words, ", ")
}

// unusable says of GPUs why none of them may be used.
func (r *Renderer) unusable(list []sched.GPUID) string {
	var words []string
	for _, g := range list[:min(len(list), most)] {
		words = append(words, GPUName(r.View, g)+" is "+unusable(r.View, g))
	}
	if n := len(list) - most; n > 0 {
		words = append(words, fmt.Sprintf("%d more %s not to be used", n, isAre(int32(n))))
	}
	if len(words) == 0 {
		return ""
	}
	return ": " + strings.Join(words, ", ")
}

// undrain says how those of the GPUs that a user drained may be used again.
func (r *Renderer) undrain(list []sched.GPUID) string {
	var words []string
	for _, g := range list {
		gpu := &r.View.GPUs[g]
		if r.View.Nodes[gpu.Node].State == sched.NodeDraining {
			return "; `trainyard undrain` lets jobs start there again"
		}
		if gpu.State == sched.GPUWithheld {
			words = append(words, GPUName(r.View, g))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return fmt.Sprintf("; `trainyard undrain %s` lets jobs start there again", strings.Join(words, " "))
}

// unusable says in a word or two why a GPU may not be used.
func unusable(v *sched.View, g sched.GPUID) string {
	gpu := &v.GPUs[g]
	switch {
	case gpu.State == sched.GPUForeign:
		return "used by others"
	case gpu.State == sched.GPUMissing:
		return "missing"
	case gpu.State == sched.GPUStuck:
		return "not freed by processes that ended"
	case gpu.State == sched.GPUWithheld:
		return "drained"
	case gpu.Quarantined:
		return "quarantined"
	case gpu.Rests != 0:
		return "resting after a failed start"
	case v.Nodes[gpu.Node].State == sched.NodeDraining:
		return "drained with its node"
	}
	return "down"
}

// Places says where GPUs are, which are in order of number, on up to four nodes: "node-7/0-3, node-8/1".
func Places(v *sched.View, set []sched.GPUID) string {
	const most = 4
	var list []string
	nodes := 0
	for ; len(set) > 0; nodes++ {
		node, n := v.GPUs[set[0]].Node, 1
		for n < len(set) && v.GPUs[set[n]].Node == node {
			n++
		}
		if nodes < most {
			list = append(list, v.Nodes[node].Spec.Name+"/"+indices(set[:n], v.Nodes[node].First))
		}
		set = set[n:]
	}
	if nodes > most {
		return fmt.Sprintf("%s and %d more", strings.Join(list, ", "), nodes-most)
	}
	return strings.Join(list, ", ")
}

// indices lists GPUs of one node by their places there, neighbours together: "0-3,5".
func indices(set []sched.GPUID, first sched.GPUID) string {
	var list []string
	for len(set) > 0 {
		n := 1
		for n < len(set) && set[n] == set[n-1]+1 {
			n++
		}
		run := strconv.Itoa(int(set[0] - first))
		if n > 1 {
			run += "-" + strconv.Itoa(int(set[n-1]-first))
		}
		list, set = append(list, run), set[n:]
	}
	return strings.Join(list, ",")
}
