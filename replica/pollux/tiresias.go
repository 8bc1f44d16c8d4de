package pollux

import "slices"

// queueLimit is the attained service from which on a job is in the second queue, in GPU-seconds.
const queueLimit = 16 * 3600

// queues is the artifact's Tiresias: two queues by attained service, FIFO inside in the order of entry, no promotion.
// Jobs take what they ask for while it is there, and a job that does not fit is passed over. Time counts from a
// decision to the next for jobs that hold GPUs, restarts included.
type queues struct {
	lists    [2][]*job
	entered  []bool
	executed []int64 // seconds with GPUs, by job
	checked  []int64 // when executed was brought up to date
}

func newQueues(jobs int) *queues {
	return &queues{entered: make([]bool, jobs), executed: make([]int64, jobs), checked: make([]int64, jobs)}
}

func (q *queues) divide(r *run) ([][]share, error) {
	for i := range q.lists {
		q.lists[i] = slices.DeleteFunc(q.lists[i], (*job).done)
	}
	for _, j := range r.active {
		q.update(j, r.now)
	}
	left := r.nodes * r.GPUsPerNode
	runs := make([]bool, len(r.all))
	for _, list := range q.lists {
		for _, j := range list {
			if j.GPUs <= left {
				runs[j.index] = true
				left -= j.GPUs
			}
		}
	}
	return q.place(r, runs), nil
}

// update lets a new job in, and counts the time of those that run.
func (q *queues) update(j *job, now int64) {
	i := j.index
	if !q.entered[i] {
		q.entered[i] = true
		q.lists[0] = append(q.lists[0], j)
	}
	if j.gpus > 0 {
		q.executed[i] += now - q.checked[i]
		if at := slices.Index(q.lists[0], j); at >= 0 && q.executed[i]*int64(j.GPUs) >= queueLimit {
			q.lists[0] = slices.Delete(q.lists[0], at, at+1)
			q.lists[1] = append(q.lists[1], j)
		}
	}
	q.checked[i] = now
}

// place keeps what running jobs hold and serves the others in the order of the queues.
func (q *queues) place(r *run, runs []bool) [][]share {
	free := r.freeGPUs(func(i int) bool { return runs[r.active[i].index] })
	held := make([][]share, len(r.all))
	for _, list := range q.lists {
		for _, j := range list {
			switch {
			case !runs[j.index]:
			case j.gpus > 0:
				held[j.index] = j.held
			default:
				held[j.index] = take(free, j.GPUs)
			}
		}
	}
	of := make([][]share, len(r.active))
	for i, j := range r.active {
		of[i] = held[j.index]
	}
	return of
}
