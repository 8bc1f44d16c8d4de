package restart

import (
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Rails keep a job from being stopped for others too soon and too often. The zero value sets no limits; see
// DefaultRails.
type Rails struct {
	MinRun   time.Duration // an attempt runs so long at least
	Restarts float64       // and so many times what its restart costs
	PerHour  int           // times that a job may be stopped within an hour; 0 = any number
}

// DefaultRails are those of the specification: five minutes, or ten times the cost of a restart, six times per hour.
//
// Source: specification of the manager, section 5.5, after KAI's issue 136; promise 16.
var DefaultRails = Rails{MinRun: 5 * time.Minute, Restarts: 10, PerHour: 6}

// From returns the time from which on the job may be stopped: its attempt started at a time, a restart costs so much,
// and it was stopped before at times, in order, of which the last PerHour count.
func (r Rails) From(started sched.Time, restart time.Duration, stopped []sched.Time) sched.Time {
	from := started.Add(max(r.MinRun, sched.Seconds(r.Restarts*restart.Seconds())))
	if n := len(stopped); r.PerHour > 0 && n >= r.PerHour {
		from = max(from, stopped[n-r.PerHour].Add(time.Hour))
	}
	return from
}
