package pipeline

import (
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Stages is a system as a value: the stages it is made of and how they are walked. Only Order and Place must be set.
type Stages struct {
	Order sched.Orderer
	Place sched.Placer
	// Class, if set, ranks jobs before Order does.
	Class sched.Classer
	// ClassTakes lets a job take the GPUs of one that runs because its class is higher; else Order alone says so, and
	// none of a lower class takes them.
	ClassTakes bool
	Admit      sched.Admitter // nil: skip what does not fit
	// Preempt lets a waiting job take the GPUs of lower-ranked ones, lowest first.
	Preempt bool
	// MinRun protects an attempt from being preempted for so long after its start.
	MinRun time.Duration
	// Guard, if set, protects attempts as well, for as long as it says. It is Learn that has it hear events.
	Guard sched.Guard
	// Unsaved says who is not stopped, moved or resized at all.
	Unsaved sched.Unsaved
	// LossRail protects an attempt until it has done twice what its job lost to others.
	LossRail bool
	// KeepFree keeps GPUs for the first job that waits for jobs that are not stopped.
	KeepFree bool
	// Quantum has order looked at again at every multiple of it while jobs run and jobs wait; 0 = at events only.
	// Orders whose keys grow while jobs run need one, else nothing would ever preempt between events.
	Quantum time.Duration
	// Round restricts decisions to multiples of it; 0 = at every event.
	Round time.Duration
	// Allocate, if set, decides by demand alone which jobs hold GPUs and how many; those that are granted nothing, or
	// another width than they have, give up what they hold, then newcomers are placed in the order of the grants.
	Allocate sched.Allocator
	// Replace has all that are not protected give up what they hold before the grants are placed: jobs move to whatever
	// the placement finds best now.
	Replace bool
	// ReplaceEvery has Replace do so only in the first round at or after each multiple of it; in the others all keep
	// what they hold. 0 = in every round.
	ReplaceEvery time.Duration
	// Move, if set, is asked before a job moves although no one has taken its GPUs, and, with Replace, before a job
	// takes GPUs of another that would then have to move; nil = they do.
	Move sched.Mover
	// Restless has the grid of Round or Quantum hold although no job waits, while any holds GPUs: what Allocate knows
	// of jobs changes with time.
	Restless bool
	// KeepOrder breaks ties of Key by the order of the previous walk instead of JobID. Such a system always walks the
	// whole list.
	KeepOrder bool
	// Block lets a job that could not even fit an empty cluster block those behind it, where a misfit does.
	Block bool
	// UserLimit is the number of GPUs one user may hold at a time; 0 = no limit. A job over it is passed over.
	UserLimit int
	// ShareLimit is how many jobs a part may put on a GPU; 0 = 1.
	ShareLimit int
	// WholePass walks all jobs, sorted, instead of the indices: the reference twin.
	WholePass bool
	// Parts are the estimators that stages share, and what provides nodes and power; see Decider.
	Parts
}

// Decider returns the system that s lists, its parts included.
func (s Stages) Decider() sched.Decider { return Compose(New(s), s.Parts) }

// deciding lists the stages that may learn, remember and revise, in the order in which their memory is saved.
func (s *Stages) deciding() []any { return []any{s.Order, s.Place, s.Admit, s.Allocate} }

// whole reports whether walks go through the sorted list of all jobs instead of the indices.
func (s *Stages) whole() bool { return s.WholePass || s.KeepOrder || s.Allocate != nil }

// byOrder reports whether a job takes the GPUs of one that runs only where Order, too, has it first.
func (s *Stages) byOrder() bool {
	return s.Class != nil && !s.ClassTakes && s.Preempt && s.Allocate == nil
}

// least returns the fewest GPUs with which job id may start.
func (s *Stages) least(v *sched.View, id sched.JobID) int {
	if s.Allocate != nil {
		return int(s.Unsaved.Widths(&v.Jobs[id]).Min)
	}
	return width(v, id)
}

// shape returns what decides whether job id, of that user, fits.
func (s *Stages) shape(v *sched.View, id sched.JobID, user int32) shapeKey {
	spec := v.Jobs[id].Spec
	k := shapeKey{gpus: int32(s.least(v, id)), types: spec.Types, cpus: spec.CPUs, memory: spec.MemoryGB}
	if s.UserLimit > 0 {
		k.user = user
	}
	if o, ok := s.Order.(sched.Shaper); ok {
		k.order = o.Shape(v, id)
	}
	if p, ok := s.Place.(sched.Shaper); ok {
		k.place = p.Shape(v, id)
	}
	return k
}

// width returns the GPUs that job id asks for, which is what it gets where nothing allocates.
func width(v *sched.View, id sched.JobID) int { return int(v.Jobs[id].Spec.GPUs.Want) }
