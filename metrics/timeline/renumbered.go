package timeline

import (
	"maps"
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// Of returns the timeline with the jobs alone that have a number in a table, under that number: each from 0 on once.
// All jobs that had attempts must have one. The copy is not to be folded further. t is not compact.
func (t *Timeline) Of(number map[sched.JobID]sched.JobID) *Timeline {
	few := *t
	few.Jobs, few.Attempts = make([]Job, len(number)), nil
	few.jobs = jobs{user: make([]int32, len(number)), undone: t.jobs.undone}
	for _, was := range slices.Sorted(maps.Keys(number)) {
		few.Jobs[number[was]], few.jobs.user[number[was]] = t.Jobs[was], t.jobs.user[was]
	}
	for _, a := range t.Attempts {
		a.Job = number[a.Job]
		if was, named := a.Other(); named {
			var ok bool
			if a.Reason.Job, ok = number[was]; !ok {
				a.Reason.Job = sched.None
			}
		}
		few.Attempts = append(few.Attempts, a)
	}
	return &few
}
