package server

import (
	"testing"
	"time"

	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that the work in no checkpoint counts from the last save of the attempt that runs, from its start where it has
// not saved, at the speed that is known, and that nothing is said where a save may have been missed.
func TestUnsavedWork(t *testing.T) {
	const hour = time.Hour
	at := func(d time.Duration) sched.Time { return sched.Time(d) }
	job := func() *sched.Job {
		j := &sched.Job{Spec: &sched.JobSpec{GPUs: sched.Rigid(2)}, GPUs: []sched.GPUID{0, 1}, Attempts: 2,
			Attempt: sched.Running, Up: true, LastStart: at(10 * hour), WorkFrom: at(10 * hour), Rate: 1,
			Work: 3 * hour}
		j.SetBase(3 * hour)
		return j
	}
	for name, c := range map[string]struct {
		row    Row
		change func(*sched.Job)
		want   time.Duration
	}{
		"never saved":              {want: 2 * hour},
		"saved":                    {row: Row{SavedIn: 2, Saved: 4 * hour}, want: hour},
		"saved by the one before":  {row: Row{SavedIn: 1, Saved: 3 * hour}, want: 2 * hour},
		"saved more than is known": {row: Row{SavedIn: 2, Saved: 9 * hour}},
		"not heard of":             {row: Row{Unheard: 2}, change: func(j *sched.Job) { j.Evidence = sched.Seen }},
		"heard of since": {row: Row{Unheard: 2, SavedIn: 2, Saved: 4 * hour},
			change: func(j *sched.Job) { j.Evidence = sched.Seen }, want: hour},
		"not heard of, saves nothing": {row: Row{Unheard: 2}, want: 2 * hour},
		"stopping":                    {change: func(j *sched.Job) { j.Attempt = sched.Stopping }},
		"half as fast":                {change: func(j *sched.Job) { j.Rate = 0.5 }, want: hour},
		"of unknown speed":            {change: func(j *sched.Job) { j.Rate = 0 }, want: 2 * hour},
	} {
		j := job()
		if c.change != nil {
			c.change(j)
		}
		if got := unsaved(j, &c.row, at(12*hour)); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Ensure that the board shows the last save of an attempt, not that there was none.
func TestBoardShowsSaves(t *testing.T) {
	v := &sched.View{Jobs: []sched.Job{{Spec: &sched.JobSpec{}, Attempts: 3}}}
	b := host.NewBoard()
	for _, e := range []sched.Event{
		{Kind: sched.Saved, Attempt: 2, Code: sched.SavedWork, Work: time.Minute},
		{Kind: sched.Saved, Attempt: 3, Code: sched.SavedWork, Work: time.Hour},
		{Kind: sched.Saved, Attempt: 3, Code: sched.SavedNothing, Work: 9 * time.Hour},
		{Kind: sched.Saved, Attempt: 3, Code: sched.WentOn, Work: 9 * time.Hour},
	} {
		b.Log(v, &e)
	}
	if err := b.EndBatch(); err != nil {
		t.Fatal(err)
	}
	if row, _, _ := b.Row(0); row.Saved != time.Hour || row.SavedIn != 3 {
		t.Errorf("%+v, want an hour saved by attempt 3", row)
	}
}
