package manager

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/sched"
)

// waits finds the jobs that others wait for and that exist already.
type waits struct {
	m     *Manager
	known map[string][]sched.JobID
}

// mostWaits is how many pairs of a job and one that it waits for may be submitted at once.
const mostWaits = 1_000_000

// find finds them in v, or says which there is not, or can no longer end as is wanted.
func (w *waits) find(v *sched.View, jobs []jobfile.Job) error {
	w.known = make(map[string][]sched.JobID)
	pairs := 0
	for i := range jobs {
		for _, x := range jobs[i].Existing {
			if err := w.meet(v, jobs[i].Spec.Name, x); err != nil {
				return err
			}
			if pairs += len(w.known[x.Name]); pairs > mostWaits {
				return fmt.Errorf("%w: %d jobs wait for more than %d others in all: let them wait for one job that "+
					"waits for those", ErrRefused, len(jobs), mostWaits)
			}
		}
	}
	return nil
}

// meet finds the jobs that x names, all tasks of an array by the number of the first, and checks that each may still
// end as the job called waiter wants.
func (w *waits) meet(v *sched.View, waiter string, x jobfile.Existing) error {
	ids, found := w.known[x.Name]
	if !found {
		if ids = w.named(v, x.Name); len(ids) == 0 {
			return fmt.Errorf("%w: job %s is to start after %s, and there is no such job; `trainyard ps --all` lists "+
				"those that are", ErrRefused, waiter, x.Name)
		}
		w.known[x.Name] = ids
	}
	for _, id := range ids {
		if err := meets(v, id, waiter, x.How); err != nil {
			return err
		}
	}
	return nil
}

// named returns the jobs of a name: a number, a name, or a task of an array. The first task names its array, and so
// does the name that its tasks have in common, where no job has it: the latest array of that name.
func (w *waits) named(v *sched.View, name string) []sched.JobID {
	if first, index, task := sched.ParseTask(name); task {
		if id, known := v.Task(first, index); known {
			return []sched.JobID{id}
		}
	}
	n, bad := strconv.ParseUint(name, 10, 31)
	id, whole := sched.JobID(n), bad == nil
	known := whole
	if !known {
		id, known = w.m.Board().Find(name)
	}
	if !known {
		id, known = arrayNamed(v, name)
		whole = known
	}
	if !known || int(id) >= len(v.Jobs) {
		return nil
	}
	ids := []sched.JobID{id}
	if end, array := v.Tasks(id); array && whole {
		for id++; id < end; id++ {
			ids = append(ids, id)
		}
	}
	return ids
}

// arrayNamed returns the first task of the latest array of a name; false if none has it.
func arrayNamed(v *sched.View, name string) (first sched.JobID, found bool) {
	for id := sched.JobID(len(v.Jobs)) - 1; id >= 0; id-- {
		spec := v.Jobs[id].Spec
		a := &spec.Ties.Array
		if a.Size == 0 {
			continue
		}
		id = a.First(id)
		if index, is := strings.CutPrefix(spec.Name, name+"_"); is && index == strconv.Itoa(int(a.Index)) {
			return id, true
		}
	}
	return sched.None, false
}

// meets returns why a job can no longer end as another wants.
func meets(v *sched.View, id sched.JobID, waiter, how string) error {
	j := &v.Jobs[id]
	switch {
	case j.State != sched.Done:
	case how == jobfile.AfterOK && j.Outcome != sched.Finished:
		return fmt.Errorf("%w: job %s is to start once job %d has finished, and that is over: %v", ErrRefused, waiter,
			id, j.Outcome)
	case how == jobfile.AfterFail && j.Outcome == sched.Finished:
		return fmt.Errorf("%w: job %s is to start once job %d has failed, and that has finished", ErrRefused, waiter,
			id)
	}
	return nil
}

// ids returns the numbers of the jobs that were found, those of each of the list.
func (w *waits) ids(list []jobfile.Existing) [][]sched.JobID {
	ids := make([][]sched.JobID, len(list))
	for i, x := range list {
		ids[i] = w.known[x.Name]
	}
	return ids
}
