package sim_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// reported writes down what is reported of attempts until nothing comes any more.
func reported(t *testing.T, d *sim.Driver) string {
	t.Helper()
	var b strings.Builder
	for e := next(t, d, sched.Never); e != nil; e = next(t, d, sched.Never) {
		for _, e := range e {
			switch e.Kind {
			case sched.AttemptStarted, sched.Progressed:
				fmt.Fprintf(&b, "%v: %v %d with %v at %.4g from %v; ", e.Time.Seconds(), e.Kind, e.Job,
					e.Work.Seconds(), e.Rate, e.WorkFrom.Seconds())
			case sched.AttemptEnded, sched.EpochEnded:
				fmt.Fprintf(&b, "%v: %v %d; ", e.Time.Seconds(), e.Kind, e.Job)
			}
		}
	}
	return b.String()
}

// Ensure that a job goes through its phases, each at its own speed, that epochs end where they should, and that a job
// on twice the GPUs it asked for is twice as fast unless something else is known.
func TestPhases(t *testing.T) {
	speed := func(_ *trace.Job, c sched.Config, placement []int, done time.Duration) (float64, time.Duration) {
		if done < 10*time.Second {
			return float64(placement[0]), 10 * time.Second
		}
		return float64(c.Batch), 0
	}
	epoch := func(_ *trace.Job, n int) time.Duration { return time.Duration(n) * 8 * time.Second }
	j := job(0, 1, 20*time.Second)
	j.Spec.GPUs = sched.Range{Min: 1, Want: 1, Max: 2}
	for _, c := range []struct {
		speed func(*trace.Job, sched.Config, []int, time.Duration) (float64, time.Duration)
		want  string
	}{
		{speed, "0: started 0 with 0 at 2 from 0; 4: epoch 0; 5: progressed 0 with 10 at 4 from 5; 6.5: epoch 0; " +
			"7.5: ended 0; "},
		{nil, "0: started 0 with 0 at 2 from 0; 4: epoch 0; 8: epoch 0; 10: ended 0; "},
	} {
		d := open(t, sim.Options{Runtime: sim.Runtime{Speed: c.speed, EpochEnd: epoch}}, "1x2", j)
		next(t, d, sched.Never)
		a := start(0, 1, 0, 1)
		a.Batch = 4
		apply(t, d, a, sched.Action{Kind: sched.WatchEpochs, Job: 0, On: true})
		if got := reported(t, d); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// Ensure that jobs on one GPU slow each other down from when the second works until the first is gone, that a gang
// suffers as on its worst GPU, and that who is being stopped troubles no one.
func TestInterference(t *testing.T) {
	r := sim.Runtime{StopDelay: time.Second, Interference: func(_ *trace.Job, others []*trace.Job) float64 {
		return float64(1 + len(others))
	}}
	d := open(t, sim.Options{Runtime: r}, "1x3", job(0, 2, 10*time.Second), job(0, 1, 2*time.Second),
		job(0, 2, 10*time.Second))
	next(t, d, sched.Never)
	apply(t, d, start(0, 1, 0, 1))
	next(t, d, sched.Never)
	next(t, d, 4e9)
	apply(t, d, start(1, 1, 1), start(2, 1, 1, 2))
	next(t, d, 5e9)
	apply(t, d, sched.Action{Kind: sched.Stop, Job: 2, Attempt: 1, Why: sched.Cancelled})
	got := reported(t, d)
	// From 4 s three share GPU 1; job 2 is stopped at 4 s too, by then nothing has happened: the other two share it.
	want := "4: progressed 0 with 4 at 0.5 from 4; 4: progressed 1 with 0 at 0.5 from 4; 5: ended 2; " +
		"8: progressed 0 with 6 at 1 from 8; 8: ended 1; 12: ended 0; "
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Ensure that disturbed GPUs slow down the gangs on them, the worst counts, and that a power cap changes the rate of an
// attempt that lives.
func TestChangesAndCap(t *testing.T) {
	r := sim.Runtime{Changes: []sim.Change{{At: 2e9, GPUs: []sched.GPUID{0}, Factor: 2},
		{At: 4e9, GPUs: []sched.GPUID{0, 1}, Factor: 1}, {At: 9e9, GPUs: []sched.GPUID{1}, Factor: 4}},
		Capped: func(_ *trace.Job, w sched.Watts) float64 { return float64(w) / 100 }}
	d := open(t, sim.Options{Runtime: r}, "1x2", job(0, 2, 6*time.Second), job(5e9, 2, 4*time.Second))
	next(t, d, sched.Never)
	apply(t, d, start(0, 1, 0, 1))
	next(t, d, sched.Never)
	next(t, d, sched.Never)
	next(t, d, sched.Never)
	apply(t, d, sched.Action{Kind: sched.Adjust, Job: 0, Attempt: 1, Config: sched.Config{Cap: 50}})
	got := reported(t, d)
	if want := "4: progressed 0 with 3 at 0.5 from 4; 9: progressed 0 with 5.5 at 0.125 from 9; 13: " +
		"ended 0; "; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Ensure that reports come at their period, say the mean since the last, with noise that depends on the seed alone,
// and that nothing else is reported.
func TestReports(t *testing.T) {
	run := func(noise float64, seed uint64) string {
		r := sim.Runtime{Report: 4 * time.Second, Noise: noise, Seed: seed,
			Changes: []sim.Change{{At: 6e9, GPUs: []sched.GPUID{0}, Factor: 2}}}
		d := open(t, sim.Options{Runtime: r}, "1x1", job(0, 1, 10*time.Second))
		next(t, d, sched.Never)
		apply(t, d, start(0, 1, 0))
		return reported(t, d)
	}
	want := "0: started 0 with 0 at 0 from 0; 4: progressed 0 with 4 at 1 from 4; 8: progressed 0 with 7 at 0.75 " +
		"from 8; " +
		"12: progressed 0 with 9 at 0.5 from 12; 14: ended 0; "
	if got := run(0, 1); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	first, again := run(.1, 1), run(.1, 1)
	if first != again || first == run(.1, 2) || first == want {
		t.Error("noise does not follow from the seed alone")
	}
}

// Ensure that a way to run which the truth does not know ends the simulation with an error, not in a wait for ever, and
// that a runtime which makes no sense is refused.
func TestImpossible(t *testing.T) {
	cannot := func(*trace.Job, sched.Config, []int, time.Duration) (float64, time.Duration) { return 0, 0 }
	d := open(t, sim.Options{Runtime: sim.Runtime{Speed: cannot}}, "1x1", job(0, 1, time.Second))
	next(t, d, sched.Never)
	apply(t, d, start(0, 1, 0))
	if _, err := d.Next(t.Context(), sched.Never); err == nil ||
		!strings.Contains(err.Error(), "cannot run on 1 GPUs of 1 nodes with batch 0") {
		t.Errorf("error %v, want one that says what cannot run", err)
	}
	for _, r := range []sim.Runtime{{Noise: math.NaN()}, {Report: -1}, {Changes: []sim.Change{{Factor: 0}}},
		{Changes: []sim.Change{{At: 2, Factor: 1}, {At: 1, Factor: 1}}}} {
		if _, err := sim.New(&trace.Trace{}, mustCluster(t), sim.Options{Runtime: r}); err == nil {
			t.Errorf("%+v is accepted", r)
		}
	}
}

func mustCluster(t *testing.T) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Load("1x1")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Ensure that a gang goes as fast as its GPUs of the slowest type let it, and that what is said by type goes before
// what is said of all.
func TestOnType(t *testing.T) {
	by := func(_ *trace.Job, on sched.TypeID, _ sched.Config, placement []int,
		_ time.Duration) (float64, time.Duration) {
		return float64(4-3*int(on)) * float64(len(placement)), 0
	}
	for gpus, want := range map[sched.GPUID]string{
		0: "0: started 0 with 0 at 8 from 0; 1: ended 0; ",
		2: "0: started 0 with 0 at 2 from 0; 4: ended 0; ",
	} {
		r := sim.Runtime{OnType: by, Speed: func(*trace.Job, sched.Config, []int, time.Duration) (float64,
			time.Duration) {
			return 100, 0
		}}
		d := open(t, sim.Options{Runtime: r}, "2x1:a+1x1:b", job(0, 2, 8*time.Second))
		next(t, d, sched.Never)
		apply(t, d, start(0, 1, gpus, 1))
		if got := reported(t, d); got != want {
			t.Errorf("on %d and 1: got %s, want %s", gpus, got, want)
		}
	}
}
