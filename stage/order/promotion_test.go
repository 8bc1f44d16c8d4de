package order_test

import (
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Ensure that a job of the first queue is not promoted however long it waits: nothing is noted, nothing is due, and
// neither its service nor its clocks start again.
func TestNoPromotionInsideTheFirstQueue(t *testing.T) {
	o, v := mlfq(t, []float64{20}, 2), running() // attained 8 GPU-seconds in 4 s
	j := &v.Jobs[0]
	o.Took(v, 0)
	o.Key(v, 0)
	o.Lost(v, 0)
	j.Up, j.Attempt, j.State, j.GPUs = false, sched.Ended, sched.Waiting, nil
	for _, at := range []sched.Time{10e9, 18e9, 100e9} {
		v.Now = at
		if k, until := o.Key(v, 0); k.Level != 1 || until != sched.Never {
			t.Fatalf("at %v level %d until %v, want 1 for ever", at, k.Level, until)
		}
	}
	if n := o.Notes(); len(n) != 0 {
		t.Fatalf("noted %+v", n)
	}
	j.Up, j.Attempt, j.State, j.GPUs, j.Settled, j.WorkFrom = true, sched.Running, sched.Active, []sched.GPUID{0, 1},
		100e9, 100e9
	o.Took(v, 0)
	if k, until := o.Key(v, 0); k.Level != 0 || until != 106e9 { // 20 - 8 GPU-seconds on 2 GPUs
		t.Fatalf("level %d until %v, want 0 until 106 s: service counts from the arrival", k.Level, until)
	}
	j.Run, j.Service, j.Settled, v.Now = 10*time.Second, 20, 106e9, 106e9
	o.Key(v, 0)
	o.Lost(v, 0)
	j.Up, j.Attempt, j.State, j.GPUs = false, sched.Ended, sched.Waiting, nil
	// It ran 10 s and waited 90 s before already, so the promotion is overdue as soon as it is demoted.
	if k, _ := o.Key(v, 0); k.Level != 1 {
		t.Fatalf("level %d, want 1: it had waited 90 s for 10 s of running", k.Level)
	}
	n := o.Notes()
	if len(n) != 2 || n[0].Why.Code != sched.WhyDemoted || n[1].Why.Code != sched.WhyPromoted || n[1].Why.A != 90 ||
		n[1].Why.B != 10 {
		t.Fatalf("noted %+v, want a demotion, then a promotion after 90 s for 10 s", n)
	}
}
