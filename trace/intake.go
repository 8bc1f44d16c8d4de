package trace

import (
	"slices"
	"strconv"

	"github.com/trainyard/trainyard/sched"
)

// intake collects the jobs of one file, in the order of its rows, and counts what it is given.
type intake struct {
	jobs  []Job
	lines []int32 // the line of each job
	// each takes a job as soon as it is read, instead of jobs, where it is then the only one; nil: jobs keeps all.
	each   func(*Job) error
	index  nameIndex
	column string // what the file calls the name of a job

	rows     int        // read, those left out included
	kept     int        // rows that are jobs
	latest   sched.Time // submission of the job read last
	earliest sched.Time // of all submissions
	unsorted bool       // a job was submitted before the one read before it
	leftOut  []Count    // rows that are no jobs, by reason
}

// slot returns an empty job behind those read.
func (t *intake) slot() *Job {
	if n := len(t.jobs); n < cap(t.jobs) {
		t.jobs = t.jobs[:n+1] // empty: what is left out is cleared
	} else {
		t.jobs = append(t.jobs, Job{})
	}
	return &t.jobs[len(t.jobs)-1]
}

// enter takes in the job in the slot returned last, which r has filled from the row at in, or clears the slot if the
// row is to be left out.
func (t *intake) enter(r *row, in *input) error {
	j := &t.jobs[len(t.jobs)-1]
	t.rows++
	if r.drop != "" {
		t.leftOut = tally(t.leftOut, r.drop)
		*j = Job{}
		t.jobs = t.jobs[:len(t.jobs)-1]
		return nil
	}
	if t.kept == MaxJobs && t.each == nil {
		return in.fail("more than %d jobs, want less", MaxJobs)
	}
	if j.Spec.Name == "" {
		j.Spec.Name = r.words.keep(strconv.Itoa(t.rows - 1))
	}
	t.count(j)
	if j.MilliGPU > 0 {
		r.odd(partsBooked)
	}
	if t.each != nil {
		return t.pass(j)
	}
	t.lines = append(t.lines, int32(in.line))
	if twin := t.index.add(t.jobs); twin >= 0 {
		return in.fail("%s %q, want a name of its own: line %d has it too", t.column, clip(j.Spec.Name), t.lines[twin])
	}
	return nil
}

// count counts j as the next job.
func (t *intake) count(j *Job) {
	if j.Spec.Submit < t.latest {
		t.unsorted = true
	}
	if t.latest = j.Spec.Submit; t.kept == 0 || t.latest < t.earliest {
		t.earliest = t.latest
	}
	t.kept++
}

// pass gives j, the only job held, to each and makes room for the next.
func (t *intake) pass(j *Job) error {
	err := t.each(j)
	*j = Job{}
	t.jobs = t.jobs[:0]
	return err
}

// partsBooked is odd about jobs until GPUs are shared by share.
const partsBooked = "ask for parts of a GPU: whole GPUs are booked for them"

// tally counts name in list, which is short.
func tally(list []Count, name string) []Count {
	i := slices.IndexFunc(list, func(c Count) bool { return c.Name == name })
	if i < 0 {
		return append(list, Count{name, 1})
	}
	list[i].Jobs++
	return list
}
