package controller

import (
	"fmt"

	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/sched"
)

// mostTrouble is how many bytes of what went wrong a status says.
const mostTrouble = 500

// delayed notes what keeps the live attempt of a job from starting.
func (s *store) delayed(id sched.JobID, why string) {
	s.touch(id)
	s.jobs[id].delay = why
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
		s.jobs[e.Job].trouble = record.Refusal(e.Why)
	case sched.AttemptEnded:
		s.jobs[e.Job].trouble = ""
		if e.Outcome == sched.Failed || e.Outcome == sched.NodeLost {
			s.jobs[e.Job].trouble = e.Text
		}
	}
}

// explained adds to the reason why a job is where it is what went wrong with it, or delays its start, where that is why.
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
		return fmt.Sprintf("%s; its start failed, %d in a row: %s", reason, j.StartFailures, trouble)
	case j.State == sched.Held:
		return reason + ": " + trouble
	}
	return reason
}
