package gavel

import (
	"cmp"
	"math"
	"slices"

	"github.com/trainyard/trainyard/internal/mersenne"
)

// Run plays jobs under p until all are done. It reads its arguments only, and is deterministic. It costs O(jobs in the
// system) per round, with pairs their square.
//
// Run panics if p or a job is invalid; call Params.Validate first where they come from outside.
//
// Source: scheduler.py, simulate.
func Run(jobs []Job, p Params) Result {
	if err := p.Validate(jobs); err != nil {
		panic(err)
	}
	r := &run{Params: p, queue: jobs, stale: true}
	r.Round, r.Reset = cmp.Or(p.Round, DefaultRound), cmp.Or(p.Reset, DefaultReset)
	if p.Policy == Gandiva {
		r.random = mersenne.New(p.Seed)
	}
	if len(jobs) > 0 {
		r.now = jobs[0].Submit
	}
	for n := cmp.Or(p.MaxRounds, DefaultMaxRounds); len(r.queue)+len(r.jobs) > 0 && n > 0 && !p.stopped(); n-- {
		r.end()
		r.admit()
		r.allocate()
		r.rank()
		r.dispatch()
	}
	return r.result(jobs)
}

type run struct {
	Params
	queue  []Job  // to come
	jobs   []*job // in the system, by number
	done   []*job
	places []*place // what may run: each job alone, and pairs, in the order in which they became possible
	turns  []*turn  // of the round under way

	now       float64
	begin     float64 // of the round, as the simulator has it
	over      float64 // end of the round before
	any       bool    // there was one
	lastReset float64
	stale     bool    // a job came or went since shares were computed
	worked    float64 // seconds in rounds since the last reset, of all places
	held      float64 // GPU-seconds
	count     int
	random    *mersenne.Generator
	kept      []*place        // of FIFO: who holds a place, by number of the job
	pairs     map[*job]*place // of Gandiva: where each job is to run
	order     []*job          // keys of pairs in order of insertion
}

// job is a Job and its progress.
type job struct {
	Job
	number   int
	left     int64
	failures int
	alone    *place
	gone     bool
	Outcome
}

// place is a job alone, or a pair, and what it is owed.
type place struct {
	jobs     []*job // by number
	rates    []float64
	worked   float64 // seconds in rounds since the last reset, and half a round
	owed     float64 // deficit
	share    float64 // of time
	known    bool    // it was there when shares were computed last
	priority float64
}

func (p *place) gpus() int { return p.jobs[0].Kind.GPUs }

func (p *place) gone() bool { return slices.ContainsFunc(p.jobs, func(j *job) bool { return j.gone }) }

// turn is a place in a round.
type turn struct {
	*place
	steps  []int64
	finish float64
}

// end closes the round under way: it is over when its last turn is. Without one the next submission is waited for.
func (r *run) end() {
	if len(r.turns) == 0 {
		if len(r.queue) > 0 {
			r.now = max(r.queue[0].Submit, r.now)
		} else {
			r.lastReset = 0
		}
		return
	}
	slices.SortFunc(r.turns, func(a, b *turn) int {
		return cmp.Or(cmp.Compare(b.finish, a.finish), cmp.Compare(a.jobs[0].number, b.jobs[0].number))
	})
	if r.any {
		r.begin = r.over
	}
	r.over, r.any = r.turns[0].finish, true
	r.now = r.over
	r.count++
	for _, t := range r.turns {
		r.close(t)
	}
	r.turns = r.turns[:0]
}

// close takes what a turn did.
func (r *run) close(t *turn) {
	took := t.finish - r.begin
	r.held += took * float64(t.gpus())
	ok := took > 0
	for k := range t.jobs {
		ok = ok && t.steps[k]/int64(t.gpus()) > 0 // each GPU does an equal part
	}
	t.worked += took
	r.worked += took
	for k, j := range t.jobs {
		j.Run += took
		if len(t.jobs) > 1 {
			j.Shared += took
		}
		switch {
		case ok:
			j.left -= t.steps[k]
			j.failures *= min(len(t.jobs)-1, 1) // turns next to another do not clear them
			if j.left <= 0 {
				j.Finish = t.finish
				r.remove(j)
			}
		case len(t.jobs) == 1:
			if j.failures++; j.failures >= maxFailures {
				j.Finish, j.Failed = math.NaN(), true
				r.remove(j)
			}
		}
	}
	r.stale = r.stale || !ok
}

// maxFailures is how many lost rounds in a row fail a job.
const maxFailures = 5

