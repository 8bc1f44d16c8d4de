package whatif_test

import (
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/whatif"
)

// Ensure that the steps left take as long as those done, the time since the last report counted, and that of a job
// which does not say its steps, or how many it has, nothing is reported.
func TestStepsLeft(t *testing.T) {
	running := sched.Job{Spec: &sched.JobSpec{}, State: sched.Active, Attempt: sched.Running, Work: 20 * time.Second,
		WorkFrom: 100e9, Rate: 1}
	v := &sched.View{Now: 105e9, Jobs: []sched.Job{running, running, running,
		{Spec: &sched.JobSpec{}, State: sched.Done}}}
	var s whatif.Steps
	for _, e := range []sched.Event{
		{Kind: sched.Progressed, Job: 0, Work: 10 * time.Second, Value: 10},
		{Kind: sched.Progressed, Job: 0, Work: 20 * time.Second, Value: 40},
		{Kind: sched.JobCommanded, Job: 0, Work: 1, Value: 1},
		{Kind: sched.Progressed, Job: 1, Work: 20 * time.Second},
		{Kind: sched.Progressed, Job: 2, Work: 20 * time.Second, Value: 40},
		{Kind: sched.AttemptEnded, Job: 3, Work: 20 * time.Second, Value: 40},
	} {
		s.Log(v, &e)
	}
	left := s.Left(v, func(j sched.JobID, _ *sched.JobSpec) float64 { return []float64{100, 100, 0, 100}[j] })
	if d, ok := left(0); !ok || d != 25*time.Second {
		t.Errorf("%v, %v left of 50 s after 20 s and 5 s, want 25 s", d, ok)
	}
	for j := sched.JobID(1); j < 4; j++ {
		if d, ok := left(j); ok {
			t.Errorf("job %d has %v left, want nothing said", j, d)
		}
	}
}

// Ensure that the speed of a job is a guess from a start at a guessed rate until it is reported, or the attempt ends.
func TestGuessed(t *testing.T) {
	s, v := new(whatif.Steps), &sched.View{Jobs: make([]sched.Job, 2)}
	for i, c := range []struct {
		e    sched.Event
		want bool
	}{
		{sched.Event{Kind: sched.AttemptStarted, Rate: 1}, false},
		{sched.Event{Kind: sched.AttemptStarted, Rate: .5, Code: sched.GuessedRate}, true},
		{sched.Event{Kind: sched.Measured}, true},
		{sched.Event{Kind: sched.Progressed, Rate: .6}, false},
		{sched.Event{Kind: sched.AttemptStarted, Rate: .5, Code: sched.GuessedRate}, true},
		{sched.Event{Kind: sched.AttemptEnded}, false},
	} {
		s.Log(v, &c.e)
		if s.Guessed(0) != c.want || s.Guessed(1) {
			t.Errorf("event %d: a guess is %v, want %v", i, s.Guessed(0), c.want)
		}
	}
}
