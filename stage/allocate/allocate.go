// Package allocate holds the rules by which jobs are given GPUs by demand alone, before any is placed. They remember
// nothing.
package allocate

import "github.com/trainyard/trainyard/sched"

// Quota gives, down the order, every job what it asks for that is left, and passes over those for which there is not
// enough. Source: SRTF of HeliosArtifact (Hu et al., SC'21).
type Quota struct{}

var _ sched.Allocator = Quota{}

// Allocate appends the grants, in the order of ranks.
func (Quota) Allocate(v *sched.View, room []int32, order []sched.JobID, _ *sched.Desired,
	dst []sched.Grant) []sched.Grant {
	for _, j := range order {
		if n := v.Jobs[j].Spec.GPUs.Want; take(room, v.Jobs[j].Spec.Types, n) {
			dst = append(dst, sched.Grant{Job: j, GPUs: n, Least: n})
		}
	}
	return dst
}

// Prefix gives the jobs at the head of the order what they ask for, up to the first for which there is not enough.
// Source: PAL's host, blox-pal (SC'24): the longest prefix of the order whose summed demand is at most the cluster.
type Prefix struct{}

var _ sched.Allocator = Prefix{}

// Allocate appends the grants, in the order of ranks.
func (Prefix) Allocate(v *sched.View, room []int32, order []sched.JobID, _ *sched.Desired,
	dst []sched.Grant) []sched.Grant {
	for _, j := range order {
		n := v.Jobs[j].Spec.GPUs.Want
		if !take(room, v.Jobs[j].Spec.Types, n) {
			break
		}
		dst = append(dst, sched.Grant{Job: j, GPUs: n, Least: n})
	}
	return dst
}

// take takes n GPUs of one of the types out of room: of the type that has most left, the first of several. It reports
// false, and takes nothing, if none has as many.
func take(room []int32, types sched.TypeSet, n int32) bool {
	best := -1
	for t := range room {
		if types.Has(sched.TypeID(t)) && room[t] >= n && (best < 0 || room[t] > room[best]) {
			best = t
		}
	}
	if best < 0 {
		return false
	}
	room[best] -= n
	return true
}
