package published

import (
	"cmp"
	"slices"
)

// Run plays jobs under p until nothing more can happen and returns their outcomes in the order of jobs. It reads its
// arguments only, and is deterministic: jobs submitted together keep their order. A pass costs O(jobs in the system).
//
// With a Gittins schedule and a promote knob the rank is off, see Params. Run panics if p or a job is invalid; call
// Params.Validate first where p comes from outside.
//
// Deviation: where the released simulator would wake up at the same second for ever (a limit of about a job's GPUs or
// less), time moves on by one second; see run.demotionAt.
//
// Source: Gu et al., NSDI'19, released simulator, commit 959f9b0, schedules dlas, dlas-gpu*, dlas-gpu-gittins*.
func Run(jobs []Job, p Params) []Outcome {
	r := newRun(jobs, p)
	for !r.done() {
		r.pass()
	}
	return r.outcomes()
}

// pass handles one event: an arrival, an end, both when they tie, or a jump.
func (r *run) pass() {
	ends, starts := r.next()
	r.end(ends)
	r.arrive(starts)
	r.settle()
	r.regroup()
	r.allocate()
	r.runningFirst()
	r.plan()
}

// done is the released condition: waiting jobs alone do not keep the run going.
func (r *run) done() bool { return len(r.arrivals) == 0 && len(r.ending) == 0 }

// job is a Job and its progress. Times in seconds, settled at checked.
type job struct {
	Job
	Outcome
	queue    int
	running  bool
	checked  int64   // time of the last settling
	total    int64   // time run since the start
	executed int64   // time run since the last promotion
	waited   int64   // time waited since the last promotion, counted only after it has run
	rank     float64 // Gittins index, larger first
	rankTo   int64   // service, in GPU-seconds, at which rank changes
}

// arrival is the record of all jobs submitted in the same second.
type arrival struct {
	at   int64
	jobs []*job
	ends []*job // jobs that were to end at this very second when it was last compared; may be stale
}

type run struct {
	Params
	all      []*job
	arrivals []arrival
	runnable []*job   // submitted and not ended, in order of arrival
	queues   [][]*job // runnable jobs by queue; list order is part of the policy's memory
	moved    []*job   // jobs that changed queue in this pass, in order
	waiting  []*job   // scratch of runningFirst
	ranks    *rankTable

	now    int64
	ending []*job // jobs that end next, all at endAt
	endAt  int64
	jumpAt int64 // next demotion or promotion
}

func newRun(jobs []Job, p Params) *run {
	if err := p.Validate(); err != nil {
		panic(err)
	}
	r := &run{Params: p, queues: make([][]*job, len(p.Limits)+1), endAt: never, jumpAt: never}
	if p.ranked() {
		r.ranks = newRankTable(p.Samples, cmp.Or(p.Delta, DefaultDelta))
	}
	states := make([]job, len(jobs))
	for i, j := range jobs {
		if err := j.validate(); err != nil {
			panic(err)
		}
		states[i] = job{Job: j, Outcome: Outcome{ID: j.ID, Start: -1, End: -1}}
		r.all = append(r.all, &states[i])
	}
	r.arrivals = group(r.all)
	return r
}

func group(jobs []*job) (list []arrival) {
	sorted := slices.Clone(jobs)
	slices.SortStableFunc(sorted, func(a, b *job) int { return cmp.Compare(a.Submit, b.Submit) })
	for _, j := range sorted {
		if n := len(list); n == 0 || list[n-1].at != j.Submit {
			list = append(list, arrival{at: j.Submit})
		}
		last := &list[len(list)-1]
		last.jobs = append(last.jobs, j)
	}
	return list
}

// next moves time to the next event and returns the jobs that end and start there. A jump has neither.
//
// The tie quirk: when the next arrival and the next end fall together, the list of ending jobs is written into the
// arrival's record before the jump is compared. If the jump wins, the list stays there until a newer tie replaces it,
// and its jobs end when the arrival is handled, whatever the jump's pass has done to them.
func (r *run) next() (ends, starts []*job) {
	at, arrives := r.endAt, false
	if len(r.arrivals) > 0 && r.arrivals[0].at <= r.endAt {
		first := &r.arrivals[0]
		if first.at == r.endAt {
			first.ends = slices.Clone(r.ending)
		}
		at, arrives = first.at, true
	}
	if at > r.jumpAt {
		r.now = r.jumpAt
		return nil, nil
	}
	r.now = at
	if !arrives {
		return r.ending, nil
	}
	first := r.arrivals[0]
	r.arrivals = r.arrivals[1:]
	return first.ends, first.jobs
}

// end drops jobs from the system without settling their clocks.
func (r *run) end(jobs []*job) {
	if len(jobs) == 0 {
		return
	}
	for _, j := range jobs {
		j.Finished, j.End = true, r.now
	}
	gone := func(j *job) bool { return j.Finished }
	r.runnable = slices.DeleteFunc(r.runnable, gone)
	for q := range r.queues {
		r.queues[q] = slices.DeleteFunc(r.queues[q], gone)
	}
}

func (r *run) arrive(jobs []*job) {
	for _, j := range jobs {
		j.checked = r.now
		r.settleRank(j)
	}
	r.runnable = append(r.runnable, jobs...)
	r.queues[0] = append(r.queues[0], jobs...)
}

