package timeline_test

import (
	"testing"
	"time"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/sched"
)

const second = sched.Time(time.Second)

// script folds events into a state and a timeline.
type script struct {
	state *engine.State
	line  *timeline.Timeline
}

func (s *script) at(t sched.Time, events ...sched.Event) {
	for i := range events {
		e := events[i]
		e.Time = t * second
		s.state.Apply(&e)
		s.line.Log(s.state.View(), &e)
	}
}

// attempt starts attempt n of job 0 on both GPUs at a time, and has it work 2 s later.
func (s *script) attempt(n int32, t sched.Time, work time.Duration) {
	gpus := []sched.GPUID{0, 1}
	target := &sched.Target{Job: 0, Want: 2, GPUs: sched.Span{Len: 2}}
	s.at(t, sched.Event{Kind: sched.Decided, Job: 0, GPUs: gpus, Target: target},
		sched.Event{Kind: sched.Ordered, Job: 0, Attempt: n, Node: sched.None, Code: int32(sched.Start)},
		sched.Event{Kind: sched.AttemptStarted, Job: 0, Attempt: n, WorkFrom: (t + 2) * second, Work: work, Rate: 1})
}

// preempt stops attempt n at a time, and ends it 1 s later with the work that is said to be kept.
func (s *script) preempt(n int32, t sched.Time, kept time.Duration) {
	s.at(t, sched.Event{Kind: sched.Decided, Job: 0, Target: &sched.Target{Job: 0}},
		sched.Event{Kind: sched.Ordered, Job: 0, Attempt: n, Node: sched.None, Code: int32(sched.Stop),
			Outcome: sched.Preempted})
	s.at(t+1, sched.Event{Kind: sched.AttemptEnded, Job: 0, Attempt: n, Outcome: sched.Preempted, Work: kept})
}

// Ensure that work is redone from where the last save left off, and that all of it is, later, once an attempt starts
// from zero although work was said to be kept: what the engine says that the job lost is what the classes say.
func TestFromZero(t *testing.T) {
	for code, want := range map[int32]sched.Evidence{sched.FromZero: sched.ResumesNot,
		sched.StartedOver: sched.NoEvidence} {
		fromZero(t, code, want)
	}
}

// fromZero checks an attempt that shows so by a code, after which the evidence is as wanted.
func fromZero(t *testing.T, code int32, want sched.Evidence) {
	t.Helper()
	s := &script{engine.NewState(eventlog.Header{}), new(timeline.Timeline)}
	s.at(0, sched.Event{Kind: sched.NodeJoined, NodeSpec: &sched.NodeSpec{Name: "n", GPUs: 2, Pool: sched.None}},
		sched.Event{Kind: sched.JobArrived, Spec: &sched.JobSpec{Name: "j", GPUs: sched.Rigid(2)}})
	s.attempt(1, 0, 0)
	s.preempt(1, 12, 6*time.Second) // worked from 2 to 12, kept 6 s
	if got := s.line.Losses(); got.By[timeline.Useful] != timeline.AreaOf(2, 6*time.Second) ||
		got.By[timeline.Redone] != timeline.AreaOf(2, 4*time.Second) {
		t.Errorf("useful %v, redone %v, want 6 and 4 s of two GPUs", got.By[timeline.Useful], got.By[timeline.Redone])
	}
	s.attempt(2, 20, 6*time.Second)
	s.preempt(2, 32, 16*time.Second) // worked from 22 to 32, kept all
	s.attempt(3, 40, 0)
	s.at(41, sched.Event{Kind: sched.Saved, Job: 0, Attempt: 3, Code: code})
	got := s.line.Losses()
	if got.By[timeline.Useful] != (timeline.Area{}) || got.By[timeline.Redone] != timeline.AreaOf(2, 20*time.Second) {
		t.Errorf("useful %v, redone %v, want none and 20 s of two GPUs", got.By[timeline.Useful],
			got.By[timeline.Redone])
	}
	if e := s.state.View().Jobs[0].Evidence; e != want {
		t.Errorf("evidence %v after code %d, want %v", e, code, want)
	}
	// the engine counts the time to stop in addition, at the speed of the attempt: 10 s of work in the 12 s that it was
	// up
	idle := 2 * sched.ScaleDuration(time.Second, 10./12)
	if lost := s.state.View().Jobs[0].Loss().Work; lost-idle != 20*time.Second {
		t.Errorf("the engine says that %v of work were lost, want 20 s, and %v to stop", lost, idle)
	}
}

// Ensure that an attempt which its user stopped, or that failed, is redone as well once one starts over, though that is
// no loss to others, and that what the new one does counts from nothing.
func TestStartsOver(t *testing.T) {
	s := &script{engine.NewState(eventlog.Header{}), new(timeline.Timeline)}
	s.at(0, sched.Event{Kind: sched.NodeJoined, NodeSpec: &sched.NodeSpec{Name: "n", GPUs: 2, Pool: sched.None}},
		sched.Event{Kind: sched.JobArrived, Spec: &sched.JobSpec{Name: "j", GPUs: sched.Rigid(2)}})
	s.attempt(1, 0, 0)
	s.at(12, sched.Event{Kind: sched.JobCommanded, Job: 0, Code: int32(sched.RequeueJob)})
	s.preempt(1, 12, 10*time.Second) // worked from 2 to 12, and said that it kept all
	s.attempt(2, 20, 10*time.Second)
	s.at(24, sched.Event{Kind: sched.Saved, Job: 0, Attempt: 2, Code: sched.StartedOver})
	if got := s.line.Losses(); got.By[timeline.Redone] != timeline.AreaOf(2, 10*time.Second) {
		t.Errorf("redone %v, want 10 s of two GPUs", got.By[timeline.Redone])
	}
	j := &s.state.View().Jobs[0]
	if l := j.Loss(); l.Work != 0 || l.Base != 0 {
		t.Errorf("%+v lost to others, want nothing, from nothing", l)
	}
	if open := j.Unsaved(24*sched.Time(time.Second), j.Loss().Base); open != 2*time.Second {
		t.Errorf("%v of work at stake, want the 2 s since it came up", open)
	}
}
