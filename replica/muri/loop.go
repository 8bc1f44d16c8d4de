package muri

import (
	"cmp"
	"math"
	"slices"
)

// run is the state of the loop. Jobs are known by their number.
type run struct {
	p       Params
	jobs    []Job
	state   []state
	out     []Outcome
	arrived int     // jobs of lower number have arrived
	now     float64 // of this pass
	known   []int   // arrived and not done, in the order of the list that the released simulator sorts
	queues  [len(Limits) + 1][]int
	free    []int // GPUs of each node, while jobs are placed
	taken   []int // nodes a gang takes whole, while it is placed
	waiting []int // jobs of a queue that do not fit, while it is gone through

	ending []ending // when running jobs end, in the order of the list
	ends   []int    // jobs that end next, together
	end    float64  // when
	jump   float64  // when a running job should reach its queue's limit
}

// ending is an instant with the jobs that end then.
type ending struct {
	at   float64
	jobs []int
}

// state is what the loop remembers of a job.
type state struct {
	left     float64 // iterations
	executed float64 // seconds with GPUs
	checked  float64 // when it was settled last
	queue    int
	running  bool
	fits     bool // chosen in this pass
}

// Run simulates until nothing is left to happen. Jobs must be in order of submission; outcomes are in that order. It
// panics with the text of Validate if p or a job is wrong.
func Run(jobs []Job, p Params) []Outcome {
	if err := p.Validate(jobs); err != nil {
		panic(err.Error())
	}
	r := &run{p: p, jobs: jobs, state: make([]state, len(jobs)), out: make([]Outcome, len(jobs)),
		free: make([]int, p.Nodes),
		end:  never, jump: never}
	for (r.arrived < len(jobs) || r.end < never) && !p.stopped() {
		ends, arrivals := r.next()
		if ends {
			r.finish()
		}
		if arrivals {
			r.arrive()
		}
		for _, i := range r.known {
			r.settle(i)
		}
		if p.Policy == Tiresias {
			r.chooseByQueue()
		} else {
			r.chooseShortest()
		}
		r.switchJobs()
		r.plan()
	}
	return r.out
}

// next advances the clock to what happens next. What falls together happens together, but for a look at the queues,
// which comes alone and only if it is first.
func (r *run) next() (ends, arrivals bool) {
	start := never
	if r.arrived < len(r.jobs) {
		start = r.jobs[r.arrived].Submit
	}
	r.now = min(start, r.end)
	if r.jump < r.now {
		r.now = r.jump
		return false, false
	}
	return r.end == r.now, start == r.now
}

// finish ends the jobs that were planned to.
func (r *run) finish() {
	for _, i := range r.ends {
		s, o := &r.state[i], &r.out[i]
		o.Run = s.executed + (r.now - s.checked)
		o.Finish, o.Finished = r.now, true
		r.known = remove(r.known, i)
		r.queues[s.queue] = remove(r.queues[s.queue], i)
	}
}

func remove(list []int, i int) []int {
	at := slices.Index(list, i)
	if at < 0 {
		return list
	}
	return slices.Delete(list, at, at+1)
}

// arrive takes in all jobs submitted now.
func (r *run) arrive() {
	for ; r.arrived < len(r.jobs) && r.jobs[r.arrived].Submit == r.now; r.arrived++ {
		i := r.arrived
		r.state[i] = state{left: r.jobs[i].Iterations, checked: r.now}
		r.known = append(r.known, i)
		if r.p.Policy == Tiresias {
			r.queues[0] = append(r.queues[0], i)
		}
	}
}

// remaining returns the seconds of work that job i has left.
func (r *run) remaining(i int) float64 { return r.state[i].left * r.jobs[i].Iteration }

// settle brings job i up to now. This pass costs it its overhead, for a running job.
func (r *run) settle(i int) {
	s, j := &r.state[i], &r.jobs[i]
	past := r.now - s.checked
	if s.running {
		s.left -= max(past-j.Overhead, 0) / j.Iteration
		s.executed = s.executed + r.now - s.checked // from left to right, as released
		r.out[i].Run = s.executed
	}
	s.checked = r.now
	if s.running && r.p.Policy == Tiresias && s.queue < len(Limits) && s.executed*float64(j.GPUs) >= Limits[s.queue] {
		r.queues[s.queue] = remove(r.queues[s.queue], i)
		s.queue++
		r.queues[s.queue] = append(r.queues[s.queue], i)
	}
}

