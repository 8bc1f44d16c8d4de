package controller

import (
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Ensure that what attempts lose is counted as run time: by the rate at which they work, up to the order to stop, and
// of those alone that did not finish.
func TestMeasure(t *testing.T) {
	at := func(seconds int) sched.Time { return sched.Time(time.Duration(seconds) * time.Second) }
	j := sched.Job{Attempt: sched.Running, Up: true, Attempts: 1, Rate: 2}
	v := &sched.View{Jobs: []sched.Job{j}}
	s := &store{jobs: map[sched.JobID]*saved{0: {}}}
	report := func(e sched.Event) { s.measure(v, &e) }
	report(sched.Event{Time: 0, Kind: sched.AttemptStarted, Attempt: 1})
	v.Jobs[0].Attempt = sched.Stopping
	report(sched.Event{Time: at(100), Kind: sched.Ordered, Attempt: 1})
	report(sched.Event{Time: at(130), Kind: sched.GPUChanged})
	v.Jobs[0].Attempt, v.Jobs[0].Up = sched.Ended, false
	report(sched.Event{Time: at(140), Kind: sched.AttemptEnded, Attempt: 1, Outcome: sched.Preempted,
		Work: 160 * time.Second})
	if s.jobs[0].lost != 20*time.Second {
		t.Errorf("%v lost, want 20s: 200 s of work were done by the order, 160 s are kept, at rate 2", s.jobs[0].lost)
	}
	v.Jobs[0] = sched.Job{Attempt: sched.Running, Up: true, Attempts: 2, Rate: 1, Work: 160 * time.Second,
		WorkFrom: at(200)}
	report(sched.Event{Time: at(200), Kind: sched.AttemptStarted, Attempt: 2})
	v.Jobs[0].Attempt, v.Jobs[0].Up = sched.Ended, false
	report(sched.Event{Time: at(230), Kind: sched.AttemptEnded, Attempt: 2, Outcome: sched.NodeLost,
		Work: 165 * time.Second})
	report(sched.Event{Time: at(240), Kind: sched.AttemptEnded, Attempt: 3, Outcome: sched.Preempted})
	if s.jobs[0].lost != 45*time.Second {
		t.Errorf("%v lost, want 25s more of a node that was lost, and nothing of an attempt that never worked",
			s.jobs[0].lost)
	}
	v.Jobs[0] = sched.Job{Attempt: sched.Running, Up: true, Attempts: 4, Rate: 1}
	report(sched.Event{Time: at(300), Kind: sched.AttemptStarted, Attempt: 4})
	report(sched.Event{Time: at(400), Kind: sched.AttemptEnded, Attempt: 4, Outcome: sched.Finished,
		Work: 50 * time.Second})
	if s.jobs[0].lost != 45*time.Second {
		t.Errorf("%v lost, want nothing more: it has finished", s.jobs[0].lost)
	}
}
