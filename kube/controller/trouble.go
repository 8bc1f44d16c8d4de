package controller

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/sched"
)

// mostTrouble is how many bytes of what went wrong a status says.
const mostTrouble = 500

// delayed notes what keeps the live attempt of a job from starting.
func (s *store) delayed(id sched.JobID, why string) {
	s.touch(id)
	s.jobs[id].delay = why
}

// heldBecause stands in the reason of a job before why it is held.
const heldBecause = "held: "

// holds notes why a job is held. It may be about to arrive.
func (s *store) holds(id sched.JobID, why string) {
	if mine := s.jobs[id]; mine != nil && mine.hold == why {
		return
	}
	s.touch(id)
	said := s.jobs[id].hold != ""
	if s.jobs[id].hold = why; said {
		s.say(id, corev1.EventTypeWarning, reportedHeld, why)
	}
}

// whyHeld returns why a job is held, for people; "": it is not.
func (s *store) whyHeld(id sched.JobID) string {
	j, mine := &s.v.Jobs[id], s.jobs[id]
	if mine == nil || mine.hold == "" || !j.Paused || j.HoldsDevices() {
		return ""
	}
	return heldBecause + cut(mine.hold, mostTrouble)
}

// holdOf returns why a job is held, as the reason says that an earlier leader wrote.
func holdOf(reason string, j *sched.Job) (why string) {
	if j.Paused && j.State == sched.Held {
		_, why, _ = strings.Cut(reason, heldBecause)
	}
	return why
}

// notice remembers what went wrong with a job last, until an attempt of it is up.
func (s *store) notice(e *sched.Event) {
	switch e.Kind {
	case sched.AttemptStarted, sched.StartFailed, sched.AttemptEnded:
		s.jobs[e.Job].delay = ""
	}
	switch e.Kind {
	case sched.AttemptStarted:
		s.jobs[e.Job].trouble = ""
	case sched.StartFailed:
		s.jobs[e.Job].trouble = e.Text
	case sched.Rejected:
		s.jobs[e.Job].trouble = sentences(s.v, time.Time{}).Refusal(e.Why)
	case sched.AttemptEnded:
		s.jobs[e.Job].trouble = ""
		if e.Outcome == sched.Failed || e.Outcome == sched.NodeLost {
			s.jobs[e.Job].trouble = e.Text
		}
	}
}

// troubleOf returns what the reason of a job says went wrong, as explained put it, for a leader that was not there: it
// is all that is kept of it.
func troubleOf(reason string, j *sched.Job) (trouble string) {
	switch {
	case j.HoldsDevices() || j.State == sched.Done:
		// of the first nothing is said, of the second nothing is reported again
	case j.StartFailures > 0:
		_, trouble, _ = strings.Cut(reason, inARow)
	case j.State == sched.Held:
		_, trouble, _ = strings.Cut(reason, ": ")
	}
	return trouble
}

// inARow stands before what was wrong with the last of some starts.
const inARow = " in a row: "

// explained adds to the reason why a job is where it is what went wrong with it, or delays its start, where that is
// why.
func explained(reason string, j *sched.Job, trouble, delay string) string {
	trouble = cut(trouble, mostTrouble)
	switch {
	case j.Attempt == sched.Starting && delay != "":
		return reason + ": " + cut(delay, mostTrouble)
	case trouble == "":
		return reason
	case j.State == sched.Done:
		return reason + ": " + trouble
	case j.StartFailures > 0 && !j.HoldsDevices():
		return fmt.Sprintf("%s; its start failed, %d%s%s", reason, j.StartFailures, inARow, trouble)
	case j.State == sched.Held:
		return reason + ": " + trouble
	}
	return reason
}
