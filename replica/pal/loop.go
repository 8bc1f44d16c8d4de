package pal

import (
	"cmp"
	"slices"

	"github.com/trainyard/trainyard/internal/mersenne"
)

// Run plays jobs under p until the tracked ones are done. It reads its arguments only, and is deterministic.
//
// It costs O(jobs in the system) at each boundary at which something can change: under FIFO where a job arrives or
// finishes, else (LAS, SRTF, RandomNonSticky) everywhere; and where the jobs to place have changed, O(nodes × bins) for
// each of them.
//
// Run panics if p or a job is invalid; call Params.Validate first where they come from outside.
//
// Source: see the package.
func Run(jobs []Job, p Params) Result {
	r := newRun(jobs, p)
	for more := true; more && !p.stopped(); {
		more = r.step()
	}
	return r.result()
}

// step handles one boundary and goes to the next one that matters; false after the last.
func (r *run) step() bool {
	r.finish()
	if r.left == 0 || r.now >= r.MaxRounds {
		return false
	}
	r.admit()
	r.sort()
	r.place()
	r.jump()
	return true
}

type run struct {
	Params
	per     int
	classes [Classes]*class // of scored policies
	trace   *trace
	random  *mersenne.Generator // of random policies
	tracked []*job
	left    int // tracked jobs that are not done

	now     int64  // boundary; second now × Round
	queue   []*job // all jobs that arrived and are not done, in order
	running []*job
	changed bool   // the queue is not as it was when jobs were placed last
	placed  []*job // by placeAgain

	free  []uint64 // GPUs per node
	idle  int      // how many they are
	whole []uint64 // all GPUs of each node
	pick  []uint64 // GPUs per node chosen for one job
	list  []*job   // scratch of placeAgain
	pool  []int    // scratch of pickRandom
	held  int64    // GPUs held × rounds so far
}

func newRun(jobs []Job, p Params) *run {
	if err := p.Validate(jobs); err != nil {
		panic(err)
	}
	r := &run{Params: p, per: p.perNode(), trace: newTrace(jobs, p.Wrap), left: cmp.Or(p.Tracked, len(jobs))}
	r.MaxRounds = cmp.Or(p.MaxRounds, DefaultMaxRounds)
	r.Tracked = r.left
	nodes := p.gpus() / r.per
	r.whole = slices.Repeat([]uint64{1<<r.per - 1}, nodes)
	r.free, r.pick = slices.Clone(r.whole), make([]uint64, nodes)
	r.idle = p.gpus()
	if p.Policy.scored() {
		for c := range r.classes {
			r.classes[c] = newClass(p.SF[c], r.per, p.Locality)
		}
	}
	if p.Policy.random() {
		r.random = generatorAfter(p.Seed, p.gpus(), p.Rows)
	}
	return r
}

// finish ends the jobs that reach their last iteration in the round before this boundary.
func (r *run) finish() {
	over := func(j *job) bool { return j.running && j.end <= r.now }
	if !slices.ContainsFunc(r.running, over) {
		return
	}
	for _, j := range r.running {
		if !over(j) {
			continue
		}
		j.settle(r.now)
		j.running, j.Finished, j.Finish = false, true, r.now*r.Round
		r.release(j)
		if j.place < r.Tracked {
			r.left--
		}
	}
	gone := func(j *job) bool { return j.Finished }
	r.running = slices.DeleteFunc(r.running, gone)
	r.queue = slices.DeleteFunc(r.queue, gone)
	r.changed = true
}

// admit lets jobs in that arrive no later than this boundary.
func (r *run) admit() {
	for j := r.trace.ahead; j != nil && j.Submit <= r.now*r.Round; j = r.trace.ahead {
		r.trace.advance()
		j.key = r.key(j)
		r.queue = append(r.queue, j)
		r.changed = true
		if j.place < r.Tracked {
			r.tracked = append(r.tracked, j)
		}
	}
}

func (r *run) key(j *job) float64 {
	rounds := j.ran
	if j.running {
		rounds += r.now - j.since
	}
	switch r.Order {
	case LAS:
		return float64(rounds * r.Round)
	case SRTF:
		return j.length - float64(rounds*r.Round)
	default:
		return float64(j.Submit)
	}
}

// sort puts the queue in order, by insertion as it was in order one boundary before.
func (r *run) sort() {
	if r.Order != FIFO {
		for _, j := range r.running {
			j.key = r.key(j)
		}
	}
	q := r.queue
	for i := 1; i < len(q); i++ {
		j, k := q[i], i
		for ; k > 0 && before(j, q[k-1]); k-- {
			q[k] = q[k-1]
		}
		q[k] = j
		r.changed = r.changed || k < i
	}
}

func before(a, b *job) bool { return a.key < b.key || a.key == b.key && a.place < b.place }

// jump goes to the next boundary at which something can change: the next one, or under FIFO, where placements last
// while the queue does, that of the next arrival or completion.
func (r *run) jump() {
	next := r.now + 1
	if r.Order == FIFO && r.Policy != RandomNonSticky {
		next = r.MaxRounds
		if j := r.trace.ahead; j != nil {
			next = min(next, (j.Submit+r.Round-1)/r.Round)
		}
		for _, j := range r.running {
			next = min(next, j.end)
		}
	}
	r.held += (next - r.now) * int64(len(r.whole)*r.per-r.idle)
	r.now = next
}

func (r *run) result() Result {
	res := Result{Rounds: r.now, Admitted: r.trace.issued}
	if r.trace.ahead != nil {
		res.Admitted--
	}
	if r.now > 0 {
		res.BusyShare = float64(r.held) / (float64(r.gpus()) * float64(r.now))
	}
	for _, j := range r.tracked {
		if j.running {
			j.settle(r.now)
		}
		j.Run = j.ran * r.Round
		res.Jobs = append(res.Jobs, j.Outcome)
	}
	for _, j := range r.trace.jobs[len(res.Jobs):r.Tracked] { // given up before they arrived
		res.Jobs = append(res.Jobs, Outcome{ID: j.ID, Start: -1, Finish: -1})
	}
	return res
}
