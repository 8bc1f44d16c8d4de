package manager

import (
	"fmt"
	"strconv"

	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/sched"
)

// waits finds the jobs that others wait for and that exist already.
type waits struct {
	m     *Manager
	known map[string]sched.JobID
}

// find finds them in v, or says which there is not, or can no longer end as is wanted.
func (w *waits) find(v *sched.View, jobs []jobfile.Job) error {
	w.known = make(map[string]sched.JobID)
	for i := range jobs {
		for _, x := range jobs[i].Existing {
			if err := w.one(v, jobs[i].Spec.Name, x); err != nil {
				return err
			}
		}
	}
	return nil
}

// one finds one job, which the job called waiter waits for.
func (w *waits) one(v *sched.View, waiter string, x jobfile.Existing) error {
	id, known := w.known[x.Name]
	if !known {
		n, err := strconv.ParseUint(x.Name, 10, 31)
		if id, known = sched.JobID(n), err == nil && int(n) < len(v.Jobs); !known && err != nil {
			id, known = w.m.Board().Find(x.Name)
		}
	}
	if !known || int(id) >= len(v.Jobs) {
		return fmt.Errorf("%w: job %s is to start after %s, and there is no such job; `trainyard ps --all` lists "+
			"those that are", ErrRefused, waiter, x.Name)
	}
	w.known[x.Name] = id
	j := &v.Jobs[id]
	switch {
	case j.State != sched.Done:
	case x.How == jobfile.AfterOK && j.Outcome != sched.Finished:
		return fmt.Errorf("%w: job %s is to start once job %d has finished, and that is over: %v", ErrRefused, waiter,
			id, j.Outcome)
	case x.How == jobfile.AfterFail && j.Outcome == sched.Finished:
		return fmt.Errorf("%w: job %s is to start once job %d has failed, and that has finished", ErrRefused, waiter,
			id)
	}
	return nil
}

// ids returns the numbers of jobs that were found.
func (w *waits) ids(list []jobfile.Existing) []sched.JobID {
	ids := make([]sched.JobID, len(list))
	for i, x := range list {
		ids[i] = w.known[x.Name]
	}
	return ids
}
