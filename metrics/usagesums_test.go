package metrics_test

import (
	"testing"
	"time"

	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/sched"
)

// usageSums compares what jobs used, by all 32 groupings and in spans that follow each other, with what attempts held,
// to the nanosecond, their energy with that of jobs, and their waits with those of jobs.
func usageSums(t *testing.T, what any, line *timeline.Timeline, rec *metrics.Recorder,
	twin *classTwin) {
	t.Helper()
	const day = sched.Time(37_000_000_011)
	l, jobs := line.Losses(), rec.All()
	energy, wait := 0.0, time.Duration(0)
	for i := range jobs {
		energy += float64(jobs[i].Energy)
		end := l.To
		if jobs[i].Outcome != sched.NoOutcome {
			end = jobs[i].Finish
		}
		wait += end.Sub(jobs[i].Submit)
	}
	for i := range twin.tries {
		wait -= min(twin.tries[i].end, l.To).Sub(twin.tries[i].ordered)
	}
	for by := range 32 {
		b := timeline.UsageBy{User: by&1 > 0, Group: by&2 > 0, Model: by&4 > 0, Job: by&8 > 0, To: sched.Never,
			Finish: func(id sched.JobID) sched.Time {
				if jobs[id].Outcome == sched.NoOutcome {
					return sched.None
				}
				return jobs[id].Finish
			}}
		if by&16 > 0 {
			b.Day = func(at sched.Time) (from, to sched.Time) { return at / day * day, at/day*day + day }
		}
		s := usageSum{t: t, what: what}
		if cut := l.From.Add(l.To.Sub(l.From) / 3); by%3 == 0 {
			b.To = cut
			s.add(timeline.UsageOf(line, b), jobs)
			b.From, b.To = cut, sched.Never
		}
		s.add(timeline.UsageOf(line, b), jobs)
		for c := range s.by {
			if s.by[c] != l.By[c] {
				t.Errorf("%v: by %05b: %v %v, want %v", what, by, timeline.Class(c), s.by[c], l.By[c])
			}
		}
		if diff := s.energy - energy; diff > 1e-9*energy || diff < -1e-9*energy {
			t.Errorf("%v: by %05b: energy %v, want %v", what, by, s.energy, energy)
		}
		if s.wait != wait {
			t.Errorf("%v: by %05b: waits %v, want %v", what, by, s.wait, wait)
		}
	}
}

// usageSum sums rows up.
type usageSum struct {
	t      *testing.T
	what   any
	by     [timeline.Stopping + 1]timeline.Area
	energy float64
	wait   time.Duration
}

func (s *usageSum) add(rows []timeline.UsageRow, jobs []metrics.Job) {
	s.t.Helper()
	keys := make(map[timeline.UsageKey]bool)
	for i := range rows {
		r := &rows[i]
		if keys[r.Key] {
			s.t.Errorf("%v: two rows of %+v", s.what, r.Key)
		}
		keys[r.Key] = true
		causes := timeline.Area{}
		for c := range r.By {
			s.by[c] = s.by[c].Plus(r.By[c])
		}
		for _, a := range r.Redone {
			causes = causes.Plus(a)
		}
		if causes != r.By[timeline.Redone] {
			s.t.Errorf("%v: redone %v, by cause %v", s.what, r.By[timeline.Redone], causes)
		}
		for _, x := range r.Shares {
			s.energy += x.Of(float64(jobs[x.Job].Energy))
		}
		s.wait += r.Wait
	}
}
