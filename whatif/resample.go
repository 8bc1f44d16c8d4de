package whatif

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/trainyard/trainyard/model/dist"
	"github.com/trainyard/trainyard/sched"
)

// future is what is taken to be true of the work of jobs in one simulated future: Work as it might have been learned,
// and how much of it to doubt. So what is not known of the distributions themselves makes all jobs of a future long, or
// short, together.
type future struct {
	Work
	// by class: how likely a job is none of what has been seen of it, but of what is known beyond it
	doubt    map[string]float64
	doubtAll float64       // the same of All
	median   time.Duration // of a job of which nothing is known
}

// doubts is how many jobs one must have seen to believe in them as much as in what is known beyond them. Ours.
const doubts = 3

// future draws one. Each distribution becomes a sample with replacement (Efron, 1979), and the doubt of a class of
// which n were seen has the mean doubts/(doubts+n), as that of a Dirichlet process (Ferguson, 1973): of a class it goes
// by the next wider one, of all jobs by a law with a median and no mean.
func (w *Work) future(r *rand.Rand) *future {
	f := &future{Work: *w, doubt: make(map[string]float64, len(w.Earlier)), median: unknown}
	f.Earlier = make(map[string]*dist.Empirical, len(w.Earlier))
	for _, class := range slices.Sorted(maps.Keys(w.Earlier)) {
		f.Earlier[class], f.doubt[class] = resample(w.Earlier[class], r)
	}
	if w.All != nil {
		f.All, f.doubtAll = resample(w.All, r)
		f.median = max(sched.Seconds(f.All.Quantile(0.5)), time.Second)
	}
	return f
}

func resample(e *dist.Empirical, r *rand.Rand) (_ *dist.Empirical, doubt float64) {
	sizes := e.Sizes()
	drawn := make([]float64, len(sizes))
	for i := range drawn {
		drawn[i] = sizes[r.IntN(len(sizes))]
	}
	for range doubts {
		doubt += r.ExpFloat64()
	}
	again, err := dist.NewEmpirical(drawn)
	if err != nil {
		again = e // cannot be: they were sizes before
	}
	return again, doubt / (doubt + float64(len(sizes)))
}

// draw draws the work that job j of v has left. took, if > 0, is the work in all of the job before it of its kind. That
// a job has gone on for so long makes it the likelier that it does as one that took longer.
func (f *future) draw(v *sched.View, j sched.JobID, took time.Duration, r *rand.Rand) time.Duration {
	u, level := uniform(r), r.Float64()
	repeats, by := r.Float64(), math.Exp(nearly*(2*r.Float64()-1))
	job := v.Job(j)
	done, wall := job.WorkNow(v.Now), job.Spec.WallTime
	left, basis := f.Left(v, j, u)
	switch {
	case basis == BySteps && f.Guessed[j]:
		return f.guessed(job, left, u)
	case basis == BySteps, basis == ByWallTime:
		return left
	}
	left, outlasts := f.fresh(asked(job), done, level, u)
	again := time.Duration(min(float64(took)*by, float64(century))) - done
	if took > 0 && again > 0 && repeats*(f.Repeat+(1-f.Repeat)*outlasts) < f.Repeat {
		left = again
	}
	if wall > 0 {
		left = min(left, wall-done)
	}
	return left
}

// guessed returns the u-quantile of the work left to a job that runs on other GPUs than it asked for, at a speed that
// is a guess: in proportion to their number. It is between that and no faster, or slower, than before, evenly in the
// logarithm: other widths do not pay off in full, nor at all. Ours.
func (f *future) guessed(j *sched.Job, left time.Duration, u float64) time.Duration {
	if len(j.GPUs) == 0 {
		return left
	}
	return sched.ScaleDuration(left, math.Pow(float64(len(j.GPUs))/float64(j.Unit()), u))
}

// fresh returns the work beyond done of a job that repeats no other, from the level that its classes are believed in, 0
// to 1, and how likely it was to last for longer than done.
func (f *future) fresh(s *sched.JobSpec, done time.Duration, level, u float64) (left time.Duration, outlasts float64) {
	beyondAll := float64(f.median) / float64(f.median+done) // P(X > done) of a job of which nothing is known
	wider := beyondAll
	if f.All != nil {
		wider = outlast(f.All, done)
	}
	outlasts = wider
	var classes Classes
	if f.Class != nil {
		classes = f.Class(s)
	}
	first := true
	for _, c := range classes {
		e := f.Earlier[c]
		if e == nil || c == "" {
			continue
		}
		here := outlast(e, done)
		if first {
			first, outlasts = false, here
		}
		doubt := f.doubt[c] * wider / (f.doubt[c]*wider + (1-f.doubt[c])*here)
		if level >= doubt {
			return beyond(e, done, u), outlasts
		}
		level /= doubt
	}
	if f.All != nil {
		if doubt := f.doubtAll * beyondAll / (f.doubtAll*beyondAll + (1-f.doubtAll)*wider); level >= doubt {
			return beyond(f.All, done, u), outlasts
		}
	}
	return longTail(f.median+done, u), outlasts
}

// outlast returns how likely the next job of e is to take longer than done.
func outlast(e *dist.Empirical, done time.Duration) float64 {
	n := float64(e.Count())
	return (n + 1 - float64(e.AtMost(done.Seconds()))) / (n + 1)
}

// uniform draws a number above 0 and below 1.
func uniform(r *rand.Rand) float64 { return max(r.Float64(), math.SmallestNonzeroFloat64) }
