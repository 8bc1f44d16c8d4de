package allocate

import (
	"github.com/trainyard/trainyard/model/elastic"
	"github.com/trainyard/trainyard/sched"
)

// Sum makes the sum of scaling factors as large as can be, every claim at a width that is possible for it: the dynamic
// programme of elastic scaling. Where that is not possible no one gets any: see Divide.Admits.
//
// A claim that holds GPUs counts for less at another width, by Claim.Move: within the horizon, the sum is that of the
// work done, restarts counted. For one job alone that is: change if (H-R) at the new speed is more than H at the old.
//
// Source: Saxena et al., MASCOTS 2020, see model/elastic; fairness and horizon are ours.
type Sum struct {
	Fairness float64 // weight of elastic.Fair; 0 = the plain sum

	solver elastic.Solver
	jobs   []elastic.Job
	arena  []float64
}

var _ Rule = (*Sum)(nil)

// Divide solves the programme.
func (s *Sum) Divide(_ *sched.View, dst []int, claims []Claim, gpus int) []int {
	s.jobs, s.arena = s.jobs[:0], s.arena[:0]
	for i := range claims {
		s.jobs = append(s.jobs, s.row(&claims[i], gpus))
	}
	answer, _ := s.solver.Solve(s.jobs, gpus)
	return append(dst, answer.Widths...)
}

// row returns the factors of a claim up to gpus GPUs as they count. It does not matter that the arena moves when it
// grows: rows keep the old one.
func (s *Sum) row(c *Claim, gpus int) elastic.Job {
	job, from := c.Job, len(s.arena)
	if c.Move == 1 && s.Fairness == 0 {
		return job
	}
	job.S = job.S[:min(len(job.S), gpus+1)]
	s.arena = append(s.arena, job.S...)
	row := s.arena[from:len(s.arena):len(s.arena)]
	for k := range row {
		row[k] *= c.Move
	}
	if c.Held < len(row) {
		row[c.Held] = max(row[c.Held], c.Stay)
	}
	if s.Fairness > 0 {
		from = len(s.arena)
		s.arena = elastic.Fair(s.arena, row, s.Fairness)
		row = s.arena[from:len(s.arena):len(s.arena)]
	}
	job.S = row
	return job
}

// Evenly is elastic FIFO. See elastic.FIFO.
type Evenly struct{}

var _ Rule = Evenly{}

// Divide gives minima, then grows all alike.
func (Evenly) Divide(_ *sched.View, dst []int, claims []Claim, gpus int) []int {
	return elastic.FIFO(dst, jobsOf(claims), gpus)
}

// AFSL is AFS-L, of jobs whose remaining work is known. See elastic.AFSL.
type AFSL struct{}

var _ Rule = AFSL{}

// Divide gives GPUs one by one.
func (AFSL) Divide(_ *sched.View, dst []int, claims []Claim, gpus int) []int {
	from := len(dst)
	for i := range claims {
		least := 0
		if claims[i].Must {
			least, _ = claims[i].Least()
		}
		gpus -= least
		dst = append(dst, least)
	}
	elastic.AFSL(dst[from:], jobsOf(claims), leftOf(claims), gpus)
	return dst
}

// Optimus is Optimus' marginal gains, of jobs whose remaining work is known. See elastic.Optimus.
type Optimus struct{}

var _ Rule = Optimus{}

// Divide gives minima, then GPUs one by one to the largest gain.
func (Optimus) Divide(_ *sched.View, dst []int, claims []Claim, gpus int) []int {
	return elastic.Optimus(dst, jobsOf(claims), leftOf(claims), gpus, nil)
}

func jobsOf(claims []Claim) []elastic.Job {
	jobs := make([]elastic.Job, len(claims))
	for i := range claims {
		jobs[i] = claims[i].Job
	}
	return jobs
}

// leftOf returns the remaining work, of which a job always has some.
func leftOf(claims []Claim) []float64 {
	left := make([]float64, len(claims))
	for i := range claims {
		left[i] = max(claims[i].Left, leastLeft)
	}
	return left
}

// leastLeft, in seconds, is what a job has left that is about to end.
const leastLeft = 1e-9
