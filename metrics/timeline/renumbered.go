package timeline

import (
	"maps"
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// Of returns the timeline with the jobs alone that have a number in a table, under that number: each from 0 on once.
// All jobs that had attempts must have one. The copy is not to be folded further.
func (t *Timeline) Of(number map[sched.JobID]sched.JobID) *Timeline {
	few := *t
	few.Jobs, few.live, few.Attempts = make([]Job, len(number)), make([]live, len(number)), nil
	for _, was := range slices.Sorted(maps.Keys(number)) {
		few.Jobs[number[was]], few.live[number[was]] = t.Jobs[was], t.live[was]
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
