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

	ends []int   // jobs that end next, together
	end  float64 // when
	jump float64 // when a running job should reach its queue's limit
}

// state is what the loop remembers of a job.
type state struct {
	remaining float64 // seconds of work
	executed  float64 // seconds with GPUs
	checked   float64 // when it was settled last
	queue     int
	running   bool
	fits      bool // chosen in this pass
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
	for r.arrived < len(jobs) || r.end < never {
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
		o.Run += r.now - s.checked
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
		r.state[i] = state{remaining: r.jobs[i].Work, checked: r.now}
		r.known = append(r.known, i)
		if r.p.Policy == Tiresias {
			r.queues[0] = append(r.queues[0], i)
		}
	}
}

// slack is by how many GPU-seconds a limit may be missed: without it, rounding can make the released loop look at a
// queue again and again at one instant.
const slack = 1e-3

// settle brings job i up to now. This pass costs it its overhead, for a running job.
func (r *run) settle(i int) {
	s := &r.state[i]
	past := r.now - s.checked
	s.checked = r.now
	if !s.running {
		return
	}
	s.remaining -= max(past-r.jobs[i].Overhead, 0)
	s.executed += past
	r.out[i].Run += past
	if r.p.Policy == Tiresias && s.queue < len(Limits) && s.executed*float64(r.jobs[i].GPUs) >= Limits[s.queue]-slack {
		r.queues[s.queue] = remove(r.queues[s.queue], i)
		s.queue++
		r.queues[s.queue] = append(r.queues[s.queue], i)
	}
}

// chooseShortest sorts the list and places all jobs again in that order. Ties keep the order of the list.
func (r *run) chooseShortest() {
	key := func(i int) float64 {
		if r.p.Policy == SRSF {
			return r.state[i].remaining * float64(r.jobs[i].GPUs)
		}
		return r.state[i].remaining
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
	r.ends, r.end, r.jump = r.ends[:0], never, never
	for _, i := range r.known {
		s := &r.state[i]
		if !s.running {
			continue
		}
		if end := r.now + s.remaining; end < r.end {
			r.ends, r.end = append(r.ends[:0], i), end
		} else if end == r.end {
			r.ends = append(r.ends, i)
		}
		if r.p.Policy == Tiresias && s.queue < len(Limits) {
			r.jump = min(r.jump, math.Ceil(Limits[s.queue]/float64(r.jobs[i].GPUs))-s.executed+r.now)
		}
	}
}
