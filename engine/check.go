package engine

import (
	"fmt"

	"github.com/trainyard/trainyard/sched"
)

// checkTarget returns why target t with the given set must be refused, or "". It looks at the set alone and at the
// job; whether others are to hold the same GPUs is seen when the sets are exchanged (see exchange).
func checkTarget(v *sched.View, t *sched.Target, set []sched.GPUID) string {
	if t.Job < 0 || int(t.Job) >= len(v.Jobs) {
		return fmt.Sprintf("job %d is not known", t.Job)
	}
	if len(set) == 0 {
		return ""
	}
	j := &v.Jobs[t.Job]
	switch {
	case !j.Eligible():
		return fmt.Sprintf("job is %v", j.State)
	case !j.Spec.GPUs.Has(len(set)):
		return fmt.Sprintf("split gang: %d GPUs, want %d..%d", len(set), j.Spec.GPUs.Min, j.Spec.GPUs.Max)
	case t.Trial && t.Share != sched.Shared:
		return "a trial shares its GPUs"
	case t.Share == sched.Shared && j.Spec.Share == sched.ShareNever:
		return "the job does not share"
	}
	if why := checkConfig(t, j.Spec.Batch); why != "" {
		return why
	}
	return checkSet(v, j, set)
}

// checkConfig returns what is wrong with how t is to run, a job that allows these batches, or "".
func checkConfig(t *sched.Target, batch sched.BatchRange) string {
	switch {
	case t.Batch != 0 && batch.Max != 0 && (t.Batch < batch.Min || t.Batch > batch.Max):
		return fmt.Sprintf("batch %d, want %d..%d", t.Batch, batch.Min, batch.Max)
	case !(t.LRScale >= 0) || !(t.Cap >= 0) || t.Accum < 0:
		return fmt.Sprintf("learning rate x %v, %v W, %d steps, want >= 0", t.LRScale, t.Cap, t.Accum)
	}
	return ""
}

// checkSet returns what is wrong with giving set to j: order, repeats, unusable GPUs, mixed or unacceptable types.
func checkSet(v *sched.View, j *sched.Job, set []sched.GPUID) string {
	first, node, open := sched.TypeID(0), sched.NodeID(sched.None), false
	for i, g := range set {
		switch {
		case g < 0 || int(g) >= len(v.GPUs):
			return fmt.Sprintf("GPU %d does not exist", g)
		case i > 0 && g <= set[i-1]:
			return fmt.Sprintf("GPU %d after %d, want increasing order", g, set[i-1])
		}
		gpu := &v.GPUs[g]
		n := &v.Nodes[gpu.Node]
		if gpu.Node != node {
			open = n.Open()
		}
		if !(open && gpu.Usable()) && !holds(j, g) {
			return fmt.Sprintf("GPU %d is not usable: node %v", g, n.State)
		}
		if gpu.Node == node {
			continue
		}
		node = gpu.Node
		switch typ := n.Spec.Type; {
		case !j.Spec.Types.Has(typ):
			return fmt.Sprintf("GPU %d has type %d, which the job does not accept", g, typ)
		case i == 0:
			first = typ
		case typ != first:
			return fmt.Sprintf("GPU types %d and %d in one gang", first, typ)
		}
	}
	return ""
}

// holds reports whether a live attempt of j is on GPU g: on a draining node it may stay.
func holds(j *sched.Job, g sched.GPUID) bool {
	for _, h := range j.GPUs {
		if h == g {
			return true
		}
	}
	return false
}

// checkNode returns why a node must be refused its new state, or "": a node that is to hold jobs does not leave.
func checkNode(v *sched.View, t sched.NodeTarget) string {
	if t.Node < 0 || int(t.Node) >= len(v.Nodes) {
		return fmt.Sprintf("node %d does not exist", t.Node)
	}
	if t.State != sched.NodeAsleep && t.State != sched.NodeGone {
		return ""
	}
	if wanted(v, &v.Nodes[t.Node]) {
		return fmt.Sprintf("node %d is to hold jobs: drain it first", t.Node)
	}
	return ""
}

// checkPool returns why so many nodes must be refused, or "".
func checkPool(v *sched.View, t sched.PoolTarget) string {
	if t.Pool < 0 || int(t.Pool) >= len(v.Pools) {
		return fmt.Sprintf("pool %d does not exist", t.Pool)
	}
	if s := &v.Pools[t.Pool].Spec; t.Count < s.Min || t.Count > s.Max {
		return fmt.Sprintf("%d nodes of pool %d, want %d..%d", t.Count, t.Pool, s.Min, s.Max)
	}
	return ""
}
