package pollux

import "slices"

// run is the state of the simulator.
type run struct {
	Params
	all     []*job
	active  []*job // submitted and not done, in the order of the workload
	now     int64
	nodes   int
	divide  divider
	utility []float64 // of the last decisions, where the number of nodes follows it
	result  Result
	met     []int // scratch: gangs on several nodes, by node
}

// divider is a policy.
type divider interface {
	// divide decides what the active jobs hold, in the order of r.active; the list and the shares of jobs that keep
	// what they hold are theirs. An empty list of shares takes the GPUs away.
	divide(r *run) ([][]share, error)
}

// Run plays jobs under p until all are done, or for MaxRounds. Same arguments, same result. It fails if an application
// does not know how long a step takes that it comes to.
//
// One round, as its steps are named in the code: all jobs advance by an interval, then the clock does, jobs that have
// been submitted by now become active, and the policy divides the cluster again.
func Run(jobs []Job, p Params) (Result, error) {
	if err := p.Validate(jobs); err != nil {
		return Result{}, err
	}
	r := newRun(jobs, p.withDefaults())
	for r.result.Rounds < r.MaxRounds && !r.finished() && !p.stopped() {
		if err := r.round(); err != nil {
			return Result{}, err
		}
	}
	for _, j := range r.all {
		r.result.Jobs = append(r.result.Jobs, j.Outcome)
	}
	return r.result, nil
}

func newRun(jobs []Job, p Params) *run {
	r := &run{Params: p, nodes: p.Nodes}
	for i := range jobs {
		j := newJob(&jobs[i], i)
		j.fixed = j.Batch
		if p.Policy == Pollux {
			j.fixed = 0
			j.learnt.on = true
			if j.App.OneGPU {
				j.fixed = j.App.Max
			}
		}
		r.all = append(r.all, j)
	}
	switch p.Policy {
	case Tiresias:
		r.divide = newQueues(len(jobs))
	case Optimus:
		r.divide = &marginal{}
	case Pollux:
		r.divide = newEvolution(p)
	}
	return r
}

func (r *run) finished() bool {
	for _, j := range r.all {
		if !j.done() {
			return false
		}
	}
	return true
}

func (r *run) round() error {
	if err := r.advance(); err != nil {
		return err
	}
	r.now += r.Interval
	r.result.Rounds++
	r.result.NodeSeconds += int64(r.nodes) * r.Interval
	r.active = r.active[:0]
	for _, j := range r.all {
		if j.Submit <= r.now && !j.done() {
			r.active = append(r.active, j)
		}
	}
	if len(r.active) == 0 {
		return nil
	}
	if r.Scale != nil {
		r.rescale()
	}
	held, err := r.divide.divide(r)
	if err != nil {
		return err
	}
	for i, j := range r.active {
		if !slices.Equal(j.held, held[i]) {
			j.move(held[i], r.now, DefaultRestart)
		}
	}
	return nil
}

// advance lets an interval pass for all jobs.
func (r *run) advance() error {
	r.countGangs()
	for _, j := range r.all {
		slow := 1.0
		if r.Interference > 0 && len(j.held) > 1 && !j.done() {
			for _, s := range j.held {
				if r.met[s.node] > 1 {
					slow = 1 - r.Interference
				}
			}
		}
		if err := j.advance(r.now, r.Interval, slow); err != nil {
			return err
		}
	}
	return nil
}

// countGangs counts the gangs on several nodes that meet on each. Those that are done since the last decision are not
// there.
func (r *run) countGangs() {
	if r.Interference == 0 {
		return
	}
	if r.met == nil {
		r.met = make([]int, maxNodes)
	}
	clear(r.met)
	for _, j := range r.all {
		if len(j.held) > 1 && !j.done() {
			for _, s := range j.held {
				r.met[s.node]++
			}
		}
	}
}
