package controller

import (
	"time"

	"github.com/trainyard/trainyard/sched"
)

// pace is how far an attempt was when its job was touched last, and how fast it went on.
type pace struct {
	attempt int32
	work    time.Duration
	from    sched.Time
	rate    float64 // 0 = unknown, or it is being stopped
}

// at returns the work done by now, as far as is known.
func (p *pace) at(now sched.Time) time.Duration {
	return p.work + sched.ScaleDuration(max(now.Sub(p.from), 0), p.rate)
}

// measure counts what an attempt lost that ended: the run time behind the work that it had done, as far as was
// reported, and that its end says was not saved. An attempt of which no rate is known loses nothing that anybody knows
// of.
func (s *store) measure(v *sched.View, e *sched.Event) {
	if e.Job == sched.None || s.jobs[e.Job] == nil {
		return
	}
	j, mine := &v.Jobs[e.Job], s.jobs[e.Job]
	switch {
	case e.Kind == sched.AttemptEnded && e.Attempt == mine.work.attempt && e.Outcome != sched.Finished:
		if p := &mine.work; p.rate > 0 {
			mine.lost += sched.ScaleDuration(max(p.at(e.Time)-e.Work, 0), 1/p.rate)
		}
	case j.Attempt == sched.Stopping: // it saves, and does no more
		if p := &mine.work; p.attempt == j.Attempts && p.from < e.Time {
			p.work, p.from = p.at(e.Time), sched.Never
		}
	case j.Attempt == sched.Running && j.Up:
		mine.work = pace{j.Attempts, j.Work, j.WorkFrom, j.Rate}
	}
}
