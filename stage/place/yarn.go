package place

import (
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// Yarn is first fit, as the capacity scheduler of the released Tiresias simulator has it: up to the size of a node, the
// first node with enough GPUs; wider gangs inside one rack, on its first wholly free nodes and, for a remainder, on its
// first other node with enough.
//
// Source: Gu et al., NSDI'19, released simulator, commit 959f9b0, scheme yarn. Its demands for CPUs and memory are the
// jobs' own here (JobSpec.CPUs, MemoryGB), looked at where nodes count them.
type Yarn struct{}

var _ sched.Placer = Yarn{}

// Fits reports whether the gang can be placed now.
func (y Yarn) Fits(v *sched.View, l *sched.Ledger, j sched.JobID, n int) bool {
	_, ok := y.Place(v, l, j, n, nil)
	return ok
}

// Place places the gang.
func (Yarn) Place(v *sched.View, l *sched.Ledger, j sched.JobID, n int, dst []sched.GPUID) ([]sched.GPUID, bool) {
	for i := range l.Types() {
		t := sched.TypeID(i)
		if !v.Jobs[j].Spec.Types.Has(t) || l.FreeOf(t) < n {
			continue
		}
		if n <= l.Widest(t) {
			if node := firstFit(l, t, j, n); node != sched.None {
				return l.TakeFrom(node, n, dst), true
			}
			continue
		}
		if gpus, ok := rackFit(v, l, t, j, n, dst); ok {
			return gpus, true
		}
	}
	return dst, false
}

func firstFit(l *sched.Ledger, t sched.TypeID, j sched.JobID, n int) sched.NodeID {
	for node := l.NextUp(t, 0); node != sched.None; node = l.NextUp(t, node+1) {
		if l.FreeOn(node) >= n && l.Room(node, j, n) {
			return node
		}
	}
	return sched.None
}

// rackFit tries each rack in the order of its first node.
func rackFit(v *sched.View, l *sched.Ledger, t sched.TypeID, j sched.JobID, n int, dst []sched.GPUID) ([]sched.GPUID,
	bool) {
	var tried []int32
	for node := l.NextUp(t, 0); node != sched.None; node = l.NextUp(t, node+1) {
		rack := v.Nodes[node].Spec.Rack
		if slices.Contains(tried, rack) {
			continue
		}
		tried = append(tried, rack)
		if gpus, ok := inRack(v, l, t, j, n, rack, dst); ok {
			return gpus, true
		}
	}
	return dst, false
}

// inRack takes n/size wholly free nodes of the rack, then the remainder from the first other node of it.
func inRack(v *sched.View, l *sched.Ledger, t sched.TypeID, j sched.JobID, n int, rack int32,
	dst []sched.GPUID) ([]sched.GPUID, bool) {
	from, size := len(dst), l.Widest(t)
	whole, rest := n/size, n%size
	for node := l.NextUp(t, 0); node != sched.None && whole > 0; node = l.NextUp(t, node+1) {
		if v.Nodes[node].Spec.Rack == rack && l.FreeOn(node) == size && l.Room(node, j, size) {
			dst = l.TakeFrom(node, size, dst)
			whole--
		}
	}
	if whole > 0 {
		return dst[:from], false
	}
	if rest == 0 {
		return dst, true
	}
	taken := dst[from:]
	for node := l.NextUp(t, 0); node != sched.None; node = l.NextUp(t, node+1) {
		if v.Nodes[node].Spec.Rack == rack && l.FreeOn(node) >= rest && l.Room(node, j, rest) &&
			!takes(v, taken, node) {
			return l.TakeFrom(node, rest, dst), true
		}
	}
	return dst[:from], false
}

// takes reports whether taken has GPUs of node.
func takes(v *sched.View, taken []sched.GPUID, node sched.NodeID) bool {
	for _, g := range taken {
		if v.GPUs[g].Node == node {
			return true
		}
	}
	return false
}
