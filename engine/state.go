package engine

import (
	"fmt"
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// State is a fold over the log: the View everybody reads, and what the engine needs beside it. Apply is the only
// method that changes it. All beside the View can be rebuilt from it, see Restore.
type State struct {
	view  sched.View
	seq   uint64
	slots map[string]sched.NodeID // by node name; the latest taker of a slot
	gone  []sched.Bitset          // slots to be taken again, by number of GPUs
	sets  setPool

	dirty   []sched.JobID // jobs whose target and attempt may differ, in order of first mention
	isDirty []bool
	moving  []sched.NodeID // nodes whose target and order differ, and perhaps others, in order of first mention

	dependents map[sched.JobID][]sched.JobID
	alarms     jobHeap       // held jobs by the time they become eligible
	live       int           // jobs not Done
	resting    []sched.GPUID // by rising number: those of which GPU.Rests is set

	due *sched.Later // what was left for the epoch end just folded
}

// NewState returns the empty cluster that a log with header h begins with.
func NewState(h Header) *State {
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

// setPool recycles small sets of GPUs, so that a quiet engine allocates nothing.
type setPool struct{ free [65][][]sched.GPUID }

func (p *setPool) copyOf(set []sched.GPUID) []sched.GPUID {
	n := len(set)
	if n == 0 {
		return nil
	}
	if n < len(p.free) {
		if k := len(p.free[n]); k > 0 {
			c := p.free[n][k-1]
			p.free[n] = p.free[n][:k-1]
			copy(c, set)
			return c
		}
	}
	return append(make([]sched.GPUID, 0, n), set...)
}

func (p *setPool) recycle(set []sched.GPUID) {
	if n := len(set); n > 0 && n < len(p.free) {
		p.free[n] = append(p.free[n], set)
	}
}

// jobHeap is a binary heap of (time, job), earliest first, ties by job.
type jobHeap []jobAt

type jobAt struct {
	at  sched.Time
	job sched.JobID
}

func (a jobAt) before(b jobAt) bool { return a.at < b.at || a.at == b.at && a.job < b.job }

func (h *jobHeap) push(x jobAt) {
	*h = append(*h, x)
	s := *h
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if !s[i].before(s[up]) {
			return
		}
		s[i], s[up] = s[up], s[i]
		i = up
	}
}

func (h *jobHeap) pop() jobAt {
	s := *h
	top, last := s[0], len(s)-1
	s[0] = s[last]
	s = s[:last]
	*h = s
	for i := 0; ; {
		c := 2*i + 1
		if c >= last {
			return top
		}
		if c+1 < last && s[c+1].before(s[c]) {
			c++
		}
		if !s[c].before(s[i]) {
			return top
		}
		s[i], s[c] = s[c], s[i]
		i = c
	}
}

func sameSet(a, b []sched.GPUID) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
