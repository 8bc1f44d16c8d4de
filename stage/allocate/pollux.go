package allocate

import (
	"fmt"
	"time"

	"github.com/trainyard/trainyard/internal/memo"
	"github.com/trainyard/trainyard/model/elastic"
	"github.com/trainyard/trainyard/sched"
)

// Pollux divides GPUs so that the power mean, exponent -1, of the jobs' speedups over their fair share is as large as
// can be. The share is the GPUs there are over the jobs. What a job would have at another width than it holds counts
// less the more often it was restarted: max(0, age - restarts x Restart) / (age + Restart). A job without GPUs counts
// as a thousandth of a node. No job is wider than twice what it has been at its widest, or, at first, than its fewest
// GPUs.
//
// The mean is largest where the sum of inverses is least, and that is a sum over jobs of terms in their own width: so
// the best division is found exactly, by the dynamic programme of model/elastic.
//
// Source: Qiao et al., Pollux, OSDI 2021, as released (specification of BOA, 3.5). Deviation: as released the search is
// over GPUs on exact nodes, by NSGA-II; ours counts GPUs on as few nodes as hold them, and leaves the nodes to
// placement. So gangs on several nodes may meet. replica/pollux has the search itself.
type Pollux struct {
	PerNode int // GPUs of a node, > 0
	Restart func(model string) time.Duration
	Seen    *Widest

	solver elastic.Solver
	jobs   []elastic.Job
	arena  []float64
}

var _ Rule = (*Pollux)(nil)

// idleWorth is the part of a node that a job without GPUs counts as, so that its inverse is finite.
const idleWorth = 1e-3

// Divide finds the widths.
func (p *Pollux) Divide(v *sched.View, dst []int, claims []Claim, gpus int) []int {
	if len(claims) == 0 {
		return dst
	}
	p.jobs, p.arena = p.jobs[:0], p.arena[:0]
	fair := fairShare(gpus, len(claims))
	for i := range claims {
		p.jobs = append(p.jobs, p.row(v, &claims[i], gpus, fair))
	}
	answer, _ := p.solver.Solve(p.jobs, gpus+len(claims))
	for _, k := range answer.Widths {
		dst = append(dst, k-1) // see row
	}
	return dst
}

// fairShare is the GPUs there are over the jobs, rounded up.
func fairShare(gpus, jobs int) int { return (gpus + jobs - 1) / jobs }

// widest returns the most GPUs that a job may have now.
func (p *Pollux) widest(c *Claim, gpus int) int {
	fewest, _ := c.Least()
	return min(c.Max, len(c.S)-1, gpus, max(2*p.Seen.Of(c.ID), fewest))
}

// row returns what a job's share of the sum falls by at each width, which is shifted by one: no GPUs is width 1.
func (p *Pollux) row(v *sched.View, c *Claim, gpus, fair int) elastic.Job {
	least := idleWorth * float64(p.PerNode)
	share, factor := c.at(fair), p.restartFactor(v, c)
	most := p.widest(c, gpus)
	from := len(p.arena)
	// width 0 of the programme is never looked at; without GPUs the gain is the unit alone
	p.arena = append(p.arena, 0, 1)
	for k := 1; k <= most; k++ {
		s := c.S[k] / share
		if k != c.Held {
			s *= factor
		}
		gain := 0.0
		if k >= c.Min && c.S[k] > 0 {
			gain = 1 + 1/least - 1/(s+least)
		}
		p.arena = append(p.arena, gain)
	}
	row := p.arena[from:len(p.arena):len(p.arena)]
	fewest := 1
	if c.Must {
		fewest = 2
	}
	return elastic.Job{S: row, Min: fewest, Max: len(row) - 1}
}

// at returns the factor on so many GPUs, or on the most below that are possible, or else on the fewest.
func (c *Claim) at(gpus int) float64 {
	for k := min(gpus, len(c.S)-1); k > 0; k-- {
		if c.S[k] > 0 {
			return c.S[k]
		}
	}
	if least, ok := c.Least(); ok {
		return c.S[least]
	}
	return 1
}

// restartFactor is what job counts for at another width. Deviation: it is 1 before the first start and never 0 after:
// else nothing would start that came just now, nor what was restarted often, though all GPUs were free.
func (p *Pollux) restartFactor(v *sched.View, c *Claim) float64 {
	job := &v.Jobs[c.ID]
	if job.Attempts == 0 {
		return 1
	}
	age, delay := v.Now.Sub(job.Arrived).Seconds(), p.Restart(job.Spec.Model).Seconds()
	return max(age-float64(delay*float64(job.Attempts-1)), leastMove*age) / (age + delay)
}

// Widest remembers the most GPUs that each job has run on.
type Widest struct {
	sched.ByName

	gpus []int32
}

var (
	_ sched.Observer = (*Widest)(nil)
	_ sched.Memory   = (*Widest)(nil)
)

// Of returns the most GPUs of job j so far, 0 = it has not run.
func (w *Widest) Of(j sched.JobID) int {
	if int(j) >= len(w.gpus) {
		return 0
	}
	return int(w.gpus[j])
}

// Observe looks at the attempts that start.
func (w *Widest) Observe(v *sched.View, e *sched.Event) {
	if e.Kind == sched.AttemptStarted {
		w.set(e.Job, max(int32(w.Of(e.Job)), int32(len(v.Jobs[e.Job].GPUs))))
	}
}

func (w *Widest) set(j sched.JobID, gpus int32) {
	for int(j) >= len(w.gpus) {
		w.gpus = append(w.gpus, 0)
	}
	w.gpus[j] = gpus
}

// Format names what is saved.
func (*Widest) Format() string { return "widest/1" }

// SaveJob appends the width of job j.
func (w *Widest) SaveJob(j sched.JobID, b []byte) []byte {
	if w.Of(j) == 0 {
		return b
	}
	return memo.Uint(b, uint64(w.Of(j)))
}

// SaveRest appends nothing.
func (w *Widest) SaveRest(b []byte) []byte { return b }

// LoadJob takes what SaveJob wrote.
func (w *Widest) LoadJob(j sched.JobID, b []byte) error {
	r := memo.NewReader(b)
	gpus := r.Uint(elastic.MaxGPUs)
	if err := r.End(); err != nil {
		return fmt.Errorf("allocate: memory of a job's width: %w", err)
	}
	w.set(j, int32(gpus))
	return nil
}

// LoadRest takes what SaveRest wrote.
func (w *Widest) LoadRest(b []byte) error {
	if err := memo.NewReader(b).End(); err != nil {
		return fmt.Errorf("allocate: memory of widths: %w", err)
	}
	return nil
}
