package provision

import "github.com/trainyard/trainyard/sched"

// reach is how many GPUs there can ever be, by type: what is owned, and what pools allow. It follows from the View.
type reach struct{ owned, all []int32 }

// look brings r up to date with v, which has so many types.
func (r *reach) look(v *sched.View, types int) {
	r.owned, r.all = append(r.owned[:0], make([]int32, types)...), append(r.all[:0], make([]int32, types)...)
	for i := range v.Nodes {
		if n := &v.Nodes[i]; n.State != sched.NodeGone && n.Spec.Pool == sched.None && int(n.Spec.Type) < types {
			r.owned[n.Spec.Type] += int32(n.Spec.GPUs)
			r.all[n.Spec.Type] += int32(n.Spec.GPUs)
		}
	}
	for i := range v.Pools {
		if p := &v.Pools[i].Spec; int(p.Type) < types {
			r.all[p.Type] += int32(p.GPUs) * p.Max
		}
	}
}

// has reports whether a gang of n GPUs, of one of the types that j may have, can ever be given, if at most so many GPUs
// are to be wanted in all (0 = any number).
func (r *reach) has(j *sched.Job, n, most int32) bool {
	for t, all := range r.all {
		if most > 0 {
			all = min(all, max(most, r.owned[t]))
		}
		if j.Spec.Types.Has(sched.TypeID(t)) && n <= all {
			return true
		}
	}
	return false
}
