package experiment

import (
	"github.com/trainyard/trainyard/sched"
)

// strands is a Sink that measures what placement leaves lying about. Time counts while some eligible job waits.
type strands struct {
	gpus    int           // of the cluster, all usable
	jobs    []strandedJob // by JobID
	waiting []int         // jobs that wait, by width
	waits   int
	held    int // GPUs that jobs hold
	now     sched.Time

	// GPU-seconds while jobs wait: of the cluster; free; free and enough for a job that waits
	queued, free, stranded float64
	spent, done            float64 // GPU-seconds of working attempts; of work they did at the speed of one piece
}

type strandedJob struct {
	waits bool
	held  int
	from  sched.Time // since when its attempt works
	rate  float64
}

// Log folds one event.
func (s *strands) Log(v *sched.View, e *sched.Event) {
	s.advance(e.Time)
	switch e.Kind {
	case sched.JobArrived, sched.AttemptStarted, sched.AttemptEnded, sched.Decided:
		s.update(v, e)
	}
}

func (s *strands) advance(now sched.Time) {
	dt := now.Sub(s.now).Seconds()
	s.now = now
	if dt == 0 || s.waits == 0 {
		return
	}
	free := s.gpus - s.held
	s.queued += float64(s.gpus) * dt
	s.free += float64(free) * dt
	for w := 1; w <= free && w < len(s.waiting); w++ {
		if s.waiting[w] > 0 {
			s.stranded += float64(free) * dt
			return
		}
	}
}

func (s *strands) update(v *sched.View, e *sched.Event) {
	for int(e.Job) >= len(s.jobs) {
		s.jobs = append(s.jobs, strandedJob{})
	}
	job, x := &v.Jobs[e.Job], &s.jobs[e.Job]
	width := int(job.Spec.GPUs.Want)
	switch e.Kind {
	case sched.AttemptStarted:
		x.from, x.rate = e.WorkFrom, e.Rate
	case sched.AttemptEnded:
		worked := float64(width) * max(e.Time.Sub(x.from), 0).Seconds()
		s.spent += worked
		s.done += worked * x.rate
	}
	s.held += len(job.Target) - x.held
	x.held = len(job.Target)
	if waits := job.Eligible() && x.held == 0; waits != x.waits {
		x.waits = waits
		s.count(width, waits)
	}
}

func (s *strands) count(width int, waits bool) {
	for width >= len(s.waiting) {
		s.waiting = append(s.waiting, 0)
	}
	d := -1
	if waits {
		d = 1
	}
	s.waiting[width] += d
	s.waits += d
}

// shares returns the free and the stranded share of the cluster while jobs wait, and the slow-down of work by
// spreading.
func (s *strands) shares() (free, stranded, slowdown float64) {
	if s.queued > 0 {
		free, stranded = s.free/s.queued, s.stranded/s.queued
	}
	slowdown = 1
	if s.done > 0 {
		slowdown = s.spent / s.done
	}
	return free, stranded, slowdown
}
