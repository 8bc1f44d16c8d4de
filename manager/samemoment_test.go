package manager_test

import (
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that at one moment all jobs, each of them and a plan have the same answer, and that it is another once
// something has happened.
func TestOneMomentForAll(t *testing.T) {
	t.Parallel()
	s := newRig(t, "fifo", 2, "jobs: [{command: [x]}]").serve()
	first := s.submit("defaults: {wall_time: 2h, command: [sleep, 1h]}\njobs: [{name: a, gpus: 2}, {name: b}, " +
		"{name: c, gpus: 2}, {name: d, wall_time: 1h}]")
	s.until(first, "running", runs)
	outlook := func() *explain.Forecast {
		t.Helper()
		f, err := s.m.Outlook(t.Context())
		if err != nil || f == nil {
			t.Fatalf("%+v, %v, want a look into the future", f, err)
		}
		return f
	}
	why := func(id sched.JobID) *explain.Forecast {
		t.Helper()
		a, err := s.m.Why(t.Context(), id, host.WhyOptions{Forecast: time.Minute})
		if err != nil || a.Forecast == nil {
			t.Fatalf("%+v, %v, want a look into the future", a, err)
		}
		return a.Forecast
	}
	// An event may come between two questions, or the moment end: then it is asked again.
	same := func(what string, f func() *explain.Forecast) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; {
			one, two := outlook(), f()
			if one.At != two.At {
				if time.Now().After(end) {
					t.Fatalf("%s: of %v and of %v, want one moment", what, one.At, two.At)
				}
				continue
			}
			for id := first; id < first+4; id++ {
				if a, b := one.Of(id), two.Of(id); a == nil || b == nil || *a != *b || a.Start.Unknown {
					t.Errorf("%s, job %d: %+v and %+v, want the same, known", what, id, a, b)
				}
			}
			return
		}
	}
	same("asked again", outlook)
	for id := first; id < first+4; id++ {
		same("why", func() *explain.Forecast { return why(id) })
	}
	list := s.list("jobs: [{name: e, gpus: 2, wall_time: 1h, command: [x]}]")
	for end := time.Now().Add(time.Minute); ; {
		f, _, failed := s.m.Plan(t.Context(), list)
		if failed != nil {
			t.Fatal(failed)
		}
		if f.At == outlook().At {
			break
		}
		if time.Now().After(end) {
			t.Fatal("a plan is never of the moment that is looked at")
		}
	}
	before := outlook()
	next := s.submit("jobs: [{name: f, command: [x]}]")
	if after := outlook(); after.At == before.At || after.Of(next) == nil || !after.Of(next).End.Unknown {
		t.Errorf("%+v after %v, want another moment, and no idea of the end of job %d", after, before.At, next)
	}
}

// Ensure that of more jobs than are foreseen at every moment each has its forecast, that it stays as it was said until
// there is another, that why of one of them says the same, and that a job that came later has one in time.
func TestOutlookOfMany(t *testing.T) {
	t.Parallel()
	s := newRig(t, "fifo", 1, "jobs: [{command: [x]}]").serve()
	var list strings.Builder
	list.WriteString("defaults: {wall_time: 2h, command: [sleep, 1h]}\njobs:\n")
	const n = 250
	for range n {
		list.WriteString("- {gpus: 1}\n")
	}
	first := s.submit(list.String())
	s.until(first, "running", runs)
	of := func(id sched.JobID) *explain.Forecast {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			f, err := s.m.Outlook(t.Context())
			if err != nil || f == nil {
				t.Fatalf("%+v, %v, want a look into the future", f, err)
			}
			if f.Of(id) != nil {
				return f
			}
			if time.Now().After(end) {
				t.Fatalf("job %d is in no look of a minute, the last one is of %v and has %d jobs", id, f.At, f.All)
			}
		}
	}
	f := of(first + n - 1)
	for id := first; id < first+n; id++ {
		if e := f.Of(id); e == nil || e.Start.Unknown || e.End.Unknown || f.Draws < 9 {
			t.Fatalf("job %d: %+v by %d draws, want a start and an end", id, e, f.Draws)
		}
	}
	a, err := s.m.Why(t.Context(), first+9, host.WhyOptions{Forecast: time.Minute, Most: n / 2})
	if again, failed := s.m.Outlook(t.Context()); err != nil || failed != nil || a.Forecast.At < f.At ||
		again.At < a.Forecast.At || again.At == f.At && *a.Forecast.Of(first + 9) != *f.Of(first + 9) {
		t.Errorf("%+v after %+v, %v, %v, want why to say what was said of all", a.Forecast, f, err, failed)
	}
	later := s.submit("jobs: [{name: b, wall_time: 1h, command: [x]}]")
	if after := of(later); after.At <= f.At || after.Of(first+n-1) == nil {
		t.Errorf("of %v after %v, want a later moment with all jobs", after.At, f.At)
	}
}