// jumps returns when running job i should reach the limit of its queue.
func (r *run) jumps(i int) float64 {
	s := &r.state[i]
	return math.Ceil(Limits[s.queue]/float64(r.jobs[i].GPUs)) - s.executed + r.now
}

// chooseShortest sorts the list and places all jobs again in that order. Ties keep the order of the list.
func (r *run) chooseShortest() {
	key := func(i int) float64 {
		if r.p.Policy == SRSF {
			return r.remaining(i) * float64(r.jobs[i].GPUs)
		}
		return r.remaining(i)
	}
	slices.SortStableFunc(r.known, func(a, b int) int { return cmp.Compare(key(a), key(b)) })
	for n := range r.free {
		r.free[n] = r.p.NodeGPUs
	}
	for _, i := range r.known {
		r.state[i].fits = r.place(r.jobs[i].GPUs)
	}
}

// place takes GPUs for a gang of so many: on the first node with room, or, if it is wider than a node, on the first
// whole nodes and the first other node with room for the rest.
func (r *run) place(gpus int) bool {
	whole, rest, last := gpus/r.p.NodeGPUs, gpus%r.p.NodeGPUs, -1
	r.taken = r.taken[:0]
	for n, free := range r.free {
		switch {
		case len(r.taken) < whole && free == r.p.NodeGPUs:
			r.taken = append(r.taken, n)
		case last < 0 && free >= rest:
			last = n
		}
	}
	if len(r.taken) < whole || rest > 0 && last < 0 {
		return false
	}
	for _, n := range r.taken {
		r.free[n] = 0
	}
	if rest > 0 {
		r.free[last] -= rest
	}
	return true
}

// chooseByQueue counts GPUs down the queues. Jobs that wait go behind those that run in their queue, for the next pass.
func (r *run) chooseByQueue() {
	free := r.p.Nodes * r.p.NodeGPUs
	for q, queue := range r.queues {
		running := queue[:0]
		r.waiting = r.waiting[:0]
		for _, i := range queue {
			s := &r.state[i]
			if s.fits = r.jobs[i].GPUs <= free; s.fits {
				free -= r.jobs[i].GPUs
				running = append(running, i)
			} else {
				r.waiting = append(r.waiting, i)
			}
		}
		r.queues[q] = append(running, r.waiting...)
	}
}

// switchJobs starts and preempts what was chosen.
func (r *run) switchJobs() {
	for _, i := range r.known {
		s, o := &r.state[i], &r.out[i]
		if s.running && !s.fits {
			o.Preemptions++
		}
		if s.fits && !o.Started {
			o.Start, o.Started = r.now, true
		}
		s.running = s.fits
	}
}

// plan finds the earliest end and, for Tiresias, the earliest fall to a lower queue.
func (r *run) plan() {
	r.ending, r.ends, r.end, r.jump = r.ending[:0], r.ends[:0], never, never
	for _, i := range r.known {
		s := &r.state[i]
		if !s.running {
			continue
		}
		r.endsAt(i, r.now+r.remaining(i))
		if r.p.Policy == Tiresias && s.queue < len(Limits) {
			r.jump = min(r.jump, r.jumps(i))
		}
	}
	for k := range r.ending {
		if e := &r.ending[k]; e.at < r.end {
			r.end, r.ends = e.at, e.jobs
		}
	}
}

// endsAt notes when job i ends: together with the first job of the list whose end is equal, or under SRTF and SRSF
// close.
func (r *run) endsAt(i int, at float64) {
	for k := range r.ending {
		e := &r.ending[k]
		if e.at == at || r.p.Policy != Tiresias && math.Abs(e.at-at) <= tie*max(e.at, at) {
			e.jobs = append(e.jobs, i)
			return
		}
	}
	n := len(r.ending)
	if n == cap(r.ending) {
		r.ending = append(r.ending, ending{})
	}
	r.ending = r.ending[:n+1]
	r.ending[n] = ending{at, append(r.ending[n].jobs[:0], i)}
}

// tie is the relative difference up to which SRTF and SRSF take ends for one: that of Python's math.isclose.
const tie = 1e-9
