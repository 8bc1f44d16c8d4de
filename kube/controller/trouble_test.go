package controller

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that a status says what went wrong where that is why its job is where it is, and no longer.
func TestExplained(t *testing.T) {
	s := &store{jobs: map[sched.JobID]*saved{0: {}}}
	j := new(sched.Job)
	for _, c := range []struct {
		e    sched.Event
		j    sched.Job
		want string
	}{
		{sched.Event{Kind: sched.StartFailed, Text: "no image"}, sched.Job{State: sched.Held, StartFailures: 2},
			"waits; its start failed, 2 in a row: no image"},
		{sched.Event{Kind: sched.Ordered}, sched.Job{State: sched.Active, StartFailures: 2, Attempt: sched.Starting},
			"waits"},
		{sched.Event{Kind: sched.AttemptStarted}, sched.Job{State: sched.Active, Attempt: sched.Running}, "waits"},
		{sched.Event{Kind: sched.AttemptEnded, Outcome: sched.Preempted, Text: "stopped as ordered"},
			sched.Job{State: sched.Waiting}, "waits"},
		{sched.Event{Kind: sched.AttemptEnded, Outcome: sched.NodeLost, Text: "node n is gone"},
			sched.Job{State: sched.Held}, "waits: node n is gone"},
		{sched.Event{Kind: sched.AttemptEnded, Outcome: sched.Failed, Text: "exit code 137 (OOMKilled)"},
			sched.Job{State: sched.Done}, "waits: exit code 137 (OOMKilled)"},
	} {
		*j = c.j
		s.notice(&c.e)
		if got := explained("waits", j, s.jobs[0].trouble, ""); got != c.want {
			t.Errorf("%v: %s, want %s", c.e.Kind, got, c.want)
		}
	}
}

// Ensure that a leader that was not there says what went wrong as the one before it did, however often they change.
func TestTroubleIsKept(t *testing.T) {
	long := strings.Repeat("x", 2*mostTrouble)
	for _, j := range []sched.Job{{State: sched.Held, StartFailures: 2}, {State: sched.Waiting, StartFailures: 1},
		{State: sched.Held}, {State: sched.Waiting}} {
		for _, trouble := range []string{"pod a-1-0 waits (ErrImagePull: no such image: x)", "", long} {
			said := explained("not to start before 15:04:05 UTC", &j, trouble, "")
			for range 3 {
				if got := explained("not to start before 15:04:05 UTC", &j, troubleOf(said, &j), ""); got != said {
					t.Errorf("%v after %d failed starts: %q, want %q", j.State, j.StartFailures, got, said)
				}
			}
		}
	}
}

// Ensure that a status says what keeps an attempt from starting, until it has started or will not.
func TestDelayed(t *testing.T) {
	s := &store{jobs: map[sched.JobID]*saved{0: {}}}
	starting := &sched.Job{State: sched.Active, Attempt: sched.Starting}
	s.delayed(0, "no such image")
	if got := explained("starts on n/0", starting, "", s.jobs[0].delay); got != "starts on n/0: no such image" ||
		len(s.touched) != 1 {
		t.Errorf("%s, %d touched", got, len(s.touched))
	}
	for _, kind := range []sched.EventKind{sched.AttemptStarted, sched.StartFailed, sched.AttemptEnded} {
		s.delayed(0, "no such image")
		if s.notice(&sched.Event{Kind: kind}); s.jobs[0].delay != "" {
			t.Errorf("after %v: %s", kind, s.jobs[0].delay)
		}
	}
}

// Ensure that a setting which the system does not take is reported, and which it does.
func TestCheckKeys(t *testing.T) {
	p := &v1alpha1.SchedulerPolicySpec{System: "fifo", Settings: map[string]string{"powercap": "1"}}
	want := `system: fifo takes no key "powercap" (did you mean "power_cap"?); it takes `
	if err := checkKeys(p); !strings.HasPrefix(fmt.Sprint(err), want) {
		t.Error(err)
	}
	if p.Settings = nil; checkKeys(p) != nil {
		t.Error("want no error without settings")
	}
}
