package tiresias

import (
	"math"
	"slices"
)

// queue is the list of one level of feedback: the jobs that run, then those that wait. List order is part of the
// policy's memory. With ranks, waiting is sorted by rank, and running is when it matters, see run.rerank.
type queue struct {
	running  []*job
	waiting  []*job
	used     int   // GPUs of running
	narrow   int   // no job in waiting is narrower; may be stale, but only too low
	sortedAt int64 // when rerank last sorted running
}

// drop takes j out.
func (q *queue) drop(j *job) {
	if !j.running {
		i := slices.Index(q.waiting, j)
		q.waiting = slices.Delete(q.waiting, i, i+1)
		return
	}
	i := slices.Index(q.running, j)
	q.running = slices.Delete(q.running, i, i+1)
	q.used -= j.GPUs
}

// join puts j, which waits, behind all others, or with ranks behind those it does not outrank.
func (q *queue) join(j *job, ranked bool) {
	i := len(q.waiting)
	for ranked && i > 0 && j.outranks(q.waiting[i-1]) {
		i--
	}
	q.waiting = slices.Insert(q.waiting, i, j)
	q.narrow = min(q.narrow, j.GPUs)
}

// roomy says whether all jobs fit into free GPUs.
func (q *queue) roomy(free int) bool {
	free -= q.used
	for i := 0; i < len(q.waiting) && free >= 0; i++ {
		free -= q.waiting[i].GPUs
	}
	return free >= 0
}

// overtaken says whether a waiting job outranks a running one, once both are sorted.
func (q *queue) overtaken() bool {
	return len(q.waiting) > 0 && len(q.running) > 0 && q.waiting[0].outranks(q.running[len(q.running)-1])
}

// outranks puts the larger index first, then the earlier submission.
func (j *job) outranks(k *job) bool {
	return j.rank > k.rank || j.rank == k.rank && j.Submit < k.Submit
}

// allocate walks the queues and gives GPUs to every job that fits what is left; running jobs that do not fit stop.
//
// The waiting jobs of a queue go behind its running ones, both in their order, only after the walk. This is how the
// released simulator realises "first in, first out by start time".
func (r *run) allocate() {
	free := r.GPUs
	for i := range r.queues {
		q := &r.queues[i]
		contested := q.used > free
		if r.ranks != nil && !q.roomy(free) {
			r.rerank(q)
			contested = contested || q.overtaken()
		}
		if contested {
			r.contest(q, free)
		}
		r.fill(q, free-q.used)
		free -= q.used
	}
}

// contest walks the running jobs of q, and between them the waiting ones that outrank them.
func (r *run) contest(q *queue, free int) {
	r.walk = r.walk[:0]
	rest := q.waiting
	for _, j := range q.running {
		for r.ranks != nil && len(rest) > 0 && rest[0].outranks(j) {
			r.walk, rest = append(r.walk, rest[0]), rest[1:]
		}
		r.walk = append(r.walk, j)
	}
	q.running, q.used = q.running[:0], 0
	unfit := r.unfit[:0]
	for _, j := range r.walk {
		if j.GPUs <= free-q.used {
			r.hold(q, j)
			continue
		}
		if j.running {
			r.stop(j)
			j.Preemptions++
			q.narrow = min(q.narrow, j.GPUs)
		}
		unfit = append(unfit, j)
	}
	unfit = append(unfit, rest...)
	r.unfit, q.waiting = q.waiting, unfit
}

// fill starts the waiting jobs that fit, in order. Those that contest has passed over do not fit now either.
func (r *run) fill(q *queue, free int) {
	if q.narrow > free {
		return
	}
	kept, narrow := q.waiting[:0], math.MaxInt
	for i, j := range q.waiting {
		if free < q.narrow {
			kept, narrow = append(kept, q.waiting[i:]...), q.narrow
			break
		}
		if j.GPUs > free {
			kept, narrow = append(kept, j), min(narrow, j.GPUs)
			continue
		}
		free -= j.GPUs
		r.hold(q, j)
	}
	q.waiting, q.narrow = kept, narrow
}

// hold lets j run behind the running jobs of q.
func (r *run) hold(q *queue, j *job) {
	if !j.running {
		r.start(j)
	}
	q.running = append(q.running, j)
	q.used += j.GPUs
}
