package engine

import (
	"fmt"
	"slices"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/internal/arena"
	"github.com/trainyard/trainyard/sched"
)

// State is a fold over the log: the View everybody reads, and what the engine needs in addition to it. Apply is the
// only method that changes it. All but the View can be rebuilt from it, see Restore.
type State struct {
	view  sched.View
	seq   uint64
	slots map[string]sched.NodeID // by node name; the latest taker of a slot
	gone  []sched.Bitset          // slots to be taken again, by number of GPUs
	sets  arena.Sets

	dirty   []sched.JobID // jobs whose target and attempt may differ, in order of first mention
	isDirty []bool
	moving  []sched.NodeID // nodes whose target and order differ, and perhaps others, in order of first mention

	dependents map[sched.JobID][]sched.JobID
	alarms     arena.JobHeap // held jobs by the time they become eligible
	live       int           // jobs not Done
	resting    []sched.GPUID // by rising number: those of which GPU.Rests is set

	due *sched.Later // what was left for the epoch end just folded
}

// NewState returns the empty cluster that a log with header h starts with.
func NewState(h eventlog.Header) *State {
	pools := make([]sched.Pool, len(h.Pools))
	for i := range pools {
		pools[i] = sched.Pool{Spec: h.Pools[i], Price: h.Pools[i].Price}
	}
	return &State{
		view:       sched.View{ShareLimit: max(h.ShareLimit, 1), Types: h.Types, Pools: pools},
		slots:      make(map[string]sched.NodeID),
		dependents: make(map[sched.JobID][]sched.JobID),
	}
}

// Expect makes room for so many jobs, to spare copies as they arrive.
func (s *State) Expect(jobs int) {
	s.view.Jobs = slices.Grow(s.view.Jobs, jobs)
	s.isDirty = slices.Grow(s.isDirty, jobs)
}

// View returns the state for reading. It stays the same object for the life of s.
func (s *State) View() *sched.View { return &s.view }

// Live returns the number of jobs that have arrived and are not done.
func (s *State) Live() int { return s.live }

// markDirty has job j looked at by the next Reconcile.
func (s *State) markDirty(j sched.JobID) {
	if !s.isDirty[j] {
		s.isDirty[j] = true
		s.dirty = append(s.dirty, j)
	}
}

// broken panics with what a reader of a crash needs: an event contradicts the state, so the log or a driver is wrong.
func (s *State) broken(e *sched.Event, format string, args ...any) {
	panic(fmt.Sprintf("engine: version %d, event %d %v of job %d attempt %d at %v: %s",
		s.view.Version, e.Seq, e.Kind, e.Job, e.Attempt, e.Time, fmt.Sprintf(format, args...)))
}
