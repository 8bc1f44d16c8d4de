package sim_test

import (
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that the penalty is for a preemption alone: who cancels a job is given the work it has done, at once or after
// a delay.
func TestPenaltyOfPreemptionOnly(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Second} {
		for why, want := range map[sched.Outcome]time.Duration{sched.Preempted: 2 * time.Second,
			sched.Cancelled: 4 * time.Second} {
			r := sim.Runtime{StopDelay: delay, Penalty: func(w int) time.Duration {
				return time.Duration(w) * time.Second
			}}
			d := open(t, sim.Options{Runtime: r}, "1x2", job(0, 2, 10*time.Second))
			next(t, d, sched.Never)
			apply(t, d, start(0, 1, 0, 1))
			next(t, d, sched.Never)
			next(t, d, 4e9)
			apply(t, d, sched.Action{Kind: sched.Stop, Job: 0, Attempt: 1, Why: why})
			e := next(t, d, sched.Never)
			if len(e) != 1 || e[0].Kind != sched.AttemptEnded || e[0].Outcome != why || e[0].Work != want ||
				e[0].Time != sched.Time(4e9).Add(delay) {
				t.Errorf("stop delay %v: %+v, want it %v with %v of work", delay, e, why, want)
			}
		}
	}
}
