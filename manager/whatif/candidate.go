package whatif

import (
	"slices"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// candidates returns what job s, which has done so much work, could say instead, the smallest change first; nothing where
// the change makes no sense.
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
	case FewerGPUs:
		for _, k := range narrower(s.GPUs.Min) {
			if s.GPUs.Want > s.GPUs.Min { // a system that resizes may start with fewer
				add(func(n *sched.JobSpec) { n.GPUs.Min = k })
			}
			add(func(n *sched.JobSpec) {
				if n.GPUs.Min, n.GPUs.Want = k, k; s.GPUs.Min == s.GPUs.Max { // it never said that it could be resized
					n.GPUs.Max = k
				}
			})
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

// narrower returns the widths below n that are tried, the widest first: all of a small gang, the powers of two of a large one.
func narrower(n int32) (widths []int32) {
	const small = 9
	for k := n - 1; k > 0; k-- {
		if n <= small || k&(k-1) == 0 {
			widths = append(widths, k)
		}
	}
	return widths
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
