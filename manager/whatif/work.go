package whatif

import (
	"cmp"
	"time"

	"github.com/trainyard/trainyard/model/dist"
	"github.com/trainyard/trainyard/sched"
)

// Basis is what a guess of the work of a job rests on. The words are for people and machines.
type Basis uint8

// Bases, the best first.
const (
	BySteps    Basis = iota // the job says how many steps it has in all, and how far it is
	ByClass                 // earlier jobs that were alike
	ByAll                   // all earlier jobs: too few were alike
	ByWallTime              // the limit on its run time alone
	ByNothing               // nothing is known but how long it has run
)

var bases = [...]string{"steps", "class", "all", "wall-time", "nothing"}

// String returns the word of b.
func (b Basis) String() string { return bases[b] }

// Work is what is known of how much work jobs are, in time on the GPUs they asked for.
type Work struct {
	// Steps tells the work that a job has left by what it says of its steps; nil, or ok false, = it does not say.
	Steps func(j sched.JobID) (left time.Duration, ok bool)
	// Class names the jobs that are alike; "" = like no other.
	Class func(*sched.JobSpec) string
	// Earlier is the work of earlier jobs in seconds, by class; All of all of them, nil = there were none. A class without
	// an entry goes by All.
	Earlier map[string]*dist.Empirical
	All     *dist.Empirical
}

// fewest is how many jobs of a class must have finished before a distribution is made of them.
const fewest = 5

// Alike is the class of jobs that a user trains the same model with, or of those that the user gives the same name; "" if
// neither is known.
func Alike(s *sched.JobSpec) string {
	if what := cmp.Or(s.Model, s.Class, s.Name); what != "" {
		return s.User + "/" + what
	}
	return ""
}

// Learn makes distributions of the jobs of v that finished, classed by class: of each with at least five, and of all.
func Learn(v *sched.View, class func(*sched.JobSpec) string) *Work {
	sizes, all := make(map[string][]float64), []float64(nil)
	for i := range v.Jobs {
		j := &v.Jobs[i]
		if j.State != sched.Done || j.Outcome != sched.Finished {
			continue
		}
		work := measured(v, j).Seconds()
		all = append(all, work)
		if c := class(j.Spec); c != "" {
			sizes[c] = append(sizes[c], work)
		}
	}
	w := &Work{Class: class, Earlier: make(map[string]*dist.Empirical), All: empirical(all)}
	for c, s := range sizes {
		if e := empirical(s); e != nil {
			w.Earlier[c] = e
		}
	}
	return w
}

// measured returns the work that job j has done as it was reported; of a job that is done and never reported any, which
// thus began anew at every start, the time that its last attempt took.
func measured(v *sched.View, j *sched.Job) time.Duration {
	switch {
	case j.State != sched.Done:
		return j.WorkNow(v.Now)
	case j.Work > 0 || j.LastStart < 0:
		return max(j.Work, 0)
	}
	return j.End.Sub(j.LastStart)
}

// empirical returns the distribution of sizes, which are not negative; nil if they are too few.
func empirical(sizes []float64) *dist.Empirical {
	if len(sizes) < fewest {
		return nil
	}
	e, err := dist.NewEmpirical(sizes)
	if err != nil {
		return nil // cannot be: none is negative
	}
	return e
}

// of returns the distribution that job s goes by, nil if there is none.
func (w *Work) of(s *sched.JobSpec) (*dist.Empirical, Basis) {
	if w.Class != nil {
		if e := w.Earlier[w.Class(s)]; e != nil {
			return e, ByClass
		}
	}
	return w.All, ByAll
}

// unknown is the median of the work left to a job of which nothing is known.
const unknown = time.Hour

// Left returns the u-quantile, 0 < u < 1, of the work that job j of v has left, given what it has done, and what that rests
// on.
//
// Steps tell a point. Otherwise, of the earlier jobs like it, those count that took longer than it has by now: the next
// one's work is equally likely to lie in each of the gaps between theirs, the one beyond the longest included (Hill, 1968,
// assumption A(n)), evenly within a gap. A stated wall time is a bound: what would be longer ends there. With no such job
// to go by, the work left is uniform up to the wall time. If there is none, and beyond the longest job, P(X > b + x) = b/(b + x)
// where b is the longest, or what the job has done, and an hour at least: what has run for long goes on for as long again.
func (w *Work) Left(v *sched.View, j sched.JobID, u float64) (time.Duration, Basis) {
	job := v.Job(j)
	if w.Steps != nil {
		if left, ok := w.Steps(j); ok {
			return max(left, 0), BySteps
		}
	}
	done, wall := job.WorkNow(v.Now), job.Spec.WallTime
	if wall > 0 && done >= wall {
		return 0, ByWallTime
	}
	e, basis := w.of(job.Spec)
	left := time.Duration(0)
	switch {
	case e != nil && e.Max() > done.Seconds():
		left = beyond(e, done, u)
	case wall > 0:
		return time.Duration(u * float64(wall-done)), ByWallTime
	default:
		return longTail(max(done, unknown), u), ByNothing
	}
	if wall > 0 {
		left = min(left, wall-done)
	}
	return left, basis
}

// beyond returns the u-quantile of the work beyond done, which is less than the longest of e.
func beyond(e *dist.Empirical, done time.Duration, u float64) time.Duration {
	rest := e.Sizes()[e.AtMost(done.Seconds()):]
	at := u * float64(len(rest)+1)
	i := min(int(at), len(rest))
	from, part := done.Seconds(), at-float64(i)
	if i > 0 {
		from = rest[i-1]
	}
	if i == len(rest) {
		return sched.Seconds(from) - done + longTail(sched.Seconds(from), part)
	}
	return sched.Seconds(from+part*(rest[i]-from)) - done
}

// longTail returns the u-quantile of x where P(X > b + x) = b/(b + x), a century at most.
func longTail(b time.Duration, u float64) time.Duration {
	return time.Duration(min(float64(b)*u/(1-u), float64(century)))
}

const century = 100 * 365 * 24 * time.Hour
