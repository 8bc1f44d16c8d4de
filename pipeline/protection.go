package pipeline

import (
	"time"

	"github.com/trainyard/trainyard/sched"
)

// protection says which attempts must not be preempted yet.
type protection struct {
	minRun  time.Duration // since the start; 0: none
	guard   sched.Guard   // nil: none
	leave   sched.Unsaved // who is not stopped at all
	rail    bool          // who lost work to others is left alone until it has done twice as much
	byOrder bool          // see Stages.byOrder
	// retry is when the first protected job that was in the way of another loses its protection; Never.
	retry sched.Time
}

// any reports whether any holder may be protected.
func (p *protection) any() bool {
	return p.minRun > 0 || p.guard != nil || p.leave != sched.StopUnsaved || p.rail || p.byOrder
}

// behind reports whether holder h ranks so that job id might take what it has.
func (p *protection) behind(b *books, id, h sched.JobID, now float64) bool {
	return b.beforeAt(id, h, now) && (!p.byOrder || b.inOrder(id, h, now))
}

// spares reports whether job id may not take what holder h has, although it ranks before h.
func (p *protection) spares(v *sched.View, b *books, id, h sched.JobID, now float64) bool {
	return p.byOrder && !b.inOrder(id, h, now) || p.covers(v, h)
}

// covers reports whether job id has not run for minRun yet, or is guarded.
func (p *protection) covers(v *sched.View, id sched.JobID) bool {
	return p.any() && v.Now < p.until(v, id)
}

// until returns when job id will have run for minRun, at the earliest, and as long as it is guarded; 0 where it does
// not run, Never where it is not stopped at all.
func (p *protection) until(v *sched.View, id sched.JobID) sched.Time {
	started, j := v.Now, &v.Jobs[id]
	switch j.Attempt {
	case sched.Starting:
	case sched.Running:
		started = j.LastStart
	default:
		return 0
	}
	if p.leave.Protects(j) {
		return sched.Never
	}
	until := started.Add(p.minRun)
	if p.rail {
		until = max(until, j.Owes(v.Now))
	}
	if p.guard != nil {
		until = max(until, p.guard.Until(v, id, started))
	}
	return until
}

// retryBy asks for another walk at time at, at the latest.
func (p *protection) retryBy(at sched.Time) { p.retry = min(p.retry, at) }

// freedAt returns when the first of the holders that rank behind job id may be preempted for it; 0 if there is none, or
// that time has come.
func (p *protection) freedAt(v *sched.View, b *books, id sched.JobID, holders []sched.JobID) (at sched.Time) {
	for _, h := range holders {
		until := p.until(v, h)
		if p.behind(b, id, h, v.Now.Seconds()) && until > v.Now && until != sched.Never && (at == 0 || until < at) {
			at = until
		}
	}
	return at
}
