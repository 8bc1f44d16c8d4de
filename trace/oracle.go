package trace

import (
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Oracle is perfect knowledge of how much work each job is: the sched.Remainer of runs marked as such.
type Oracle struct{ jobs []Job }

// Oracle returns the oracle of t, for a log in which job i of the trace has JobID i.
func (t *Trace) Oracle() Oracle { return Oracle{t.Jobs} }

var _ sched.Remainer = Oracle{}

// Remaining returns the true work of job j less the work its driver has reported, extrapolated to now.
func (o Oracle) Remaining(v *sched.View, j sched.JobID) time.Duration {
	return o.jobs[j].Duration - v.Jobs[j].WorkNow(v.Now)
}
