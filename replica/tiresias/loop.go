package tiresias

import (
	"cmp"
	"slices"
)

// Run plays jobs under p until nothing more can happen and returns their outcomes in the order of jobs. It reads its
// arguments only, and is deterministic: jobs submitted together keep their order.
//
// A pass costs O(jobs that run), plus O(jobs of the queue) where a waiting job starts or takes another's place.
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
	for !r.done() && !p.stopped() {
		r.pass()
	}
	return r.outcomes()
}

// pass handles one event: an arrival, an end, both when they tie, or a jump.
func (r *run) pass() {
	before := r.now
	ends, starts := r.next()
	r.end(ends, before)
	r.arrive(starts)
	r.settle()
	r.regroup()
	r.allocate()
	r.countDemoted()
	r.plan()
	r.passes = append(r.passes, r.now)
}

// done is the released condition: waiting jobs alone do not keep the run going.
func (r *run) done() bool { return len(r.arrivals) == 0 && len(r.ending) == 0 }

// arrival is the record of all jobs submitted in the same second.
type arrival struct {
	at   int64
	jobs []*job
	ends []*job // jobs that were to end at this very second when it was last compared; may be stale
}

type run struct {
	Params
	all      []job
	arrivals []arrival
	queues   []queue
	moved    []*job // jobs that change queue in this pass, in order of arrival
	patient  []*job // jobs that wait for promotion, and until the next settling some that wait no more
	ranks    *rankTable
	passes   []int64 // times of all passes so far, for lastOrder
	walk     []*job  // scratch of contest
	unfit    []*job  // scratch of contest

	now    int64
	ending []*job // jobs that end next, all at endAt
	endAt  int64
	jumpAt int64 // next demotion or promotion
}

func newRun(jobs []Job, p Params) *run {
	if err := p.Validate(); err != nil {
		panic(err)
	}
	r := &run{Params: p, all: make([]job, len(jobs)), queues: make([]queue, len(p.Limits)+1), endAt: never,
		jumpAt: never}
	if p.ranked() {
		r.ranks = newRankTable(p.Samples, cmp.Or(p.Delta, DefaultDelta))
	}
	order := make([]*job, len(jobs))
	for i, j := range jobs {
		if err := j.validate(); err != nil {
			panic(err)
		}
		r.all[i] = job{Job: j, Outcome: Outcome{ID: j.ID, Start: -1, End: -1}, left: j.Duration}
		order[i] = &r.all[i]
	}
	r.arrivals = group(order)
	return r
}

// group sorts jobs by submission and cuts them into arrivals.
func group(jobs []*job) (list []arrival) {
	slices.SortStableFunc(jobs, func(a, b *job) int { return cmp.Compare(a.Submit, b.Submit) })
	for i, j := range jobs {
		j.place = i
		if n := len(list); n == 0 || list[n-1].at != j.Submit {
			list = append(list, arrival{at: j.Submit, jobs: jobs[i:i]})
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

// end drops jobs from the system. Their clocks stay as they were at the pass before: the released simulator settles
// no one who ends.
func (r *run) end(jobs []*job, before int64) {
	for _, j := range jobs {
		r.queues[j.queue].drop(j)
		j.settle(before)
		j.Finished, j.End = true, r.now
	}
}

func (r *run) arrive(jobs []*job) {
	for _, j := range jobs {
		j.since = r.now
		r.join(j)
	}
}

// settle notes who is demoted or promoted by now. It forgets patient jobs that are waiting no more.
func (r *run) settle() {
	for i := range r.queues {
		for _, j := range r.queues[i].running {
			if j.limitAt <= r.now {
				r.moved = append(r.moved, j)
			}
		}
	}
	r.patient = slices.DeleteFunc(r.patient, func(j *job) bool {
		if j.running || j.Finished {
			return true
		}
		if j.promoteAt <= r.now {
			r.moved = append(r.moved, j)
		}
		return j.promoteAt <= r.now
	})
}

// regroup takes the moved jobs out of their old queues and puts them into the new ones, in order of arrival. A demoted
// job stops; it is preempted only if it does not start again at once.
func (r *run) regroup() {
	slices.SortFunc(r.moved, func(a, b *job) int { return cmp.Compare(a.place, b.place) })
	for _, j := range r.moved {
		r.queues[j.queue].drop(j)
		if j.running {
			j.queue++ // one level per pass
			r.stop(j)
		} else {
			r.promote(j)
		}
		r.join(j)
	}
}

// join puts j, settled by now, into its queue to wait.
func (r *run) join(j *job) {
	if r.ranks != nil {
		r.settleRank(j)
	}
	r.queues[j.queue].join(j, r.ranks != nil)
}

func (r *run) promote(j *job) {
	j.settle(r.now)
	j.executed, j.waited, j.queue = 0, 0, 0
	j.Promotions++
}

// countDemoted counts the preemptions among the jobs that moved: promoted ones were waiting anyway.
func (r *run) countDemoted() {
	for _, j := range r.moved {
		if !j.running && j.queue > 0 {
			j.Preemptions++
		}
	}
	r.moved = r.moved[:0]
}

// plan finds the next end, with all jobs that share it, and the next jump.
func (r *run) plan() {
	r.ending, r.endAt, r.jumpAt = r.ending[:0], never, never
	for i := range r.queues {
		for _, j := range r.queues[i].running {
			r.planEnd(j)
			if j.jumpFrom < r.jumpAt {
				j.jumpFrom = r.demotionAt(j)
				r.jumpAt = min(r.jumpAt, j.jumpFrom)
			}
		}
	}
	for _, j := range r.patient {
		if !j.running && j.promoteAt > r.now {
			r.jumpAt = min(r.jumpAt, j.promoteAt)
		}
	}
}

func (r *run) planEnd(j *job) {
	if j.endAt < r.endAt {
		r.ending, r.endAt = r.ending[:0], j.endAt
	}
	if j.endAt == r.endAt {
		r.ending = append(r.ending, j)
	}
}

// outcomes are in the order of the trace. Jobs that never ended have waited until now.
func (r *run) outcomes() []Outcome {
	out := make([]Outcome, len(r.all))
	for i := range r.all {
		j := &r.all[i]
		if !j.Finished {
			j.settle(r.now)
		}
		out[i] = j.Outcome
	}
	return out
}
