package trace

import (
	"fmt"
	"strings"
)

// openbLayout is the pod list of Alibaba's openb cluster (clusterdata, cluster-trace-gpu-v2023, Weng et al., ATC'23). A
// pod asks for num_gpu GPUs, of a single one perhaps for gpu_milli thousandths; it runs from scheduled_time to
// deletion_time. Pods without GPU and those that were never scheduled are left out. gpu_spec becomes the GPU type where
// it names one; a pod that accepts several is one that accepts any.
var openbLayout = layout{
	name:   "openb",
	line:   "pods of Alibaba's openb cluster (2023), with parts of a GPU",
	zone:   "seconds from an origin that the files do not state",
	source: "Alibaba openb (cluster-trace-gpu-v2023); run time from scheduling to deletion",
	columns: []column{
		{name: "name", means: jobID},
		{name: "cpu_milli", means: ignored},
		{name: "memory_mib", means: ignored},
		{name: "num_gpu", means: width},
		{name: "gpu_milli", means: parts},
		{name: "gpu_spec", means: asked},
		{name: "qos", means: ignored},
		{name: "pod_phase", means: state},
		{name: "creation_time", means: submit},
		{name: "deletion_time", means: ended},
		{name: "scheduled_time", means: started},
	},
	finish: finishOpenb,
}

func finishOpenb(r *row, j *Job) (wrong string) {
	n, milli := r.said.width, int(r.said.parts)
	switch {
	case float64(milli) != r.said.parts || milli > 1000:
		return fmt.Sprintf("gpu_milli %v, want a whole number from 0 to 1000", r.said.parts)
	case n == 0 || milli == 0:
		r.leaveOut(noGPU)
		return ""
	}
	j.askMilli(n * milli)
	types := r.said.asked
	if !printable(types) {
		return fmt.Sprintf("gpu_spec %q, %s", clip(types), wantWord)
	}
	if r.ran(j); r.drop != "" {
		return ""
	}
	if strings.Contains(types, "|") {
		r.odd("accept several GPU types: taken as any")
	} else {
		j.GPUType = r.words.intern(gpuType, types)
	}
	if j.State == "Running" {
		r.odd("are in phase Running and have a time of deletion all the same, which is taken for their end")
	}
	return ""
}
