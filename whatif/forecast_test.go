package whatif_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/model/dist"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
	"github.com/trainyard/trainyard/whatif"
	"github.com/trainyard/trainyard/whatif/whatiftest"
)

// lognormal draws a duration with a median of a minute.
func lognormal(r *rand.Rand) time.Duration { return sched.Seconds(60 * math.Exp(0.9*r.NormFloat64())) }

// Ensure that in worlds whose durations come from the distribution that the forecast knows, by a sample of it, about
// eight in ten jobs end, and start, within the intervals given at a random instant before.
func TestIntervalsAreCalibrated(t *testing.T) {
	for _, name := range []string{"fifo", "fifo-skip", "tiresias-las"} {
		var ends, starts, jobs, waiting float64
		for seed := range uint64(120) {
			w, r := whatiftest.NewWorld(seed), rand.New(rand.NewPCG(seed, 3))
			w.Cluster.Failures.MTBF, w.Runtime.Changes, w.Cluster.Pools, w.Header.Pools = 0, nil, nil, nil
			var earlier []float64
			for range 40 {
				earlier = append(earlier, lognormal(r).Seconds())
			}
			for i := range w.Trace.Jobs {
				j := &w.Trace.Jobs[i]
				j.Spec.Submit, j.Duration = 0, lognormal(r)
			}
			all, err := dist.NewEmpirical(earlier)
			if err != nil {
				t.Fatal(err)
			}
			m, ended := cutAnywhere(t, w, name, r)
			if m == nil {
				continue
			}
			f, err := m.Forecast(t.Context(), &whatif.Work{All: all},
				whatif.ForecastOptions{World: whatif.World{Runtime: w.Runtime}, Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range f.Jobs {
				if truth := ended.end[e.Job]; truth >= 0 { // the system may have rejected it
					jobs++
					ends += in(truth, e.End)
				}
				if truth := ended.start[e.Job]; truth > f.At {
					waiting++
					starts += in(truth, e.Start)
				}
			}
		}
		t.Logf("%s: %.3f of %v ends and %.3f of %v starts within", name, ends/jobs, jobs, starts/waiting, waiting)
		for _, share := range []float64{ends / jobs, starts / waiting} {
			if share < 0.74 || share > 0.88 {
				t.Errorf("%s: %.3f within the intervals, want about 0.8", name, share)
			}
		}
	}
}

func in(at sched.Time, s whatif.Span) float64 {
	if s.P10 <= at && at <= s.P90 {
		return 1
	}
	return 0
}

// truth is when jobs first started, and ended; -1 = never.
type truth struct{ start, end map[sched.JobID]sched.Time }

func (x *truth) Log(v *sched.View, e *sched.Event) {
	switch e.Kind {
	case sched.AttemptStarted:
		if _, ok := x.start[e.Job]; !ok {
			x.start[e.Job] = e.Time
		}
	case sched.AttemptEnded:
		if v.Job(e.Job).State == sched.Done {
			x.end[e.Job] = e.Time
		}
	}
}

// cutAnywhere runs w under the named system and returns a moment of it at random, nil if hardly anything happened.
func cutAnywhere(t *testing.T, w *whatiftest.World, name string, r *rand.Rand) (*whatif.Moment, *truth) {
	t.Helper()
	fresh, limit, ok := w.System(name)
	if !ok {
		t.Fatal(name)
	}
	w.Header.ShareLimit = max(limit, 1)
	n := &counter{}
	dec, _ := fresh()
	if err := engine.Run(t.Context(), engine.NewState(w.Header), w.Driver(t), dec,
		engine.Options{Sinks: []eventlog.Sink{n}}); err != nil {
		t.Fatal(err)
	}
	if n.n < 4 {
		return nil, nil
	}
	c, x := &whatiftest.Cutter{W: w, Fresh: fresh, After: 2 + r.IntN(n.n-3)},
		&truth{map[sched.JobID]sched.Time{}, map[sched.JobID]sched.Time{}}
	c.Dec, _ = fresh()
	if err := engine.Run(t.Context(), engine.NewState(w.Header), w.Driver(t), c.Dec,
		engine.Options{Sinks: []eventlog.Sink{c, x}}); err != nil {
		t.Fatal(err)
	}
	for j := range w.Trace.Jobs {
		if _, ok := x.end[sched.JobID(j)]; !ok {
			x.end[sched.JobID(j)] = -1
		}
	}
	return c.Moment, x
}

// twoJobs is a cluster of one GPU on which job 0 has run for 10 s of 60 while job 1, of 30 s, waits.
func twoJobs(t *testing.T, name string, change func(jobs []trace.Job)) (*whatiftest.World, *whatif.Moment) {
	t.Helper()
	w := whatiftest.NewWorld(1)
	w.Runtime, w.Cluster.Pools, w.Header.Pools, w.Sleep = sim.Runtime{}, nil, nil, ""
	w.Cluster.Failures.MTBF = 0
	w.Cluster.Nodes, w.Cluster.Types, w.Header.Types = w.Cluster.Nodes[:1], []string{"a"}, []string{"a"}
	w.Cluster.Nodes[0].GPUs, w.Cluster.Nodes[0].Type = 1, 0
	w.Scores = whatiftest.ScoresOf(1, rand.New(rand.NewPCG(1, 1)))
	w.Trace.Jobs = []trace.Job{
		{Spec: sched.JobSpec{Name: "a", GPUs: sched.Rigid(1)}, Duration: 60 * time.Second},
		{Spec: sched.JobSpec{Name: "b", Submit: 10e9, GPUs: sched.Rigid(1)}, Duration: 30 * time.Second},
	}
	if change != nil {
		change(w.Trace.Jobs)
	}
	fresh, limit, ok := w.System(name)
	if !ok {
		t.Fatal(name)
	}
	w.Header.ShareLimit = max(limit, 1)
	dec, _ := fresh()
	c := &whatiftest.Cutter{W: w, Fresh: fresh, Dec: dec, At: 10e9}
	if err := engine.Run(t.Context(), engine.NewState(w.Header), w.Driver(t), dec,
		engine.Options{Sinks: []eventlog.Sink{c}}); err != nil {
		t.Fatal(err)
	}
	if c.Moment == nil || c.Moment.View().Now != 10e9 {
		t.Fatalf("cut at %v, want 10 s", c.Moment.View().Now)
	}
	return w, c.Moment
}

func steps(left ...time.Duration) *whatif.Work {
	return &whatif.Work{Steps: func(j sched.JobID) (time.Duration, bool) { return left[j], true }}
}

// Ensure that what jobs say of their steps gives a point: start and end to the nanosecond, whatever the draw.
func TestStepsGiveAPoint(t *testing.T) {
	_, m := twoJobs(t, "fifo", nil)
	f, err := m.Forecast(t.Context(), steps(50*time.Second, 30*time.Second), whatif.ForecastOptions{})
	if err != nil {
		t.Fatal(err)
	}
	at := func(s float64) whatif.Span {
		x := sched.Time(sched.Seconds(s))
		return whatif.Span{P10: x, P50: x, P90: x}
	}
	if f.Draws != 20 || f.At != 10e9 || len(f.Jobs) != 2 ||
		*f.Of(0) != (whatif.Estimate{Job: 0, Start: at(0), End: at(60), Within: 20}) ||
		*f.Of(1) != (whatif.Estimate{Job: 1, Start: at(60), End: at(90), Within: 20}) {
		t.Errorf("%+v", f)
	}
	if f.Of(7) != nil {
		t.Error("an estimate of a job that is not there")
	}
}

// Ensure that a job which does not end, or not even start, within the horizon says so, and so does a forecast cut
// short.
func TestHorizon(t *testing.T) {
	_, m := twoJobs(t, "fifo", nil)
	f, err := m.Forecast(t.Context(), steps(50*time.Second, 30*time.Second),
		whatif.ForecastOptions{Horizon: 60 * time.Second, Draws: 9})
	if err != nil {
		t.Fatal(err)
	}
	if e := f.Of(1); f.Until != 70e9 || e.Start.P50 != 60e9 || e.End.P10 != sched.Never || e.Within != 0 {
		t.Errorf("until %v, %+v, want a start at 60 s and no end", f.Until, e)
	}
	if f, err = m.Forecast(t.Context(), steps(50*time.Second, 30*time.Second),
		whatif.ForecastOptions{Events: 1, Draws: 3}); err != nil {
		t.Fatal(err)
	}
	if e := f.Of(1); f.Cut != 3 || e.Start.P50 != sched.Never {
		t.Errorf("%+v, want three draws cut short and no start", f)
	}
}

// Ensure that where others may come, what is drawn of a start is given with a margin, what is known exactly
// without, and that of a job that runs its end is as drawn.
func TestOpenWorld(t *testing.T) {
	_, m := twoJobs(t, "fifo", nil)
	at := func(w *whatif.Work, others bool) (first, second whatif.Estimate) {
		f, err := m.Forecast(t.Context(), w, whatif.ForecastOptions{Others: others, Horizon: 1e6 * time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		return *f.Of(0), *f.Of(1)
	}
	_, exact := at(steps(50*time.Second, 30*time.Second), true)
	if exact.Start.P10 != 60e9 || exact.Start.P90 != 60e9 || exact.End.P90 != 90e9 {
		t.Errorf("%+v, want a start at 60 s and an end at 90 s", exact)
	}
	running, waits := at(lasted(60), false)
	same, wide := at(lasted(60), true) // two jobs are too few to say how others come
	if !wide.Start.Alone || !wide.End.Alone || !same.End.Alone || same.Start.Alone || waits.Start.Alone {
		t.Errorf("%+v, %+v, want that they hold if no one else comes", same, wide)
	}
	if same.End.P90 != running.End.P90 || same.End.P10 != running.End.P10 || same.Start != running.Start {
		t.Errorf("%+v, want %+v: it runs", same, running)
	}
	low, high := float64(waits.Start.P10.Sub(10e9)), float64(waits.Start.P90.Sub(10e9))
	// of a tenth: no one knows how others come
	r, s := low/float64(wide.Start.P10.Sub(10e9)), float64(wide.Start.P90.Sub(10e9))/high
	if math.Abs(r-1.1) > 1e-6 || math.Abs(s-1.1) > 1e-6 || wide.Start.P50 != waits.Start.P50 {
		t.Errorf("%+v, want %+v and a tenth of the time until then more on both sides", wide.Start, waits.Start)
	}
}

// Ensure that no quantile of the start of a job lies before the time from which it may start, nor one of its end,
// be it there or planned, with few draws or many, and where nothing is known of what it waits for.
func TestNoStartTooEarly(t *testing.T) {
	const from = sched.Time(40e9)
	_, m := twoJobs(t, "fifo", func(jobs []trace.Job) { jobs[1].Spec.NotBef = from })
	planned := []*sched.JobSpec{{Name: "c", GPUs: sched.Rigid(1), NotBef: from}}
	for _, w := range []*whatif.Work{lasted(12), lasted(60), {}} {
		for _, draws := range []int{1, 5, 20} {
			f, err := m.Forecast(t.Context(), w, whatif.ForecastOptions{Draws: draws, Planned: planned, Others: true,
				Horizon: 1e6 * time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			if e := f.Of(0); e.Start.P90 != 0 {
				t.Errorf("%+v, want it to have started at 0", e)
			}
			for job := sched.JobID(1); job < 3; job++ {
				e := f.Of(job)
				if s := e.Start; s.P10 < from || s.P50 < s.P10 || s.P90 < s.P50 || e.End.P10 < s.P10 ||
					e.End.P50 < s.P50 || e.End.P90 < s.P90 {
					t.Errorf("%d draws: %+v, want no time before 40 s, in order", draws, e)
				}
			}
		}
	}
}

// lasted is what is known of work where one job finished, after so many seconds.
func lasted(seconds float64) *whatif.Work {
	e, err := dist.NewEmpirical([]float64{seconds})
	if err != nil {
		panic(err)
	}
	return &whatif.Work{All: e, Ended: 1}
}

// Ensure that a forecast of few draws does not say more than it knows: nine are the fewest of which least and greatest
// hold in 8 of 10 cases.
func TestFewDraws(t *testing.T) {
	_, m := twoJobs(t, "fifo", nil)
	for draws, known := range map[int]bool{1: false, 8: false, 9: true} {
		f, err := m.Forecast(t.Context(), lasted(60), whatif.ForecastOptions{Draws: draws, Horizon: 1e6 * time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if e := f.Of(1); (e.Start.P10 > f.At) != known || !known && e.Start.P90 != sched.Never || e.Start.P50 <= f.At ||
			f.Of(0).Start.P90 != 0 {
			t.Errorf("%d draws: %+v, %+v, want an interval of the start: %v, and that job 0 started at 0", draws, e,
				f.Of(0), known)
		}
	}
}

// Ensure that a forecast ends with its context, with what it has.
func TestForecastEndsWithItsContext(t *testing.T) {
	_, m := twoJobs(t, "fifo", nil)
	ctx, stop := context.WithCancel(t.Context())
	drawn := 0
	w := &whatif.Work{Steps: func(j sched.JobID) (time.Duration, bool) {
		if drawn++; drawn == 6 { // in the third draw
			stop()
		}
		return time.Second, true
	}}
	f, err := m.Forecast(ctx, w, whatif.ForecastOptions{})
	if err != nil || f.Draws != 2 || f.Of(1).Within != 2 {
		t.Errorf("%+v, %v, want the two draws that were done", f, err)
	}
	if _, err = m.Forecast(ctx, w, whatif.ForecastOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that the context ended", err)
	}
}

// Ensure that the same seed gives the same forecast, another seed another, and that neither touches the moment.
func TestForecastRepeats(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	w := whatiftest.NewWorld(5)
	m, _ := cutAnywhere(t, w, "tiresias-las", r)
	before := fmt.Sprintf("%+v", m.View())
	text := func(seed uint64) string {
		f, err := m.Forecast(t.Context(), lasted(60), whatif.ForecastOptions{Seed: seed,
			World: whatif.World{Runtime: w.Runtime}})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%+v", f)
	}
	if a, b, c := text(1), text(1), text(2); a != b || a == c {
		t.Errorf("%s\n%s\n%s", a, b, c)
	}
	if after := fmt.Sprintf("%+v", m.View()); before != after {
		t.Error("the moment has changed")
	}
}

// Ensure that wrong options are refused.
func TestForecastOptions(t *testing.T) {
	_, m := twoJobs(t, "fifo", nil)
	if _, err := m.Forecast(t.Context(), &whatif.Work{}, whatif.ForecastOptions{Draws: -1}); err == nil ||
		!strings.Contains(err.Error(), "-1 draws") {
		t.Error(err)
	}
}

// Ensure that work left is what was found: by steps, by class, by all, by wall time, by nothing, and never beyond the
// wall time.
func TestWorkLeft(t *testing.T) {
	v := &sched.View{Now: 100e9, Jobs: []sched.Job{{Spec: &sched.JobSpec{Model: "a", WallTime: 50 * time.Second},
		Attempt: sched.Running, Rate: 1, WorkFrom: 70e9},
		{Spec: &sched.JobSpec{Model: "b"}}}}
	some := func(x ...float64) *dist.Empirical {
		e, err := dist.NewEmpirical(x)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	class := func(s *sched.JobSpec) whatif.Classes { return whatif.Classes{s.Model} }
	for _, c := range []struct {
		name  string
		w     whatif.Work
		job   sched.JobID
		u     float64
		want  time.Duration
		basis whatif.Basis
	}{
		{"steps", whatif.Work{Steps: func(sched.JobID) (time.Duration, bool) { return 7, true }}, 0, .5, 7,
			whatif.BySteps},
		{"negative steps", whatif.Work{Steps: func(sched.JobID) (time.Duration, bool) { return -7, true }}, 0, .5, 0,
			whatif.BySteps},
		{"class, 10, 34 and 42 s of which it has done 30",
			whatif.Work{Class: class, Earlier: map[string]*dist.Empirical{"a": some(10, 34, 42)}, All: some(1)}, 0, .5,
			8 * time.Second, whatif.ByClass},
		{"class, bounded by the wall time", whatif.Work{Class: class,
			Earlier: map[string]*dist.Empirical{"a": some(10, 34, 90)}}, 0, .6, 20 * time.Second, whatif.ByClass},
		{"all", whatif.Work{Class: class, All: some(5, 15)}, 1, 1. / 3, 5 * time.Second, whatif.ByAll},
		{"longer than all: its wall time", whatif.Work{All: some(5, 15)}, 0, .25, 5 * time.Second, whatif.ByWallTime},
		{"nothing", whatif.Work{}, 1, .5, time.Hour, whatif.ByNothing},
		{"almost for ever", whatif.Work{}, 1, 1 - 1e-16, 100 * 365 * 24 * time.Hour, whatif.ByNothing},
	} {
		got, basis := c.w.Left(v, c.job, c.u)
		if d := got - c.want; d < -10 || d > 10 || basis != c.basis {
			t.Errorf("%s: %v by %v, want %v by %v", c.name, got, basis, c.want, c.basis)
		}
	}
}

// Ensure that distributions are made of jobs that finished, and of enough of them: of four that took the same, one
// counts among all.
func TestLearn(t *testing.T) {
	v := &sched.View{}
	add := func(model string, work time.Duration, o sched.Outcome) {
		v.Jobs = append(v.Jobs, sched.Job{Spec: &sched.JobSpec{Model: model, User: "u"}, State: sched.Done, Outcome: o,
			Work: work})
	}
	for i := range 5 {
		add("a", time.Duration(i+1)*time.Second, sched.Finished)
		add("b", time.Minute, sched.Cancelled)
	}
	for range 4 {
		add("c", time.Hour, sched.Finished)
	}
	w := whatif.Learn(v, whatif.Alike)
	if w.Earlier["job a of u"] == nil || w.Earlier["job c of u"] != nil || w.Earlier["job a of u"].Count() != 5 ||
		w.All.Count() != 6 || w.Ended != 9 {
		t.Errorf("%+v", w)
	}
}
