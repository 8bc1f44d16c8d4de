package sched

import "fmt"

// Ties are what is between a job and others, in addition to JobSpec.After. The zero value: nothing is.
type Ties struct {
	// jobs of JobSpec.After that must end so: of AfterOK each must have finished, of AfterFail none. A job whose ties
	// can no longer be met is rejected.
	AfterOK, AfterFail []JobID `json:",omitempty"`

	Array Array `json:",omitzero"`
}

// Array says that a job is a task of an array: jobs of consecutive numbers that are submitted together. The zero value:
// it is none.
type Array struct {
	Place  int32 // of the task, from 0: the job of its number less Place is the first
	Index  int32 // its user's number of it, which grows with Place; >= 0
	Size   int32 // tasks in all
	AtOnce int32 // so many at most are neither done nor held back; 0 = all
}

// MaxArray is how many tasks an array may have.
const MaxArray = 100_000

// First returns the first task of the array that job id is a task of.
func (a *Array) First(id JobID) JobID { return id - JobID(a.Place) }

// Limited reports whether not all tasks may run at once.
func (a *Array) Limited() bool { return a.AtOnce > 0 && a.AtOnce < a.Size }

// validate returns the first thing wrong with t.
func (t *Ties) validate() error {
	a := &t.Array
	if *a != (Array{}) && (a.Size < 1 || a.Size > MaxArray || a.Place < 0 || a.Place >= a.Size || a.Index < a.Place ||
		a.AtOnce < 0) {
		return fmt.Errorf("task %d, number %d, of an array of %d, %d at once, want 0 <= task < size <= %d, and "+
			"number >= task", a.Place, a.Index, a.Size, a.AtOnce, MaxArray)
	}
	return nil
}

// Unmeetable returns a job that ended otherwise than job s wants, so that s will never start; None = there is none.
func (s *JobSpec) Unmeetable(v *View) JobID {
	for _, d := range s.Ties.AfterOK {
		if v.Jobs[d].State == Done && v.Jobs[d].Outcome != Finished {
			return d
		}
	}
	for _, d := range s.Ties.AfterFail {
		if v.Jobs[d].State == Done && v.Jobs[d].Outcome == Finished {
			return d
		}
	}
	return None
}
