package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/trainyard/trainyard/internal/inputfile"
	"github.com/trainyard/trainyard/sched"
)

// attempts is the truth about the jobs and a list of those with an attempt.
type attempts struct {
	state []jobState    // by JobID
	live  []sched.JobID // with an attempt, in no particular order
	over  int           // jobs that finished or were cancelled while they ran
	idle  int           // attempts in a row that ended before they did any work
	// attempts in a row that did work, kept nothing of it and were stopped for others, since a job arrived, or a node
	// came
	vain  int
	since sched.Time // the first of them ended
}

// jobState is the truth about one job.
type jobState struct {
	done       time.Duration // work done up to from
	before     time.Duration // of it when the attempt started
	reported   time.Duration // of it in the last report
	reportedAt sched.Time
	began      sched.Time // the attempt does work from here
	from       sched.Time // work goes on from here at rate
	rate       float64
	starts     int32
	attempt    int32
	phase      phase
	watched    bool
	epoch      int32 // the end to be reported next; ends queued before a watch was renewed are not
	pace       int32 // raised whenever rate changes: what was queued at another pace is void
	reports    int32 // made so far
	liveAt     int32 // index in attempts.live
	gpus       []sched.GPUID
	config     sched.Config
	stopping   sched.Outcome
}

type phase uint8

const (
	idle phase = iota
	starting
	running
	stopping
)

// add lists job id, which gets an attempt.
func (a *attempts) add(id sched.JobID) {
	a.state[id].liveAt = int32(len(a.live))
	a.live = append(a.live, id)
}

// remove takes job id, whose attempt is over, off the list.
func (a *attempts) remove(id sched.JobID) {
	last, at := a.live[len(a.live)-1], a.state[id].liveAt
	a.live[at] = last
	a.state[last].liveAt = at
	a.live = a.live[:len(a.live)-1]
}

// Bounds of a simulation that goes in circles and is given up.
const (
	maxIdle   = 100_000 // attempts in a row that end without any work done
	maxVain   = 100     // attempts in a row that keep nothing, for each job that is not done; at least leastVain in all
	leastVain = 10_000
)

// circles returns why the simulation goes on for ever, nil if nothing shows that it does: while some attempt goes on
// from before a row of vain ones, its end may change all. known is how many jobs have arrived.
func (a *attempts) circles(known int) error {
	switch {
	case a.idle > maxIdle:
		return inputfile.WrongAsk(fmt.Errorf("sim: %d attempts in a row were stopped before they did any work: jobs "+
			"preempt each other faster than they restart; set min_run above restart_overhead", a.idle))
	case a.vain <= max(leastVain, maxVain*(known-a.over)):
		return nil
	case slices.ContainsFunc(a.live, func(id sched.JobID) bool { return a.state[id].began < a.since }):
		a.vain = 0
		return nil
	}
	return inputfile.WrongAsk(fmt.Errorf("sim: %d attempts in a row were stopped and had saved nothing: jobs that "+
		"lose all work at each stop never end so; set unsaved=leave, or min_run", a.vain))
}

// workAt returns the work done up to a time.
func (j *jobState) workAt(at sched.Time) time.Duration {
	return j.done + sched.ScaleDuration(max(at.Sub(j.from), 0), j.rate)
}

// saved returns the work at the last checkpoint of a job that saves itself so often. What was done since is reckoned at
// the present rate.
func (j *jobState) saved(now sched.Time, every time.Duration) time.Duration {
	if j.phase != running {
		return j.done
	}
	since, lost := max(now.Sub(j.from), 0), time.Duration(0)
	if every > 0 {
		lost = max(now.Sub(j.began), 0) % every
	}
	if lost <= since {
		return j.done + sched.ScaleDuration(since-lost, j.rate)
	}
	return max(j.before, j.done-sched.ScaleDuration(lost-since, j.rate))
}
