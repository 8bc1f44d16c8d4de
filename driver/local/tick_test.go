package local

import (
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that a wake-up comes at its very time, before what happened after it: systems that look at the order on a grid
// of time miss a turn otherwise.
func TestTickComesFirst(t *testing.T) {
	d := open(t, t.TempDir(), 1, 1)
	box, v := host.NewMailbox(), new(sched.View)
	desk := host.NewDesk(box, d, d.o.Origin)
	if _, err := desk.Sync(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	until := d.Now().Add(time.Millisecond)
	for d.clock() < until {
		time.Sleep(time.Millisecond)
	}
	box.Command(0, sched.CancelJob)
	for i, want := range []sched.EventKind{sched.Ticked, sched.JobCommanded} {
		events, err := desk.Next(t.Context(), []sched.Time{until, sched.Never}[i])
		if err != nil || len(events) != 1 || events[0].Kind != want || (events[0].Time == until) != (i == 0) {
			t.Errorf("answer %d: %+v, %v, want one %v", i, events, err, want)
		}
		v.Now = events[0].Time
	}
	box.Command(0, sched.CancelJob)
	if events, err := desk.Next(t.Context(), until); err != nil || len(events) != 1 ||
		events[0].Kind != sched.JobCommanded {
		t.Errorf("a time long past keeps back what happened: %+v, %v", events, err)
	}
}

// Ensure that an end known as soon as its start is reported in an answer of its own, and with it, not before, the
// device that it left in use: no decision sees a device in use by no one while a job runs on it.
func TestEndBringsItsDevices(t *testing.T) {
	d := open(t, t.TempDir(), 2, 1)
	d.later = []sched.Event{{Kind: sched.AttemptStarted, Attempt: 1}, {Kind: sched.AttemptEnded, Attempt: 1},
		{Kind: sched.GPUChanged, Code: int32(sched.GPUStuck)}}
	for i, want := range [][]sched.EventKind{{sched.AttemptStarted}, {sched.AttemptEnded, sched.GPUChanged}, nil} {
		var got []sched.EventKind
		for _, e := range d.collect(d.Now()) {
			got = append(got, e.Kind)
		}
		if !slices.Equal(got, want) {
			t.Errorf("answer %d: %v, want %v", i, got, want)
		}
	}
}
