package engine

import (
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// taskLines are the tasks of arrays that wait for other tasks to be done, by the first task of each array, in the order
// of their numbers. Each counts in Job.BlockedBy.
type taskLines map[sched.JobID][]sched.JobID

// queue puts job id, which is j, in the line of its array, where as many tasks as may run at once came before it. Tasks
// of an array arrive at one moment.
func (l taskLines) queue(j *sched.Job, id sched.JobID) {
	if a := &j.Spec.Ties.Array; a.Limited() && a.Place >= a.AtOnce {
		l[a.First(id)] = append(l[a.First(id)], id)
		j.SetBlockedBy(j.BlockedBy() + 1)
	}
}

// pass takes the turn of job id, which is j and done, and returns the next of its array in line; false = no one gets
// it. Tasks that are done before their turn stay in line: to take them out one by one takes time by the square of their
// number.
func (l taskLines) pass(v *sched.View, j *sched.Job, id sched.JobID) (next sched.JobID, passes bool) {
	a := &j.Spec.Ties.Array
	if !a.Limited() {
		return sched.None, false
	}
	first := a.First(id)
	line := l[first]
	if _, waits := slices.BinarySearch(line, id); waits { // it had no turn, and is passed over when it is next
		return sched.None, false
	}
	for len(line) > 0 && v.Jobs[line[0]].State == sched.Done {
		line = line[1:]
	}
	if len(line) == 0 {
		delete(l, first)
		return sched.None, false
	}
	l[first] = line[1:]
	return line[0], true
}
