package controller

import (
	"cmp"
	"slices"
	"time"

	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
)

// What was reported of a job goes out of date though nothing happens to it: others come, go and rank otherwise, nodes
// join, its service grows. Every retellEvery such jobs are reported again, a few at a time, as each costs the API
// server a write (ADR 26).
const (
	retellEvery = 10 * time.Second
	mostRetold  = 20          // jobs that are written in a pass
	ageEvery    = time.Minute // how old the service of a job that runs may come to be
	busyWrites  = 200         // of jobs since the last pass: then it is put off, ...
	mostPutOff  = time.Minute // ... for so long
)

// rounds is when jobs are looked at again whose status may be out of date.
type rounds struct {
	every   time.Duration // see Options
	due     sched.Time
	retold  sched.Time // when that was done last
	writes  int        // of jobs, since then
	settled time.Time  // from when on no earlier leader's write can come; zero = no batch was written yet
}

// shown is what a job's status says, as far as that goes out of date by itself.
type shown struct {
	reason string
	gist   gist
	wrote  sched.Time
	looked sched.Time // when it was seen last that this is so
}

// gist is what of a reason can be had at no cost: where it is another, so is the reason.
type gist struct {
	code  explain.Code // of a Brief
	stuck bool         // a GPU of its attempt may be on a node that does not answer
}

func (s *store) gistOf(brief *pipeline.Brief, id sched.JobID) gist {
	stuck := func(g sched.GPUID) bool { return s.v.GPUs[g].State == sched.GPUStuck }
	return gist{brief.Why(id).Code, slices.ContainsFunc(s.v.Jobs[id].GPUs, stuck)}
}

// wake returns when a batch is wanted though nothing happens; Never while there is nothing that could go out of date.
func (s *store) wake() sched.Time {
	if len(s.live)-s.over+len(s.remarks) == 0 {
		return sched.Never
	}
	return s.rounds.due
}

// retell touches jobs of which something else is to be reported now: first those that wait for another kind of thing,
// then those whose status was looked at longest ago. It looks at so many only as the order of the system may be asked
// for, and while much is written anyway it leaves the API server to that.
func (s *store) retell() {
	now := s.v.Now
	if now < s.rounds.due {
		return
	}
	s.rounds.due = now.Add(cmp.Or(s.rounds.every, retellEvery))
	s.remind()
	s.writeOverLate()
	if busy := s.rounds.writes > busyWrites; busy && now < s.rounds.retold.Add(mostPutOff) {
		s.rounds.writes = 0
		return
	}
	s.rounds.writes, s.rounds.retold = 0, now
	brief, n := pipeline.NewBrief(s.v, s.dec), 0
	for _, id := range s.outOfDate(brief) {
		mine := &s.jobs[id].shown
		mine.looked = now
		if s.reason(id, brief.Counted(id)) == mine.reason && !s.isOld(id) {
			mine.gist = s.gistOf(brief, id)
			continue
		}
		s.touch(id)
		if n++; n == mostRetold {
			return
		}
	}
}

// outOfDate returns jobs whose status may be out of date, those first of which that is most likely.
func (s *store) outOfDate(brief *pipeline.Brief) []sched.JobID {
	var other, rest []sched.JobID
	for _, id := range s.live {
		j, mine := &s.v.Jobs[id], s.jobs[id]
		switch {
		case mine.touched || j.State == sched.Done:
		case s.gistOf(brief, id) != mine.shown.gist:
			other = append(other, id)
		case !j.Up || s.isOld(id):
			rest = append(rest, id)
		}
	}
	byLook := func(a, b sched.JobID) int {
		return cmp.Or(cmp.Compare(s.jobs[a].shown.looked, s.jobs[b].shown.looked), cmp.Compare(a, b))
	}
	slices.SortFunc(other, byLook)
	slices.SortFunc(rest, byLook)
	list := slices.Concat(other, rest)
	return list[:min(len(list), fullReasons)]
}

// isOld reports whether the service that is reported of a job that runs is out of date.
func (s *store) isOld(id sched.JobID) bool {
	return s.v.Jobs[id].Up && s.v.Now >= s.jobs[id].shown.wrote.Add(ageEvery)
}
