package record

import (
	"fmt"
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// View returns the state that objects give: of the jobs as they were written, of the cluster, at time now, version
// events having been folded in complete batches, with room for so many numbers of jobs. Numbers that no job bears are
// of jobs that are done and forgotten: 260 bytes each, and no more for those who lead (BenchmarkForgotten of
// kube/controller), so numbers are not given again. mended says, in words, what a batch cut short, or someone else,
// made it change. Two jobs of one number are an error.
func View(jobs []Job, c Cluster, now sched.Time, version uint64, count int) (v sched.View, mended []string, err error) {
	v = sched.View{Now: now, Version: version, Types: c.Types, Nodes: c.Nodes, Pools: c.Pools,
		GPUs: make([]sched.GPU, len(c.GPUs))}
	for i, g := range c.GPUs {
		v.GPUs[i] = sched.GPU{State: g.State, Quarantined: g.Quarantined, Blamed: g.Blamed, Rests: g.Rests}
	}
	if err := number(&v); err != nil {
		return v, nil, err
	}
	for i := range jobs {
		count = max(count, int(jobs[i].ID)+1)
		v.Now, v.Version = max(v.Now, jobs[i].Job.Settled), max(v.Version, jobs[i].Version)
	}
	v.Jobs = make([]sched.Job, count)
	for i := range v.Jobs {
		v.Jobs[i].State = sched.Done
	}
	m := mender{v: &v, numbers: numbersOf(&v)}
	for i := range jobs {
		if err := m.add(&jobs[i]); err != nil {
			return v, nil, err
		}
	}
	m.mend()
	return v, m.said, nil
}

// number gives each GPU its node.
func number(v *sched.View) error {
	next := 0
	for i := range v.Nodes {
		n := &v.Nodes[i]
		if int(n.First) != next || n.Spec.GPUs < 1 || n.Spec.GPUs > len(v.GPUs)-next {
			return fmt.Errorf("record: node %s has %d GPUs from number %d, want some from %d, of %d in all",
				n.Spec.Name, n.Spec.GPUs, n.First, next, len(v.GPUs))
		}
		for range n.Spec.GPUs {
			v.GPUs[next].Node = sched.NodeID(i)
			next++
		}
	}
	if next != len(v.GPUs) {
		return fmt.Errorf("record: %d GPUs, %d of them of nodes", len(v.GPUs), next)
	}
	return nil
}

// mender puts jobs into a View and sees to it that they go together.
type mender struct {
	v       *sched.View
	numbers numbers
	added   []sched.JobID
	said    []string
}

func (m *mender) say(id sched.JobID, format string, args ...any) {
	m.said = append(m.said, fmt.Sprintf("job %d (%s): ", id, m.v.Jobs[id].Spec.Name)+fmt.Sprintf(format, args...))
}

// add puts a job where its number says.
func (m *mender) add(r *Job) error {
	j := &m.v.Jobs[r.ID]
	if j.Spec != nil {
		return fmt.Errorf("record: jobs %s/%s and %s/%s are both number %d", j.Spec.User, j.Spec.Name, r.Job.Spec.User,
			r.Job.Spec.Name, r.ID)
	}
	*j = r.Job
	m.added = append(m.added, r.ID)
	for _, d := range j.Spec.After {
		if d < 0 || d >= r.ID {
			return fmt.Errorf("record: job %d depends on job %d, want an earlier one", r.ID, d)
		}
	}
	var found bool
	if j.GPUs, found = m.numbers.set(r.GPUs); !found { // its node has gone: so has the attempt
		m.say(r.ID, "its GPUs %v are not there any more", r.GPUs)
		m.forget(j)
	}
	if j.Target, found = m.numbers.set(r.Target); !found {
		m.say(r.ID, "the GPUs %v it was to hold are not there any more", r.Target)
		m.retarget(r.ID, j.GPUs, j.Live)
	}
	if j.Later() != nil {
		later := *j.Later()
		if later.GPUs, found = m.numbers.set(r.Later); found {
			j.SetLater(&later)
		} else {
			j.SetLater(nil)
		}
	}
	return nil
}

// forget ends an attempt of which nothing can be left.
func (m *mender) forget(j *sched.Job) {
	if j.State == sched.Active {
		j.State = sched.Waiting
	}
	j.Attempt, j.Up, j.Live, j.GPUs = sched.Ended, false, sched.Config{}, nil
}

// retarget has job id hold set from now on.
func (m *mender) retarget(id sched.JobID, set []sched.GPUID, c sched.Config) {
	j := &m.v.Jobs[id]
	j.Target, j.Config, j.Trial = slices.Clone(set), c, false
	j.SetLater(nil)
	if len(set) == 0 {
		j.Want = 0
	}
}

// mend has targets that do not go together give way: those of jobs that hold their GPUs come first, then the older
// ones.
func (m *mender) mend() {
	slices.Sort(m.added)
	alone, shared := make([]bool, len(m.v.GPUs)), make([]bool, len(m.v.GPUs))
	take := func(id sched.JobID) bool {
		j := &m.v.Jobs[id]
		exclusive := j.Share == sched.Exclusive
		for _, g := range j.Target {
			if alone[g] || shared[g] && exclusive {
				return false
			}
		}
		for _, g := range j.Target {
			alone[g], shared[g] = exclusive, !exclusive
		}
		return true
	}
	var rest []sched.JobID
	for _, id := range m.added {
		if j := &m.v.Jobs[id]; slices.Equal(j.Target, j.GPUs) && !take(id) {
			m.say(id, "another job has its GPUs")
			m.retarget(id, nil, sched.Config{})
		} else if !slices.Equal(j.Target, j.GPUs) {
			rest = append(rest, id)
		}
	}
	for _, id := range rest {
		j := &m.v.Jobs[id]
		if take(id) {
			continue
		}
		m.say(id, "it cannot have the GPUs it was to hold")
		m.retarget(id, j.GPUs, j.Live)
		if !take(id) {
			m.retarget(id, nil, sched.Config{})
		}
	}
}
