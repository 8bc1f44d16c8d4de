package explain

import "github.com/trainyard/trainyard/sched"

// Foretold is a forecast of a job as it was given to someone who asked.
type Foretold struct {
	At         sched.Time // it was given
	Job        sched.JobID
	System     string // that decided then
	Start, End Span   // see Estimate
}
