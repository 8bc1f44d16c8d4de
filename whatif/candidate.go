package whatif

import (
	"slices"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// candidates returns what job s, which has done so much work, could say instead, the smallest change first; nothing
// where the change makes no sense.
func candidates(v *sched.View, s *sched.JobSpec, done time.Duration, c Change) (specs []sched.JobSpec) {
	add := func(change func(*sched.JobSpec)) {
		n := *s
		change(&n)
		specs = append(specs, n)
	}
	switch c {
	case MoreTypes:
		for _, t := range otherTypes(v, s) {
			add(func(n *sched.JobSpec) { n.Types = n.Types.With(t) })
		}
	case ShorterWallTime:
		for _, part := range []time.Duration{3, 2, 1} {
			if wall := s.WallTime / 4 * part; wall > done {
				add(func(n *sched.JobSpec) { n.WallTime = wall })
			}
		}
	case AllowSharing:
		if s.Share == sched.ShareNever && v.ShareLimit > 1 {
			add(func(n *sched.JobSpec) { n.Share = sched.ShareAllow })
		}
	case OtherGPUs:
		for _, r := range ranges(s.GPUs, int32(len(v.GPUs))) {
			add(func(n *sched.JobSpec) { n.GPUs = r })
		}
	case HigherPriority:
		for _, p := range above(v, s.Priority) {
			add(func(n *sched.JobSpec) { n.Priority = p + 1 })
		}
	}
	return specs
}

// otherTypes returns the GPU types of nodes that are up and that s does not take, in order.
func otherTypes(v *sched.View, s *sched.JobSpec) (types []sched.TypeID) {
	for i := range v.Nodes {
		if n := &v.Nodes[i]; n.Open() && !s.Types.Has(n.Spec.Type) {
			types = append(types, n.Spec.Type)
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// ranges returns what a job that allows r could ask for instead where there are so many GPUs, the smallest change
// first: another of its widths by default; one of them alone, for those who look at all; and then fewer than it allows.
func ranges(r sched.Range, gpus int32) (list []sched.Range) {
	for _, k := range inside(r, gpus) {
		if k != r.Want {
			list = append(list, sched.Range{Min: r.Min, Want: k, Max: r.Max})
		}
	}
	for _, k := range inside(r, gpus) {
		list = append(list, sched.Rigid(int(k)))
	}
	for _, k := range narrower(r.Min) {
		if r.Want > r.Min { // a system that resizes may start with fewer
			list = append(list, sched.Range{Min: k, Want: r.Want, Max: r.Max})
		}
		fewer := sched.Range{Min: k, Want: k, Max: r.Max}
		if r.Min == r.Max { // it never said that it could be resized
			fewer.Max = k
		}
		list = append(list, fewer)
	}
	return list
}

// mostWidths bounds the widths of a range that are all tried; of more, powers of two and the ends are.
const mostWidths = 32

// inside returns the widths that r allows, of at most so many GPUs: the default first, then those below it, the widest
// first, then those above. A job of one width has none to choose from.
func inside(r sched.Range, gpus int32) (widths []int32) {
	if r.Min == r.Max {
		return nil
	}
	most := min(r.Max, gpus)
	add := func(k int32) {
		if most-r.Min < mostWidths || k&(k-1) == 0 || k == r.Min || k == r.Want || k == most {
			widths = append(widths, k)
		}
	}
	for k := min(r.Want, most); k >= r.Min; k-- {
		add(k)
	}
	for k := r.Want + 1; k <= most; k++ {
		add(k)
	}
	return widths
}

// narrower returns the widths below n that are tried, the widest first: all of a small gang, the powers of two of a
// large one.
func narrower(n int32) (widths []int32) {
	const small = 9
	for k := n - 1; k > 0; k-- {
		if n <= small || k&(k-1) == 0 {
			widths = append(widths, k)
		}
	}
	return widths
}

// drain is what a user drained, and the events that lift it.
type drain struct {
	gpus    []sched.GPUID
	machine bool // all nodes
	lifted  []sched.Event
}

// mostDrains bounds the GPUs that are tried one by one.
const mostDrains = 8

// drains returns what could be lifted: the drain of the nodes, that of a GPU, of all GPUs, or all of it.
func drains(v *sched.View) (list []drain) {
	nodes := drain{}
	for i := range v.Nodes {
		if v.Nodes[i].State == sched.NodeDraining {
			nodes.lifted = append(nodes.lifted, sched.Event{Kind: sched.NodeChanged, Node: sched.NodeID(i),
				Code: int32(sched.NodeUp)})
		}
	}
	if nodes.machine = len(nodes.lifted) > 0; nodes.machine {
		list = append(list, nodes)
	}
	all := drain{}
	for g := range v.GPUs {
		if v.GPUs[g].State != sched.GPUWithheld {
			continue
		}
		id, e := sched.GPUID(g), sched.Event{Kind: sched.GPUChanged, Value: float64(g), Code: int32(sched.GPUInUse)}
		all.gpus, all.lifted = append(all.gpus, id), append(all.lifted, e)
		if len(all.gpus) <= mostDrains {
			list = append(list, drain{gpus: []sched.GPUID{id}, lifted: []sched.Event{e}})
		}
	}
	if len(all.gpus) > 1 {
		list = append(list, all)
	}
	if nodes.machine && len(all.gpus) > 0 {
		list = append(list, drain{all.gpus, true, append(nodes.lifted, all.lifted...)})
	}
	return list
}

// above returns the priorities, p or higher, of jobs that are not done: the lowest eight.
func above(v *sched.View, p int32) (list []int32) {
	for i := range v.Jobs {
		if j := &v.Jobs[i]; j.State != sched.Done && j.Spec.Priority >= p {
			list = append(list, j.Spec.Priority)
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	return list[:min(len(list), 8)]
}
