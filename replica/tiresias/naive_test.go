package tiresias

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// The naive twin of Run restates the loop of the released simulator line by line: it settles every job in the system at
// every pass, keeps one list per queue and sorts it again.

// pass handles one event: an arrival, an end, both when they tie, or a jump.
func (r *naiveRun) pass() {
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
func (r *naiveRun) done() bool { return len(r.arrivals) == 0 && len(r.ending) == 0 }

// naiveJob is a Job and its progress. Times in seconds, settled at checked.
type naiveJob struct {
	Job
	Outcome
	queue    int
	running  bool
	checked  int64   // time of the last settling
	total    int64   // time run since the start
	executed int64   // time run since the last promotion
	waited   int64   // time waited since the last promotion, counted only after it has run
	rank     float64 // Gittins index, larger first
}

// naiveArrival is the record of all jobs submitted in the same second.
type naiveArrival struct {
	at   int64
	jobs []*naiveJob
	ends []*naiveJob // jobs that were to end at this very second when it was last compared; may be stale
}

type naiveRun struct {
	Params
	all      []*naiveJob
	arrivals []naiveArrival
	runnable []*naiveJob   // submitted and not ended, in order of arrival
	queues   [][]*naiveJob // runnable jobs by queue; list order is part of the policy's memory
	moved    []*naiveJob   // jobs that changed queue in this pass, in order
	waiting  []*naiveJob   // scratch of runningFirst
	ranks    *rankTable

	now    int64
	ending []*naiveJob // jobs that end next, all at endAt
	endAt  int64
	jumpAt int64 // next demotion or promotion
}

func newNaiveRun(jobs []Job, p Params) *naiveRun {
	if err := p.Validate(); err != nil {
		panic(err)
	}
	r := &naiveRun{Params: p, queues: make([][]*naiveJob, len(p.Limits)+1), endAt: never, jumpAt: never}
	if p.ranked() {
		r.ranks = newRankTable(p.Samples, cmp.Or(p.Delta, DefaultDelta))
	}
	states := make([]naiveJob, len(jobs))
	for i, j := range jobs {
		if err := j.validate(); err != nil {
			panic(err)
		}
		states[i] = naiveJob{Job: j, Outcome: Outcome{ID: j.ID, Start: -1, End: -1}}
		r.all = append(r.all, &states[i])
	}
	r.arrivals = naiveGroup(r.all)
	return r
}

func naiveGroup(jobs []*naiveJob) (list []naiveArrival) {
	sorted := slices.Clone(jobs)
	slices.SortStableFunc(sorted, func(a, b *naiveJob) int { return cmp.Compare(a.Submit, b.Submit) })
	for _, j := range sorted {
		if n := len(list); n == 0 || list[n-1].at != j.Submit {
			list = append(list, naiveArrival{at: j.Submit})
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
func (r *naiveRun) next() (ends, starts []*naiveJob) {
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
func (r *naiveRun) end(jobs []*naiveJob) {
	if len(jobs) == 0 {
		return
	}
	for _, j := range jobs {
		j.Finished, j.End = true, r.now
	}
	gone := func(j *naiveJob) bool { return j.Finished }
	r.runnable = slices.DeleteFunc(r.runnable, gone)
	for q := range r.queues {
		r.queues[q] = slices.DeleteFunc(r.queues[q], gone)
	}
}

func (r *naiveRun) arrive(jobs []*naiveJob) {
	for _, j := range jobs {
		j.checked = r.now
		r.settleRank(j)
	}
	r.runnable = append(r.runnable, jobs...)
	r.queues[0] = append(r.queues[0], jobs...)
}

// settle brings the clocks of all jobs up to now, in order of arrival, and notes who changes queue.
func (r *naiveRun) settle() {
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

func (r *naiveRun) settleRunning(j *naiveJob, dt int64) {
	j.total += dt
	j.executed += dt
	if r.demotable(j) && r.service(j) >= r.Limits[j.queue] {
		j.queue++ // one level per pass
		r.moved = append(r.moved, j)
	}
	r.settleRank(j)
}

func (r *naiveRun) settleWaiting(j *naiveJob, dt int64) {
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

func (r *naiveRun) settleRank(j *naiveJob) {
	if r.ranks != nil {
		j.rank, _ = r.ranks.at(r.service(j))
	}
}

func (r *naiveRun) demotable(j *naiveJob) bool { return j.queue < len(r.Limits) }

func (r *naiveRun) promotable(j *naiveJob) bool { return r.promotes() && j.queue > 0 && j.executed > 0 }

// width turns seconds into the unit of the limits: 1 for dlas, GPUs otherwise.
func (r *naiveRun) width(j *naiveJob) int64 {
	if r.Seconds {
		return 1
	}
	return int64(j.GPUs)
}

// service is what is compared with the limits: executed time since the last promotion, times the width.
func (r *naiveRun) service(j *naiveJob) int64 { return j.executed * r.width(j) }

// patience is the waiting time, in seconds, after which j is promoted.
func (r *naiveRun) patience(j *naiveJob) int64 {
	if s := float64(j.executed) * r.Knob; s < maxService {
		return int64(s)
	}
	return maxService
}

// regroup takes the moved jobs out of their old queues and appends them to the new ones, in order; then sorts by rank.
func (r *naiveRun) regroup() {
	if len(r.moved) > 0 {
		for q := range r.queues {
			r.queues[q] = slices.DeleteFunc(r.queues[q], func(j *naiveJob) bool { return j.queue != q })
		}
		for _, j := range r.moved {
			r.queues[j.queue] = append(r.queues[j.queue], j)
		}
		r.moved = r.moved[:0]
	}
	if r.ranks != nil {
		for _, list := range r.queues {
			slices.SortStableFunc(list, naiveByRank)
		}
	}
}

// naiveByRank puts the larger index first, then the earlier submission.
func naiveByRank(a, b *naiveJob) int {
	if a.rank != b.rank {
		return cmp.Compare(b.rank, a.rank)
	}
	return cmp.Compare(a.Submit, b.Submit)
}

// allocate walks the queues and gives GPUs to every job that fits what is left; running jobs that do not fit stop.
func (r *naiveRun) allocate() {
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

func (r *naiveRun) set(j *naiveJob, running bool) {
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
func (r *naiveRun) runningFirst() {
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
func (r *naiveRun) plan() {
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

func (r *naiveRun) planEnd(j *naiveJob) {
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
func (r *naiveRun) demotionAt(j *naiveJob) int64 {
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

func (r *naiveRun) outcomes() []Outcome {
	out := make([]Outcome, len(r.all))
	for i, j := range r.all {
		out[i] = j.Outcome
	}
	return out
}

// naiveRound is roundHalfAway in exact arithmetic.
func naiveRound(x float64, scale int64) float64 {
	scaled := new(big.Rat).Mul(new(big.Rat).SetFloat64(x), big.NewRat(scale, 1))
	scaled.Add(scaled, big.NewRat(1, 2))
	whole := new(big.Int).Quo(scaled.Num(), scaled.Denom())
	rounded, _ := new(big.Rat).SetFrac(whole, big.NewInt(scale)).Float64()
	return rounded
}

// Ensure that rounding agrees with exact arithmetic on fractions as the index divides them, and around exact halves.
func TestRoundExactly(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 5))
	check := func(x float64, scale int64) {
		if got, want := roundHalfAway(x, float64(scale)), naiveRound(x, scale); got != want {
			t.Fatalf("round(%v) to 1/%d = %v, want %v", x, scale, got, want)
		}
	}
	for range 30_000 {
		n, e := 1+rnd.Int64N(2000), 1+rnd.Int64N(1<<rnd.IntN(41))
		p := float64(rnd.Int64N(n+1)) / float64(n)
		check(p, 1e5)
		check(p*1e6/float64(e), 1e4)
		half := (float64(rnd.IntN(1<<20)) + 0.5) / 1e4
		check(half, 1e4)
		check(math.Nextafter(half, 0), 1e4)
		check(math.Nextafter(half, 1e9), 1e4)
		check(math.Ldexp(float64(rnd.IntN(1<<30)), -rnd.IntN(20)), 1e4)
	}
}

// listed reports each job of each queue, in order, whether it runs.
func (r *naiveRun) listed() (ids []string) {
	for q, list := range r.queues {
		for _, j := range list {
			ids = append(ids, fmt.Sprint(q, j.Job.ID, j.running))
		}
	}
	return ids
}

// listed sorts the queues first, which Run leaves for later.
func (r *run) listed() (ids []string) {
	for q := range r.queues {
		if r.ranks != nil {
			r.rerank(&r.queues[q])
		}
		for _, j := range slices.Concat(r.queues[q].running, r.queues[q].waiting) {
			ids = append(ids, fmt.Sprint(q, j.Job.ID, j.running))
		}
	}
	return ids
}

// Ensure that Run and its naive twin go through the same passes, with the same lists after each, to the same outcomes.
// With ranks the lists are looked at only now and then: to look is to sort.
func TestNaiveTwin(t *testing.T) {
	for seed := range uint64(3000) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		jobs, p := twinWorkload(rnd)
		r, naive := newRun(jobs, p), newNaiveRun(jobs, p)
		for passes := 0; !naive.done(); passes++ {
			if r.done() {
				t.Fatalf("seed %d: done after %d passes, twin is not; %+v", seed, passes, p)
			}
			r.pass()
			naive.pass()
			if r.now != naive.now || r.endAt != naive.endAt || r.jumpAt != naive.jumpAt {
				t.Fatalf("seed %d: pass %d: at %d, end %d, jump %d; twin at %d, end %d, jump %d; %+v", seed, passes,
					r.now, r.endAt, r.jumpAt, naive.now, naive.endAt, naive.jumpAt, p)
			}
			if r.ranks != nil && passes%(1+int(seed%40)) > 0 {
				continue
			}
			if got, want := r.listed(), naive.listed(); !slices.Equal(got, want) {
				t.Fatalf("seed %d: pass %d at %d: lists\n got %q\nwant %q\n%+v", seed, passes, r.now, got, want, p)
			}
		}
		if got, want := r.outcomes(), naive.outcomes(); !r.done() || !slices.Equal(got, want) {
			t.Fatalf("seed %d: done %t, outcomes\n got %+v\nwant %+v\n%+v", seed, r.done(), got, want, p)
		}
	}
}

// Ensure the same of outcomes where hundreds of jobs run, also when all are submitted together.
func TestNaiveTwinLarge(t *testing.T) {
	for _, gap := range []float64{0, 0.4, 1.2} {
		jobs := manyJobs(2000, gap)
		for i, p := range []Params{
			{Seconds: true}, {}, {Knob: 8}, {Gittins: true, Samples: manySamples(jobs)},
			{Gittins: true, Samples: []int64{100, 2000}},
		} {
			p.GPUs, p.Limits = 640, []int64{3250, 7200}
			naive := newNaiveRun(jobs, p)
			for !naive.done() {
				naive.pass()
			}
			if !slices.Equal(Run(jobs, p), naive.outcomes()) {
				t.Errorf("gap %v s, schedule %d: outcomes differ", gap, i)
			}
		}
	}
}

// twinWorkload makes traces from crowded ones of few seconds to loose ones, some with jobs of no length or wider than
// the cluster, and schedules of every kind, with up to ten queues, some of equal limits.
func twinWorkload(rnd *rand.Rand) (jobs []Job, p Params) {
	p.GPUs = 1 + rnd.IntN(16)
	p.Seconds, p.Knob = rnd.IntN(3) == 0, []float64{0, 0, 0, 0.01, 0.5, 1, 3, 8, 1e300, math.Inf(1)}[rnd.IntN(10)]
	step := int64(1) << rnd.IntN(9)
	for limit := int64(0); len(p.Limits) < 9 && rnd.IntN(4) > 0; {
		limit += rnd.Int64N(step)
		p.Limits = append(p.Limits, limit)
	}
	if !p.Seconds && rnd.IntN(2) == 0 {
		p.Gittins, p.Delta = true, rnd.Int64N(60)
		for range 1 + rnd.IntN(40) {
			p.Samples = append(p.Samples, 1+rnd.Int64N(4*step))
		}
	}
	width, span, longest := 1+rnd.IntN(p.GPUs+2), int64(1)<<rnd.IntN(10), int64(1)<<rnd.IntN(8)
	for i := range 1 + rnd.IntN(60) {
		jobs = append(jobs, Job{ID: fmt.Sprint(i), GPUs: 1 + rnd.IntN(width), Submit: rnd.Int64N(span),
			Duration: rnd.Int64N(longest)})
	}
	return jobs, p
}
