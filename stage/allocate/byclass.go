package allocate

import (
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// ByClass has what another rule grants placed class by class, the first class first, inside a class in the order of the
// grants: who suffers most from slow GPUs chooses first. Who is granted what stays as it is. What the other rule learns
// it must be reported by others: list it in pipeline.Parts.Learn.
//
// Source: class priority of PAL (Jain et al., SC'24), as released.
type ByClass struct {
	Grants sched.Allocator
	Class  func(v *sched.View, j sched.JobID) int // >= 0, few of them
}

var (
	_ sched.Allocator = ByClass{}
	_ sched.Reviser   = ByClass{}
)

// Revision is that of the other rule.
func (b ByClass) Revision() uint64 {
	if r, ok := b.Grants.(sched.Reviser); ok {
		return r.Revision()
	}
	return 0
}

// Least is that of the other rule; where it does not say, what the job says.
func (b ByClass) Least(v *sched.View, j sched.JobID) (gpus int32, known bool) {
	if n, ok := b.Grants.(sched.Narrowest); ok {
		return n.Least(v, j)
	}
	return v.Jobs[j].Spec.GPUs.Min, true
}

// Holds is that of the other rule; where it does not say, no one does.
func (b ByClass) Holds(v *sched.View, j sched.JobID) bool {
	n, ok := b.Grants.(sched.Narrowest)
	return ok && n.Holds(v, j)
}

// Allocate appends the grants.
func (b ByClass) Allocate(v *sched.View, room []int32, order []sched.JobID, d *sched.Desired,
	dst []sched.Grant) []sched.Grant {
	from := len(dst)
	dst = b.Grants.Allocate(v, room, order, d, dst)
	grants := slices.Clone(dst[from:])
	class := make([]int, len(grants)) // asking costs more than sorting
	for i := range grants {
		class[i] = b.Class(v, grants[i].Job)
	}
	dst = dst[:from]
	for c := 0; len(dst) < from+len(grants); c++ {
		for i := range grants {
			if class[i] == c {
				dst = append(dst, grants[i])
			}
		}
	}
	return dst
}
