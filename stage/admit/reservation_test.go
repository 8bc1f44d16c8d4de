package admit_test

import (
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/admit"
	"github.com/trainyard/trainyard/stage/place"
)

// Ensure that a reservation waits for the whole restart of the holder it stands behind: what ends by then may start.
func TestReservationBehindARestart(t *testing.T) {
	for _, c := range []struct {
		name     string
		attempt  sched.AttemptState
		workFrom sched.Time
		want     time.Duration // from now to the reservation
	}{
		{"running", sched.Running, 90e9, 5 * time.Second},
		{"restarting", sched.Running, 107e9, 12 * time.Second},
		{"not started yet", sched.Starting, 0, 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := view(3, 4, 1, 1) // 0 holds, 1 does not fit
			v.Jobs[0].Attempt, v.Jobs[0].WorkFrom = c.attempt, c.workFrom
			l := sched.NewLedger(v)
			l.Book(0, []sched.GPUID{0, 1, 2})
			e := &admit.Easy{Work: sizes{5 * time.Second, time.Second, c.want, c.want + 1}, Place: place.Count{}}
			e.Begin(v, l)
			e.Misfit(v, l, 1)
			if !e.May(v, 2, []sched.GPUID{3}) {
				t.Errorf("a job of %v may not start: the reservation is too early", c.want)
			}
			if e.May(v, 3, []sched.GPUID{3}) {
				t.Errorf("a job longer than %v may start: the reservation is too late", c.want)
			}
		})
	}
}

// Ensure that ends are put in order with restarts counted in: where the place is depends on it.
func TestReservationTakesWhoEndsFirst(t *testing.T) {
	v := view(2, 2, 2, 2) // 0 and 1 hold; 0 has less to do but restarts
	v.Jobs[0].WorkFrom = 110e9
	l := sched.NewLedger(v)
	l.Book(0, []sched.GPUID{0, 1})
	l.Book(1, []sched.GPUID{2, 3})
	e := &admit.Easy{Work: sizes{time.Second, 5 * time.Second, time.Second, 20 * time.Second}, Place: place.Count{}}
	e.Begin(v, l)
	e.Misfit(v, l, 2)
	if !e.May(v, 3, []sched.GPUID{0, 1}) || e.May(v, 3, []sched.GPUID{2, 3}) {
		t.Error("the reservation is not on the GPUs of job 1, which ends first")
	}
}
