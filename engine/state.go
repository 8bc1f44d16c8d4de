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
	slots slots
	facts []nodeFacts // by NodeID
	odd   int         // GPUs that are, of all nodes
	rests rests
	sets  arena.Sets
	few   sched.Seldoms

	work   worklist       // jobs whose target and attempt may differ
	moving []sched.NodeID // nodes whose target and order differ, and perhaps others, in order of first mention

	dependents map[sched.JobID][]sched.JobID
	lines      taskLines
	alarms     arena.JobHeap // held jobs by the time they become eligible
	live       int           // jobs not Done

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
		slots:      slots{byName: make(map[string]sched.NodeID)},
		dependents: make(map[sched.JobID][]sched.JobID),
		lines:      make(taskLines),
	}
}

// Expect makes room for so many jobs, to spare copies as they arrive.
func (s *State) Expect(jobs int) {
	s.view.Jobs = slices.Grow(s.view.Jobs, jobs)
	s.work.listed = slices.Grow(s.work.listed, jobs)
}

// View returns the state for reading. It stays the same object for the life of s.
func (s *State) View() *sched.View { return &s.view }

// worklist lists jobs for the next Reconcile, each once.
type worklist struct {
	jobs   []sched.JobID // in order of first mention
	listed []bool        // by job
}

// mark has job j looked at.
func (w *worklist) mark(j sched.JobID) {
	if !w.listed[j] {
		w.listed[j] = true
		w.jobs = append(w.jobs, j)
	}
}

// broken panics with what a reader of a crash needs: an event contradicts the state, so the log or a driver is wrong.
func broken(v *sched.View, e *sched.Event, format string, args ...any) {
	panic(fmt.Sprintf("engine: version %d, event %d %v of job %d attempt %d at %v: %s",
		v.Version, e.Seq, e.Kind, e.Job, e.Attempt, e.Time, fmt.Sprintf(format, args...)))
}
