package trace

import "time"

// row turns the values of one row into a job: columns that are fields of a Job at once, the others by way of said, from
// which the format's finish makes the rest. It is used for all rows of a file, one by one.
type row struct {
	unit    time.Duration // of times
	clock   fileClock
	words   words
	said    said
	drop    string  // why the row is no job; "": it is one
	clamped int     // rows that say their duration is clamped
	odds    []Count // what is odd about how many jobs

	steps   *StepTimes // how long iterations take; nil: not known
	roughly bool       // a job without a duration is no error
	pai     paiTables
}

// said is what a row says in columns that are no field of a Job.
type said struct {
	iterations   float64
	start, end   time.Duration // -1: not said
	width        int
	parts        float64
	copies       float64
	factor       float64
	asked, given string
}

// leaveOut marks the row as no job to be scheduled, with the reason.
func (r *row) leaveOut(why string) { r.drop = why }

// odd notes that one more job is odd in some way.
func (r *row) odd(how string) { r.odds = tally(r.odds, how) }

// ran gives j the run time between the start and the end that the row said, or leaves the row out.
func (r *row) ran(j *Job) {
	switch {
	case r.said.start < 0:
		r.leaveOut(neverBegan)
	case r.said.end < 0:
		r.leaveOut(neverEnded)
	case r.said.end < r.said.start:
		r.leaveOut(endsBefore)
	default:
		j.Duration = r.said.end - r.said.start
	}
}
