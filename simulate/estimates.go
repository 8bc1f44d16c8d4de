package simulate

import (
	"time"

	"github.com/trainyard/trainyard/model/remaining"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// estimates are what is known of the work of jobs that say some way on how much they are in all.
type estimates struct {
	*remaining.Estimator // up to there
	trace                *trace.Trace
	from                 func(*trace.Job) time.Duration // the work at which a job says it
}

// Sure reports whether job j has said how much it is.
func (e *estimates) Sure(v *sched.View, j sched.JobID) bool {
	return v.Jobs[j].WorkNow(v.Now) >= e.from(&e.trace.Jobs[j])
}

// Remaining returns the work that job j has left: the truth once it has said it.
func (e *estimates) Remaining(v *sched.View, j sched.JobID) time.Duration {
	if e.Sure(v, j) {
		return max(e.trace.Oracle().Remaining(v, j), 0)
	}
	return e.Estimator.Remaining(v, j)
}

// Until returns when to ask again about a job to which nothing happens.
func (e *estimates) Until(v *sched.View, j sched.JobID) sched.Time {
	if e.Sure(v, j) {
		return sched.Never
	}
	return e.Estimator.Until(v, j)
}
