package whatif

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/model/dist"
	"github.com/trainyard/trainyard/sched"
)

// Basis is what a guess of the work of a job rests on.
type Basis = explain.Basis

// Bases, the best first.
const (
	BySteps    = explain.BySteps
	ByClass    = explain.ByClass
	ByUser     = explain.ByUser
	ByWidth    = explain.ByWidth
	ByAll      = explain.ByAll
	ByWallTime = explain.ByWallTime
	ByNothing  = explain.ByNothing
)

// Work is what is known of how much work jobs are, in time on the GPUs they asked for.
type Work struct {
	// Steps says the work that a job has left by what it says of its steps; nil, or ok false, = it does not say.
	Steps func(j sched.JobID) (left time.Duration, ok bool)
	// Guessed are the jobs that run at a speed that was never measured on such GPUs: how long their steps take is known
	// roughly.
	Guessed map[sched.JobID]bool
	// Class names the jobs that are alike; nil = none are.
	Class func(*sched.JobSpec) Classes
	// Earlier is the work of earlier jobs in seconds, by class; All of all of them, nil = there were none. A job goes
	// by the closest of its classes that has an entry, else by All.
	Earlier map[string]*dist.Empirical
	All     *dist.Empirical
	// Repeat is how likely a job is to take as long as the one before it of its kind, other than by chance: 0 to 1.
	Repeat float64
	Ended  int // jobs that finished, of which all this was learned
}

// Classes name those a job is like, from the closest on: those of ByClass, ByUser and ByWidth. "" = there are none. A
// name is that of one class only.
type Classes [3]string

// fewest is how many jobs of a class must have finished before a distribution is made of them.
const fewest = 5

// Alike are the classes of a job: those that its user trains the same model with, or gives the same name; its user's of
// the same width; all of that width.
func Alike(s *sched.JobSpec) (c Classes) {
	if what := cmp.Or(s.Model, s.Class, s.Name); what != "" {
		c[0] = fmt.Sprintf("job %s of %s", what, s.User)
	}
	if s.User != "" {
		c[1] = fmt.Sprintf("%d GPUs of %s", s.GPUs.Want, s.User)
	}
	c[2] = fmt.Sprintf("%d GPUs", s.GPUs.Want)
	return c
}

// asked returns what job j said when it arrived of how many GPUs it wants, whatever its user wants since: its work is
// in time on those, and it is like the jobs that asked for as many.
func asked(j *sched.Job) *sched.JobSpec {
	if j.Unit() == j.Spec.GPUs.Want {
		return j.Spec
	}
	s := *j.Spec
	s.GPUs.Want = j.Unit()
	return &s
}

// AsWanted returns work of job j in time on the GPUs that its user wants now, as if it were as fast as they are many.
func AsWanted(j *sched.Job, work time.Duration) time.Duration {
	if j.Unit() == j.Spec.GPUs.Want {
		return work
	}
	return sched.ScaleDuration(work, float64(j.Unit())/float64(j.Spec.GPUs.Want))
}

// Learn makes distributions of the work of jobs of v, classed by class: of each class of which at least five finished,
// and of all, if one did. Those that have run and are not over count as far as they have come (Kaplan and Meier, 1958):
// by those that finished alone, long jobs would be missing for as long as they run. Of jobs that repeat the one before
// them the first alone counts, but among those of ByClass: twenty that a user submits in a row say of wider classes
// what one shows.
func Learn(v *sched.View, class func(*sched.JobSpec) Classes) *Work {
	classes, all := make(map[string]*lives), new(lives)
	w := &Work{Class: class, Earlier: make(map[string]*dist.Empirical), Repeat: learnRepeat(v)}
	for i, like := range before(v) {
		j := &v.Jobs[i]
		over, work := finished(v, sched.JobID(i)), Measured(v, j)
		if !over && (j.State == sched.Done || work <= 0) {
			continue
		}
		repeats := over && like != sched.None && finished(v, like) && near(v, sched.JobID(i), like) > 0
		if over {
			w.Ended++
		}
		if !repeats {
			all.add(work, over)
		}
		in := class(asked(j))
		levels := in[:]
		if repeats {
			levels = in[:1]
		}
		for _, c := range levels {
			livesOf(classes, c).add(work, over)
		}
	}
	w.All = all.sizes(1)
	for c, l := range classes {
		if e := l.sizes(fewest); e != nil && c != "" {
			w.Earlier[c] = e
		}
	}
	return w
}

