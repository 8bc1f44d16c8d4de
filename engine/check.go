package engine

import (
	"fmt"

	"github.com/trainyard/trainyard/sched"
)

// checkTarget returns why target t with the given set must be refused, or "". It looks at the set alone and at the
// job; whether others are to hold the same GPUs is seen when the sets are exchanged (see exchange).
func checkTarget(s *State, t *sched.Target, set []sched.GPUID) string {
	v := &s.view
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
	return checkSet(s, j, set)
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
func checkSet(s *State, j *sched.Job, set []sched.GPUID) string {
	v, node, first := &s.view, sched.NodeID(sched.None), sched.TypeID(0)
	for i := 0; i < len(set); i++ {
		g := set[i]
		if why := misplaced(set, i, len(v.GPUs)); why != "" {
			return why
		}
		gpu := &v.GPUs[g]
		n := &v.Nodes[gpu.Node]
		sound := n.Open() && s.facts[gpu.Node].odd == 0 // nearly always
		if !sound && !(n.Open() && gpu.Usable()) && !holds(j, g) {
			return fmt.Sprintf("GPU %d is not usable: node %v", g, n.State)
		}
		if gpu.Node != node {
			typ := n.Spec.Type
			if node = gpu.Node; i == 0 {
				first = typ
			}
			if typ != first || !j.Spec.Types.Has(typ) {
				return wrongType(j, g, typ, first)
			}
		}
		if sound {
			i += sideBySide(set[i:], n.First+sched.GPUID(n.Spec.GPUs)) - 1
		}
	}
	return ""
}

// misplaced returns what is wrong with the number that is at place i of set, of so many GPUs, or "".
func misplaced(set []sched.GPUID, i, gpus int) string {
	switch g := set[i]; {
	case g < 0 || int(g) >= gpus:
		return fmt.Sprintf("GPU %d does not exist", g)
	case i > 0 && g <= set[i-1]:
		return fmt.Sprintf("GPU %d after %d, want increasing order", g, set[i-1])
	}
	return ""
}

// sideBySide returns how many of set lead it side by side, below end.
func sideBySide(set []sched.GPUID, end sched.GPUID) int {
	k := 1
	for k < len(set) && set[k] == set[k-1]+1 && set[k] < end {
		k++
	}
	return k
}

// wrongType returns what is wrong with the type of GPU g for j, where the first GPU is of another, or j accepts none.
func wrongType(j *sched.Job, g sched.GPUID, typ, first sched.TypeID) string {
	if !j.Spec.Types.Has(typ) {
		return fmt.Sprintf("GPU %d has type %d, which the job does not accept", g, typ)
	}
	return fmt.Sprintf("GPU types %d and %d in one gang", first, typ)
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