func (r *run) remove(j *job) {
	j.gone, r.stale = true, true
	r.done = append(r.done, j)
	r.jobs = slices.DeleteFunc(r.jobs, func(other *job) bool { return other == j })
	r.places = slices.DeleteFunc(r.places, (*place).gone)
}

// admit lets jobs in that have come by now, with the pairs they may form.
func (r *run) admit() {
	for len(r.queue) > 0 && r.queue[0].Submit <= r.now {
		j := &job{Job: r.queue[0], number: len(r.done) + len(r.jobs), left: r.queue[0].Steps,
			Outcome: Outcome{ID: r.queue[0].ID}}
		r.queue = r.queue[1:]
		j.alone = &place{jobs: []*job{j}, rates: []float64{r.Rates.Alone[j.Kind]}, worked: r.Round / 2}
		r.places = append(r.places, j.alone)
		for _, other := range r.jobs {
			if r.Policy.packs() && other.Kind.GPUs == j.Kind.GPUs {
				rates := r.Rates.Shared[[2]Kind{other.Kind, j.Kind}]
				r.places = append(r.places, &place{jobs: []*job{other, j}, rates: rates[:]})
			}
		}
		r.jobs = append(r.jobs, j)
		r.stale = true
	}
}

// allocate computes shares again where that is due, and what each place is owed by then.
func (r *run) allocate() {
	elapsed := r.now - r.lastReset
	if !r.stale || elapsed < r.Reset && r.lastReset != 0 {
		return
	}
	r.worked = 0
	for _, p := range r.places {
		should := 0.0
		if p.known {
			should = float64(p.share * elapsed)
		}
		p.owed += should - (p.worked - r.Round/2)
		p.worked = r.Round / 2
		r.worked += p.worked
	}
	r.lastReset, r.stale = r.now, false
	for _, p := range r.places {
		p.share, p.known = 0, true
	}
	switch r.Policy {
	case FIFO:
		r.keep()
	case FIFOPerf, FIFOPacked:
		r.fill()
	case Gandiva:
		r.spread()
	}
}

// rank gives priority to those who had least of their share.
func (r *run) rank() {
	for _, p := range r.places {
		p.priority = p.share * 1e9
		if !p.known || !p.runs() {
			p.priority = 0
		} else if p.share > 0 && r.worked > 0 && p.worked > 0 {
			p.priority = p.share / (p.worked / r.worked)
		}
	}
}

// runs reports whether all of its jobs get on.
func (p *place) runs() bool { return slices.Min(p.rates) > 0 }

// dispatch starts a round: places in order of priority, what they are owed and share, as long as they fit and none of
// their jobs runs already.
func (r *run) dispatch() {
	ranked := slices.Clone(r.places)
	slices.SortStableFunc(ranked, func(a, b *place) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(b.owed, a.owed), cmp.Compare(b.share, a.share))
	})
	free, taken := r.GPUs, make(map[*job]bool)
	for _, p := range ranked {
		busy := slices.ContainsFunc(p.jobs, func(j *job) bool { return taken[j] })
		if free == 0 || busy || !p.runs() || r.Policy.inOrder() && p.priority <= 0 || p.gpus() > free {
			continue
		}
		free -= p.gpus()
		for _, j := range p.jobs {
			taken[j] = true
		}
		if p.known {
			r.start(p)
		}
	}
}

// start starts a turn of whole steps.
func (r *run) start(p *place) {
	t := &turn{place: p, finish: r.now}
	for k, j := range p.jobs {
		steps := min(int64(p.rates[k]*r.Round), j.left)
		t.steps = append(t.steps, steps)
		t.finish = max(t.finish, r.now+float64(steps)/p.rates[k])
	}
	r.turns = append(r.turns, t)
}

func (r *run) result(jobs []Job) Result {
	res := Result{End: r.now, Rounds: r.count}
	for _, j := range r.jobs {
		j.Finish = math.NaN()
	}
	all := slices.Concat(r.done, r.jobs)
	slices.SortFunc(all, func(a, b *job) int { return a.number - b.number })
	sum, n := 0.0, 0
	for _, j := range all {
		res.Jobs = append(res.Jobs, j.Outcome)
		if !math.IsNaN(j.Finish) {
			sum, n = sum+(j.Finish-j.Submit), n+1
		}
	}
	for _, j := range r.queue {
		res.Jobs = append(res.Jobs, Outcome{ID: j.ID, Finish: math.NaN()})
	}
	if n > 0 {
		res.AvgJCT = sum / float64(n)
	}
	if len(jobs) > 0 && r.now > jobs[0].Submit {
		res.Busy = r.held / (float64(r.GPUs) * (r.now - jobs[0].Submit))
	}
	return res
}
