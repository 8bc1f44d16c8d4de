package server

import (
	"maps"
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Ensure that GPU time that a job has to spend again counts for the cause of the end of its attempt: what it made
// beyond what is kept, and the time to start; also of an attempt that started before the meter did. What is not done
// again does not count, nor what the View counts.
func TestWastedByCause(t *testing.T) {
	const minute = time.Minute
	at := func(d time.Duration) sched.Time { return sched.Time(d) }
	running := func() sched.Job {
		return sched.Job{Spec: &sched.JobSpec{GPUs: sched.Rigid(2)}, GPUs: []sched.GPUID{0, 1}, Attempts: 1,
			State: sched.Active, Attempt: sched.Running, Up: true, LastStart: at(10 * minute),
			WorkFrom: at(10 * minute),
			Rate:     1, Began: at(9 * minute)}
	}
	for name, c := range map[string]struct {
		change  func(*sched.Job) // before the end
		outcome sched.Outcome
		kept    time.Duration
		state   sched.JobState // after it
		want    map[string]float64
	}{
		"failed, tried again": {outcome: sched.Failed, state: sched.Waiting,
			want: map[string]float64{wastedByFailure: 2 * 21 * 60}},
		"failed, most is kept": {outcome: sched.Failed, kept: 15 * minute, state: sched.Held,
			want: map[string]float64{wastedByFailure: 2 * 6 * 60}},
		"failed for good": {outcome: sched.Failed, state: sched.Done},
		"node lost": {outcome: sched.NodeLost, state: sched.Waiting,
			want: map[string]float64{wastedByNode: 2 * 21 * 60}},
		"requeued": {change: func(j *sched.Job) { j.Requeued = true }, outcome: sched.Preempted, state: sched.Waiting,
			want: map[string]float64{wastedByUser: 2 * 21 * 60}},
		"paused": {change: func(j *sched.Job) { j.Paused = true }, outcome: sched.Preempted, kept: 20 * minute,
			state: sched.Held, want: map[string]float64{wastedByUser: 2 * 60}},
		"for others": {outcome: sched.Preempted, state: sched.Waiting},
		"cancelled":  {change: func(j *sched.Job) { j.Cancel = true }, outcome: sched.Cancelled, state: sched.Done},
		"finished":   {outcome: sched.Finished, state: sched.Done},
	} {
		for _, heard := range []bool{true, false} { // of what came before the end
			v := &sched.View{Jobs: []sched.Job{running()}}
			m := NewMeter()
			if !heard {
				if c.change != nil {
					c.change(&v.Jobs[0])
				}
				m.Restart(v)
			} else {
				m.Log(v, &sched.Event{Kind: sched.AttemptStarted, Attempt: 1})
				if c.change != nil {
					c.change(&v.Jobs[0])
					m.Log(v, &sched.Event{Kind: sched.JobCommanded})
				}
			}
			j := &v.Jobs[0]
			j.GPUs, j.Up, j.Attempt, j.State, j.Work, j.Rate = nil, false, sched.Ended, c.state, c.kept, 0
			for range 2 { // the same attempt ends once
				m.Log(v, &sched.Event{Kind: sched.AttemptEnded, Time: at(30 * minute), Attempt: 1, Outcome: c.outcome,
					Work: c.kept})
			}
			want := map[string]float64{wastedByUser: 0, wastedByFailure: 0, wastedByNode: 0}
			maps.Copy(want, c.want)
			if got := m.wasted.all(); !maps.Equal(got, want) {
				t.Errorf("%s, heard of before %t: %v, want %v", name, heard, got, want)
			}
		}
	}
}