// settle brings the clocks of all jobs up to now, in order of arrival, and notes who changes queue.
func (r *run) settle() {
	for _, j := range r.runnable {
		dt := r.now - j.checked
		j.checked = r.now
		if j.running {
			r.settleRunning(j, dt)
		} else {
			r.settleWaiting(j, dt)
		}
	}
}

func (r *run) settleRunning(j *job, dt int64) {
	j.total += dt
	j.executed += dt
	if r.demotable(j) && r.service(j) >= r.Limits[j.queue] {
		j.queue++ // one level per pass
		r.moved = append(r.moved, j)
	}
	r.settleRank(j)
}

func (r *run) settleWaiting(j *job, dt int64) {
	j.Pending += dt
	if j.executed > 0 {
		j.waited += dt
	}
	if r.promotable(j) && j.waited >= r.patience(j) {
		j.executed, j.waited, j.queue = 0, 0, 0
		j.Promotions++
		r.moved = append(r.moved, j)
	}
}

func (r *run) settleRank(j *job) {
	if r.ranks != nil && r.service(j) >= j.rankTo {
		j.rank, j.rankTo = r.ranks.at(r.service(j))
	}
}

func (r *run) demotable(j *job) bool { return j.queue < len(r.Limits) }

func (r *run) promotable(j *job) bool { return r.promotes() && j.queue > 0 && j.executed > 0 }

// width turns seconds into the unit of the limits: 1 for dlas, GPUs otherwise.
func (r *run) width(j *job) int64 {
	if r.Seconds {
		return 1
	}
	return int64(j.GPUs)
}

// service is what is compared with the limits: executed time since the last promotion, times the width.
func (r *run) service(j *job) int64 { return j.executed * r.width(j) }

// patience is the waiting time, in seconds, after which j is promoted.
func (r *run) patience(j *job) int64 {
	if s := float64(j.executed) * r.Knob; s < maxService {
		return int64(s)
	}
	return maxService
}

// regroup takes the moved jobs out of their old queues and appends them to the new ones, in order; then sorts by rank.
func (r *run) regroup() {
	if len(r.moved) > 0 {
		for q := range r.queues {
			r.queues[q] = slices.DeleteFunc(r.queues[q], func(j *job) bool { return j.queue != q })
		}
		for _, j := range r.moved {
			r.queues[j.queue] = append(r.queues[j.queue], j)
		}
		r.moved = r.moved[:0]
	}
	if r.ranks != nil {
		for _, list := range r.queues {
			slices.SortStableFunc(list, byRank)
		}
	}
}

// byRank puts the larger index first, then the earlier submission.
func byRank(a, b *job) int {
	if a.rank != b.rank {
		return cmp.Compare(b.rank, a.rank)
	}
	return cmp.Compare(a.Submit, b.Submit)
}

// allocate walks the queues and gives GPUs to every job that fits what is left; running jobs that do not fit stop.
func (r *run) allocate() {
	free := r.GPUs
	for _, list := range r.queues {
		for _, j := range list {
			fits := j.GPUs <= free
			if fits {
				free -= j.GPUs
			}
			r.set(j, fits)
		}
	}
}

func (r *run) set(j *job, running bool) {
	if j.running && !running {
		j.Preemptions++
	}
	if running && j.Start < 0 {
		j.Start = r.now
	}
	j.running = running
}

// runningFirst moves the waiting jobs of each queue behind its running ones, both in their order. This is how the
// released simulator realises "first in, first out by start time".
func (r *run) runningFirst() {
	for _, list := range r.queues {
		r.waiting = r.waiting[:0]
		n := 0
		for _, j := range list {
			if !j.running {
				r.waiting = append(r.waiting, j)
				continue
			}
			list[n] = j
			n++
		}
		copy(list[n:], r.waiting)
	}
}

// plan finds the next end, with all jobs that share it, and the next jump.
func (r *run) plan() {
	r.ending, r.endAt, r.jumpAt = r.ending[:0], never, never
	for _, j := range r.runnable {
		if j.running {
			r.planEnd(j)
			r.jumpAt = min(r.jumpAt, r.demotionAt(j))
		} else if r.promotable(j) && r.patience(j) > j.waited {
			r.jumpAt = min(r.jumpAt, r.now+r.patience(j)-j.waited)
		}
	}
}

func (r *run) planEnd(j *job) {
	at := r.now + j.Duration - j.total
	if at < r.endAt {
		r.ending, r.endAt = r.ending[:0], at
	}
	if at == r.endAt {
		r.ending = append(r.ending, j)
	}
}

// demotionAt is when the released simulator looks again whether j, which runs, has reached its limit. It takes seconds
// from GPU-seconds; right would be ceil(limit/width) − executed. The result is exact for width 1 or a job that has not
// run yet, else late, or too early by the rounding down.
//
// Deviation: for a job below its limit a result of now would repeat this pass for ever, so it is one second later. A
// job at or above the limit of its new queue does fall again at now, as released.
func (r *run) demotionAt(j *job) int64 {
	if !r.demotable(j) {
		return never
	}
	limit := r.Limits[j.queue]
	at := r.now + (limit-j.executed)/r.width(j)
	if at <= r.now && r.service(j) < limit {
		return r.now + 1
	}
	return at
}

func (r *run) outcomes() []Outcome {
	out := make([]Outcome, len(r.all))
	for i, j := range r.all {
		out[i] = j.Outcome
	}
	return out
}
