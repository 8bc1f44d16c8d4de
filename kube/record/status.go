package record

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/trainyard/trainyard/explain/text"
	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/sched"
)

// Extract returns what the status of a job says to people, but for its Reason. Devices are named as the driver of the
// node does, tenants are those of Tenants.
func Extract(v *sched.View, id sched.JobID, mode v1alpha1.Mode,
	tenants map[sched.GPUID][]sched.JobID) v1alpha1.TrainingJobStatus {
	j := &v.Jobs[id]
	service := j.ServiceNow(v.Now)
	s := v1alpha1.TrainingJobStatus{Phase: Phase(j), Attempt: j.Attempts, Batch: j.Live.Batch, GPUs: width(j),
		AttainedGPUSeconds: int64(service), Attained: time.Duration(float64(service) * 1e9).Round(time.Second).String()}
	s.Restarts = max(0, j.Attempts-1)
	if len(j.GPUs) > MostNamed && mode != v1alpha1.Count {
		s.Allocation = byNode(v, j.GPUs)
	} else {
		s.Allocation = each(v, id, mode, tenants)
	}
	if len(j.GPUs) > 0 {
		s.Placement = "gpu"
		if mode == v1alpha1.Count {
			s.Placement = "node"
		}
	}
	return s
}

// MostNamed is up to how many GPUs of a job each has an entry in its status. The status of a wider one has an entry for
// each node, so that it stays small enough to be written: of 4,096 GPUs on 512 nodes it has less than 64 KiB.
const MostNamed = 64

// each names the GPUs of a job one by one.
func each(v *sched.View, id sched.JobID, mode v1alpha1.Mode,
	tenants map[sched.GPUID][]sched.JobID) (list []v1alpha1.AllocatedGPU) {
	for _, g := range v.Jobs[id].GPUs {
		a := allocated(v, g, mode)
		for _, other := range tenants[g] {
			if other != id {
				a.SharedWith = append(a.SharedWith, text.Title(v, other))
			}
		}
		list = append(list, a)
	}
	return list
}

// byNode names GPUs node by node, by their places there.
func byNode(v *sched.View, gpus []sched.GPUID) (list []v1alpha1.AllocatedGPU) {
	for _, span := range spansOf(names(v, gpus)) {
		node, places, _ := strings.Cut(span, "/")
		list = append(list, v1alpha1.AllocatedGPU{Node: node, Device: places})
	}
	return list
}

// allocated names one GPU. Where the mode leaves its choice to others, only the node is known.
func allocated(v *sched.View, g sched.GPUID, mode v1alpha1.Mode) v1alpha1.AllocatedGPU {
	n := &v.Nodes[v.GPUs[g].Node]
	a := v1alpha1.AllocatedGPU{Node: n.Spec.Name}
	if mode == v1alpha1.Count {
		return a
	}
	a.Device = strconv.Itoa(int(g - n.First))
	if n.Spec.Devices != nil {
		a.UUID = n.Spec.Devices[g-n.First]
	}
	return a
}

// Phase is where a job is in its life, for people.
func Phase(j *sched.Job) v1alpha1.Phase {
	switch {
	case j.State == sched.Done && j.Outcome == sched.Finished:
		return v1alpha1.Succeeded
	case j.State == sched.Done:
		return v1alpha1.Failed
	case j.Attempt == sched.Starting:
		return v1alpha1.Starting
	case j.Attempt == sched.Running:
		return v1alpha1.Running
	case j.Attempt == sched.Stopping:
		return v1alpha1.Stopping
	}
	return v1alpha1.Pending
}

// width is how many GPUs a job holds, of how many it is to hold or may.
func width(j *sched.Job) string {
	switch held, goal := len(j.GPUs), max(len(j.Target), int(j.Want)); {
	case j.State == sched.Done:
		return ""
	case held == 0 && goal == 0:
		return "0 of " + text.Widths(j.Spec.GPUs)
	case held == goal:
		return strconv.Itoa(held)
	default:
		return fmt.Sprintf("%d of %d", held, goal)
	}
}
