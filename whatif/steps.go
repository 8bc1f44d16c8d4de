package whatif

import (
	"time"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// Steps is a sink that remembers how many training steps jobs that are not done have done and what work that was, as
// their reports say.
// The zero value is ready to use; it has to hear the whole log, the part that is replayed included.
type Steps struct {
	per   map[sched.JobID]float64 // work of a step
	total map[sched.JobID]float64
	guess map[sched.JobID]bool // no speed reported yet since it started at one that was a guess
}

var _ eventlog.Sink = (*Steps)(nil)

// Log takes a report that has both.
func (s *Steps) Log(v *sched.View, e *sched.Event) {
	switch e.Kind {
	case sched.AttemptStarted, sched.Progressed, sched.AttemptEnded:
	default:
		return
	}
	if s.per == nil {
		s.per, s.total, s.guess = make(map[sched.JobID]float64), make(map[sched.JobID]float64),
			make(map[sched.JobID]bool)
	}
	if v.Job(e.Job).State == sched.Done { // no one asks any more what is left of it
		delete(s.per, e.Job)
		delete(s.total, e.Job)
		delete(s.guess, e.Job)
		return
	}
	if e.Kind == sched.AttemptStarted && e.Code == sched.GuessedRate {
		s.guess[e.Job] = true
	} else {
		delete(s.guess, e.Job)
	}
	if e.Kind == sched.Progressed && e.Code > 0 {
		s.total[e.Job] = float64(e.Code)
	}
	if e.Value > 0 && e.Work > 0 {
		s.per[e.Job] = float64(e.Work) / e.Value
	}
}

// Total returns how many steps job j says that it has in all; 0 = it does not say.
func (s *Steps) Total(j sched.JobID) float64 { return s.total[j] }

// Guessed reports whether the speed at which job j runs is a guess: it was never measured on such GPUs, and no report
// has named it yet.
func (s *Steps) Guessed(j sched.JobID) bool { return s.guess[j] }

// Guesses returns the jobs of which Guessed is true. It keeps nothing of s.
func (s *Steps) Guesses() map[sched.JobID]bool {
	all := make(map[sched.JobID]bool)
	for j, is := range s.guess {
		if is {
			all[j] = true
		}
	}
	return all
}

// Left returns Work.Steps as of v: what jobs have left of the steps that total says they have in all, 0 = it is not
// known, if they take as long as those so far. What it returns keeps nothing of s and v.
func (s *Steps) Left(v *sched.View, total func(j sched.JobID, spec *sched.JobSpec) float64,
) func(sched.JobID) (time.Duration, bool) {
	left := make(map[sched.JobID]time.Duration)
	for j, per := range s.per {
		job := v.Job(j)
		if n := total(j, job.Spec); n > 0 && job.State != sched.Done {
			left[j] = max(0, time.Duration(min(per*n, float64(century)))-job.WorkNow(v.Now))
		}
	}
	return func(j sched.JobID) (time.Duration, bool) {
		d, ok := left[j]
		return d, ok
	}
}
