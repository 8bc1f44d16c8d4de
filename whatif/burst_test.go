package whatif_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/whatif"
	"github.com/trainyard/trainyard/whatif/whatiftest"
)

// look is the forecast of a moment for a manager that knows no more than its past, and that others may come to.
func look(t *testing.T, m *whatif.Moment, o whatif.ForecastOptions) *whatif.Forecast {
	t.Helper()
	f, err := m.Forecast(t.Context(), whatif.Learn(m.View(), whatif.Alike), o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// burst is a cluster of two GPUs to which some jobs of two minutes came, one after another, then three at once, and
// later so many at once, of which the moment is.
func burst(t *testing.T, system string, before, n int, spec sched.JobSpec) *whatif.Moment {
	t.Helper()
	s := (&whatiftest.Scene{System: system}).Node(2, 0)
	spec.User, spec.GPUs = "a", sched.Rigid(2)
	for i := range before {
		s.JobAt(200*float64(i), 112+float64(7*i%17), spec)
	}
	for range 3 {
		s.JobAt(200*float64(before), 120, spec)
	}
	for range n {
		s.JobAt(200*float64(before)+30, 120, spec)
	}
	_, m := s.Moment(t)
	return m
}

// Ensure that a burst passes for no arrival process, however many come in it: no one else is taken to come after it,
// and that is said.
func TestBurstIsOneSubmission(t *testing.T) {
	for _, system := range []string{"las", "srtf", "fifo-skip", "tiresias-las"} {
		for _, n := range []int{8, 13, 40} {
			m := burst(t, system, 6, n, sched.JobSpec{})
			open, closed := look(t, m, whatif.ForecastOptions{Others: true}), look(t, m, whatif.ForecastOptions{})
			for i := range open.Jobs {
				o, c := &open.Jobs[i], &closed.Jobs[i]
				if o.Start.P50 != c.Start.P50 || o.End.P50 != c.End.P50 || o.End.P50 > open.At && !o.End.Alone {
					t.Fatalf("%s, %d at once: %+v, want that it is said to hold if no one else comes, and %+v", system,
						n, o, c)
				}
			}
		}
	}
}

// Ensure that a script which submits one job after another counts as one submission, and what several users submit
// within a second as several.
func TestScriptIsOneSubmission(t *testing.T) {
	for users, others := range map[int]bool{1: false, 12: true} {
		s := (&whatiftest.Scene{System: "fifo-skip"}).Node(1, 0)
		for i := range 26 {
			s.Job(.7+float64(i%3), sched.JobSpec{User: fmt.Sprint("u", i%users), GPUs: sched.Rigid(1)})
		}
		_, m := s.Moment(t)
		alone, taken := 0, 0
		for _, e := range look(t, m, whatif.ForecastOptions{Others: true}).Jobs {
			if taken++; e.End.Alone {
				alone++
			}
		}
		if others && alone == taken || !others && alone < taken-1 {
			t.Errorf("%d users: %d of %d jobs go on so if no one else comes, want others: %v", users, alone, taken,
				others)
		}
	}
}

// Ensure that what depends on a job of which nothing is known is not known, that what does not is, and that a wall time
// or a job that has finished gives an idea.
func TestNoIdeaYet(t *testing.T) {
	one := sched.JobSpec{GPUs: sched.Rigid(1)}
	wide, wall := sched.JobSpec{GPUs: sched.Rigid(2)}, sched.JobSpec{GPUs: sched.Rigid(1), WallTime: time.Minute}
	for _, c := range []struct {
		name               string
		first, then        sched.JobSpec
		seconds            float64 // of the first
		start, end         bool    // of the second is known
		firstStart, firstE bool
	}{
		{"nothing has finished; it fits", one, one, 1e4, true, false, true, false},
		{"nothing has finished; it waits for the first", one, wide, 1e4, false, false, true, false},
		{"the first says when it ends at the latest", wall, wide, 1e4, true, false, true, true},
		{"both say so", wall, wall, 1e4, true, true, true, true},
	} {
		_, m := (&whatiftest.Scene{System: "fifo"}).Node(2, 0).Job(c.seconds, c.first).Job(1e4, c.then).Moment(t)
		f := look(t, m, whatif.ForecastOptions{Others: true})
		a, b := f.Of(0), f.Of(1)
		if a.Start.Unknown == c.firstStart || a.End.Unknown == c.firstE || b.Start.Unknown == c.start ||
			b.End.Unknown == c.end {
			t.Errorf("%s: %+v\n%+v", c.name, a, b)
		}
		ordered(t, c.name, f)
	}
	_, m := (&whatiftest.Scene{System: "fifo"}).Node(1, 0).Job(0.5, one).Job(1e4, one).Job(1e4, one).Moment(t)
	f := look(t, m, whatif.ForecastOptions{Others: true})
	if e := f.Of(2); e.Start.Unknown || e.End.Unknown || e.Basis != whatif.ByAll {
		t.Errorf("one has finished: %+v, want a rough idea by all", e)
	}
	three := sched.JobSpec{GPUs: sched.Rigid(3)}
	_, m = (&whatiftest.Scene{System: "fifo"}).Node(2, 0).Job(1e4, one).Job(1e4, three).Moment(t)
	never := whatif.Span{P10: sched.Never, P50: sched.Never, P90: sched.Never}
	if e := look(t, m, whatif.ForecastOptions{}).Of(1); e.Start != never || e.End != never {
		t.Errorf("it is wider than the cluster: %+v, want neither start nor end", e)
	}
}

// ordered checks that quantiles rise and that no job ends before it starts.
func ordered(t *testing.T, what string, f *whatif.Forecast) {
	t.Helper()
	for _, e := range f.Jobs {
		s, x := e.Start, e.End
		if s.P10 > s.P50 || s.P50 > s.P90 || x.P10 > x.P50 || x.P50 > x.P90 || s.P10 > x.P10 || s.P50 > x.P50 ||
			s.P90 > x.P90 {
			t.Errorf("%s: job %d starts %+v, ends %+v", what, e.Job, s, x)
		}
	}
}

// Ensure that a batch that grows from one job to forty moves the median of one before it by at most what it moves with
// everything known, and half a job; and under systems that keep the order not at all.
func TestBatchMovesThoseBeforeItLittle(t *testing.T) {
	const half = 60 * time.Second
	earlier := []sched.JobID{31, 32} // they wait when the batch comes
	for _, system := range []string{"fifo", "fifo-easy", "fifo-skip", "las", "tiresias-las", "srtf", "elastic-fifo"} {
		of := func(n int, known bool) []whatif.Estimate {
			m := burst(t, system, 30, n, sched.JobSpec{WallTime: 5 * time.Minute})
			w := whatif.Learn(m.View(), whatif.Alike)
			if known {
				w.Steps = func(j sched.JobID) (time.Duration, bool) {
					return 120*time.Second - m.View().Job(j).WorkNow(m.View().Now), true
				}
			}
			f, err := m.Forecast(t.Context(), w, whatif.ForecastOptions{Others: true})
			if err != nil {
				t.Fatal(err)
			}
			ordered(t, system, f)
			var list []whatif.Estimate
			for _, id := range earlier {
				if e := f.Of(id); e != nil {
					list = append(list, *e)
				}
			}
			return list
		}
		was, truth := of(1, false), of(1, true)
		if len(was) != len(earlier) {
			t.Fatalf("%s: %d estimates, want those of %v", system, len(was), earlier)
		}
		for _, n := range []int{2, 13, 40} {
			for i, e := range of(n, false) {
				moved, moves := e.Start.P50.Sub(was[i].Start.P50), of(n, true)[i].Start.P50.Sub(truth[i].Start.P50)
				if keeps := system == "fifo" || system == "fifo-easy"; keeps && e != was[i] {
					t.Errorf("%s, job %d before %d: %+v, want %+v as before one", system, earlier[i], n, e, was[i])
				}
				if max(moved, -moved) > max(moves, -moves)+half {
					t.Errorf("%s, job %d before %d: moves by %v, with everything known by %v", system, earlier[i], n,
						moved, moves)
				}
			}
		}
	}
}