// lives are what is known of the sizes of jobs: of those that finished the size, of others that it is more than they
// have done.
type lives struct{ ended, open []float64 }

// livesOf returns those of a class.
func livesOf(classes map[string]*lives, class string) *lives {
	if classes[class] == nil {
		classes[class] = new(lives)
	}
	return classes[class]
}

func (l *lives) add(work time.Duration, finished bool) {
	if finished {
		l.ended = append(l.ended, work.Seconds())
	} else {
		l.open = append(l.open, work.Seconds())
	}
}

// sizes returns as many sizes as jobs, evenly likely, by the estimate of Kaplan and Meier; nil if fewer than least have
// finished. What that leaves beyond the longest has the tail of jobs of which nothing is known.
func (l *lives) sizes(least int) *dist.Empirical {
	if len(l.ended) < least {
		return nil
	}
	slices.Sort(l.ended)
	slices.Sort(l.open)
	n := len(l.ended) + len(l.open)
	list, risk, open, more := make([]float64, 0, n), n, 0, 1.0
	quantile := func() float64 { return (float64(len(list)) + 0.5) / float64(n) }
	for _, size := range l.ended {
		for ; open < len(l.open) && l.open[open] < size; open++ {
			risk--
		}
		more *= 1 - 1/float64(risk)
		risk--
		for len(list) < n && quantile() <= 1-more {
			list = append(list, size)
		}
	}
	for longest := max(l.ended[len(l.ended)-1], last(l.open)); len(list) < n; {
		u := (quantile() - (1 - more)) / more
		list = append(list, longest+longTail(sched.Seconds(longest), u).Seconds())
	}
	e, err := dist.NewEmpirical(list)
	if err != nil {
		return nil // cannot be: none is negative
	}
	return e
}

func last(sorted []float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)-1]
}

// Measured returns the work that job j has done as it was reported; of a job that is done and never reported any, which
// thus started again at every start, the time that its last attempt took.
func Measured(v *sched.View, j *sched.Job) time.Duration {
	switch {
	case j.State != sched.Done:
		return j.WorkNow(v.Now)
	case j.Work > 0 || j.LastStart < 0:
		return max(j.Work, 0)
	}
	return j.End.Sub(j.LastStart)
}

// of returns the distribution that job s goes by, nil if there is none.
func (w *Work) of(s *sched.JobSpec) (*dist.Empirical, Basis) {
	if w.Class != nil {
		for i, c := range w.Class(s) {
			if e := w.Earlier[c]; e != nil && c != "" {
				return e, ByClass + Basis(i)
			}
		}
	}
	return w.All, ByAll
}

// unknown is the median of the work left to a job of which nothing is known.
const unknown = time.Hour

// Left returns the u-quantile, 0 < u < 1, of the work that job j of v has left, given what it has done, and what that
// rests on.
//
// Steps say a point. Otherwise, of the earlier jobs like it, those count that took longer than it has by now: the next
// one's work is equally likely to lie in each of the gaps between theirs, the one beyond the longest included (Hill,
// 1968, assumption A(n)), evenly within a gap. A stated wall time is a bound: what would be longer ends there. With no
// such job to go by, the work left is uniform up to the wall time. If there is none, and beyond the longest job, P(X >
// b + x) = b/(b + x) where b is the longest, or what the job has done, of which nothing is known an hour at least: what
// has run for long goes on for as long again.
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
	e, basis := w.of(asked(job))
	left := time.Duration(0)
	switch {
	case e != nil && e.Max() > done.Seconds():
		left = beyond(e, done, u)
	case wall > 0:
		return time.Duration(u * float64(wall-done)), ByWallTime
	case e != nil:
		return longTail(done, u), basis
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
