package sched

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

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

// Untied returns a job of Ties that is none of After; None = all are. It takes time in proportion to their numbers.
func (s *JobSpec) Untied() JobID {
	ends := slices.Concat(s.Ties.AfterOK, s.Ties.AfterFail)
	if len(ends) == 0 {
		return None
	}
	after := make(map[JobID]bool, len(s.After))
	for _, d := range s.After {
		after[d] = true
	}
	for _, d := range ends {
		if !after[d] {
			return d
		}
	}
	return None
}

// Misses reports whether s will never start now that job d has ended so. It takes no time where s wants of no job that
// it ends in the other way.
func (s *JobSpec) Misses(d JobID, o Outcome) bool {
	wanted := s.Ties.AfterFail
	if o != Finished {
		wanted = s.Ties.AfterOK
	}
	return slices.Contains(wanted, d)
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

// Tasks returns the jobs of the array whose first task is id, [id, end); false if id is the first task of none.
func (v *View) Tasks(id JobID) (end JobID, ok bool) {
	if int(id) >= len(v.Jobs) {
		return None, false
	}
	a := &v.Jobs[id].Spec.Ties.Array
	return id + JobID(a.Size), a.Size > 0 && a.Place == 0
}

// Task returns the job of the array whose first task is first that its user numbers so; false if there is none.
func (v *View) Task(first JobID, index int32) (id JobID, ok bool) {
	end, ok := v.Tasks(first)
	if !ok {
		return None, false
	}
	n, ok := slices.BinarySearchFunc(v.Jobs[first:min(int(end), len(v.Jobs))], index, func(j Job, index int32) int {
		return cmp.Compare(j.Spec.Ties.Array.Index, index)
	})
	return first + JobID(n), ok
}

// ParseTask reads 12_3, the task numbered 3 of array 12; false if text is no such name.
func ParseTask(text string) (first JobID, index int32, ok bool) {
	a, b, both := strings.Cut(text, "_")
	n, bad := strconv.ParseUint(a, 10, 31)
	i, bad2 := strconv.ParseUint(b, 10, 31)
	return JobID(n), int32(i), both && bad == nil && bad2 == nil
}
