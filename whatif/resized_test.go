package whatif_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
	"github.com/trainyard/trainyard/whatif"
	"github.com/trainyard/trainyard/whatif/whatiftest"
)

// narrowed is a moment at which job 0 has done 10 s of 60 on as many GPUs, and 10 s on one, which its user wants since,
// and its end. speed is that on one; 0 = by the number of its GPUs.
func narrowed(t *testing.T, gpus int, speed float64) (*whatif.Moment, sched.Time) {
	t.Helper()
	run := sim.Runtime{Speed: func(_ *trace.Job, _ sched.Config, on []int, _ time.Duration) (float64, time.Duration) {
		if speed > 0 && on[0] == 1 {
			return speed, 0
		}
		return 0, -1
	}}
	w := whatiftest.NewWorld(1)
	w.Runtime, w.Cluster.Pools, w.Header.Pools, w.Sleep = sim.Runtime{}, nil, nil, ""
	w.Cluster.Failures.MTBF = 0
	w.Cluster.Nodes, w.Cluster.Types, w.Header.Types = w.Cluster.Nodes[:1], []string{"a"}, []string{"a"}
	w.Cluster.Nodes[0].GPUs, w.Cluster.Nodes[0].Type = gpus, 0
	w.Scores = whatiftest.ScoresOf(gpus, rand.New(rand.NewPCG(1, 1)))
	w.Trace.Jobs = []trace.Job{{Spec: sched.JobSpec{Name: "a", GPUs: sched.Rigid(gpus)}, Duration: 60 * time.Second}}
	change := w.Trace.Jobs[0].Spec.Change()
	change.GPUs = sched.Rigid(1)
	again := change // something that happens at 20 s
	again.Priority = 1
	d, err := sim.New(w.Trace, w.Cluster, sim.Options{Runtime: run, Inject: []sched.Event{
		{Time: 10e9, Kind: sched.JobChanged, Change: &change}, {Time: 20e9, Kind: sched.JobChanged, Change: &again}}})
	if err != nil {
		t.Fatal(err)
	}
	fresh, limit, _ := w.System("fifo")
	w.Header.ShareLimit = max(limit, 1)
	dec, err := fresh()
	if err != nil {
		t.Fatal(err)
	}
	c := &whatiftest.Cutter{W: w, Fresh: fresh, Dec: dec, At: 20e9}
	x := &truth{make(map[sched.JobID]sched.Time), make(map[sched.JobID]sched.Time)}
	if err := engine.Run(t.Context(), engine.NewState(w.Header), d, dec,
		engine.Options{Sinks: []eventlog.Sink{c, x}}); err != nil {
		t.Fatal(err)
	}
	if c.Moment == nil || c.Moment.View().Now != 20e9 || len(c.Moment.View().Jobs[0].GPUs) != 1 {
		t.Fatalf("now %v, job %+v", c.Moment.View().Now, c.Moment.View().Jobs[0])
	}
	return c.Moment, x.end[0]
}

// Ensure that the end of a job that was given another width by its user is reported as it comes: its work is in time on
// the GPUs that it asked for when it came.
func TestForecastAfterResize(t *testing.T) {
	m, end := narrowed(t, 2, 0)
	if end != 110e9 {
		t.Fatalf("it ends at %v, want 110 s", end)
	}
	f, err := m.Forecast(t.Context(), steps(45*time.Second), whatif.ForecastOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := (whatif.Span{P10: end, P50: end, P90: end}); f.Of(0).End != want {
		t.Errorf("an end at %v, want %v", f.Of(0).End, want)
	}
}

// Ensure that a job goes on as fast as it was measured on the GPUs that its user wants now, and no job behind it comes
// earlier or later for it, unless that speed is a guess.
func TestForecastByMeasuredSpeed(t *testing.T) {
	for _, speed := range []float64{0.9, 0.3} {
		m, end := narrowed(t, 2, speed)
		w := steps(60*time.Second-m.View().Job(0).WorkNow(m.View().Now), 30*time.Second)
		o := whatif.ForecastOptions{Costs: new(whatif.Delays).Costs(),
			Planned: []*sched.JobSpec{{Name: "b", GPUs: sched.Rigid(2)}}}
		f, err := m.Forecast(t.Context(), w, o)
		if err != nil {
			t.Fatal(err)
		}
		want := whatif.Span{P10: end, P50: end, P90: end}
		if got := f.Of(0).End; got != want {
			t.Errorf("speed %v: an end at %v, want %v", speed, got, want)
		}
		if got := f.Of(1).Start.P50; got != end {
			t.Errorf("speed %v: the next one starts at %v, want %v", speed, got, end)
		}
		w.Guessed = map[sched.JobID]bool{0: true}
		if f, err = m.Forecast(t.Context(), w, o); err != nil || f.Of(0).End == want {
			t.Errorf("speed %v, a guess: an end at %v, %v", speed, want, err)
		}
	}
}

// Ensure that the end of a job at a speed that is a guess lies between that at this speed and that at the speed which
// it had before.
func TestForecastAtAGuess(t *testing.T) {
	m, end := narrowed(t, 2, 0)
	w := steps(45 * time.Second)
	w.Guessed = map[sched.JobID]bool{0: true}
	f, err := m.Forecast(t.Context(), w, whatif.ForecastOptions{Draws: 100})
	if err != nil {
		t.Fatal(err)
	}
	s, soonest := f.Of(0).End, sched.Time(65e9)
	if s.P10 <= soonest || s.P10 > 75e9 || s.P90 >= end || s.P90 < 100e9 {
		t.Errorf("an end at %v, want nearly all from %v to %v", s, soonest, end)
	}
}

// Ensure that a job of which nothing is known, and which is slow on the GPUs that its user wants now, has no end that
// is known, rather than an error: half of a century on eight GPUs is four on one.
func TestForecastOfTheUnknownAfterResize(t *testing.T) {
	m, _ := narrowed(t, 8, 0)
	f, err := m.Forecast(t.Context(), whatif.Learn(m.View(), whatif.Alike), whatif.ForecastOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if end := f.Of(0).End; !end.Unknown {
		t.Errorf("an end at %v, want none that is known", end)
	}
}

// Ensure that jobs are like those that asked for as much when they came, and start again as wide as their users want
// them now.
func TestAlikeAfterResize(t *testing.T) {
	v := &sched.View{}
	for i := range 5 {
		v.Jobs = append(v.Jobs, sched.Job{Spec: &sched.JobSpec{User: "u", GPUs: sched.Rigid(4)}, Asked: 2,
			State: sched.Done, Outcome: sched.Finished,
			Work: time.Duration(1+i) * time.Hour})
	}
	w := whatif.Learn(v, whatif.Alike)
	if w.Earlier["2 GPUs of u"] == nil || w.Earlier["4 GPUs of u"] != nil {
		t.Errorf("%v, want 2 GPUs", w.Earlier)
	}
}
