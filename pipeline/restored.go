package pipeline

import (
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// restored is what was loaded, from Load until the first View.
type restored struct {
	is    bool // something was loaded
	dirty bool // something happened since that may change a decision
	stale bool
	list  []sched.JobID
	keys  map[sched.JobID]entry
}

// sort puts list into the order it had when it was saved; jobs that came since are behind.
func (r *restored) sort(list []sched.JobID) {
	at := make(map[sched.JobID]int, len(r.list))
	for i, id := range r.list {
		at[id] = i - len(r.list)
	}
	slices.SortStableFunc(list, func(a, b sched.JobID) int { return at[a] - at[b] })
}
