package restart_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/trainyard/trainyard/model/restart"
	"github.com/trainyard/trainyard/sched"
)

// world is jobs of the models named, and a Costs that hears of them.
type world struct {
	v sched.View
	c *restart.Costs
}

func newWorld(models ...string) *world {
	w := &world{c: restart.NewCosts(time.Minute)}
	for _, m := range models {
		w.v.Jobs = append(w.v.Jobs, sched.Job{Spec: &sched.JobSpec{Model: m}, State: sched.Active})
	}
	return w
}

func (w *world) hear(at float64, e sched.Event) {
	e.Time = sched.Time(sched.Seconds(at))
	w.c.Observe(&w.v, &e)
}

func (w *world) start(at float64, j sched.JobID) {
	w.hear(at, sched.Event{Kind: sched.Ordered, Job: j, Code: int32(sched.Start)})
}

func (w *world) stop(at float64, j sched.JobID) {
	w.hear(at, sched.Event{Kind: sched.Ordered, Job: j, Code: int32(sched.Stop), Outcome: sched.Preempted})
}

func (w *world) up(at float64, j sched.JobID, work float64) {
	w.hear(at, sched.Event{Kind: sched.AttemptStarted, Job: j, Work: sched.Seconds(work), Rate: 1})
}

func (w *world) step(at float64, j sched.JobID, steps, work, rate float64) {
	w.hear(at, sched.Event{Kind: sched.Progressed, Job: j, Value: steps, Work: sched.Seconds(work), Rate: rate})
}

func (w *world) end(at float64, j sched.JobID, o sched.Outcome) {
	w.hear(at, sched.Event{Kind: sched.AttemptEnded, Job: j, Outcome: o})
}

func (w *world) costs(t *testing.T, model string, want float64) {
	t.Helper()
	if got := w.c.Of(model).Seconds(); got != want {
		t.Errorf("a restart of %q costs %v s, want %v", model, got, want)
	}
}

// Ensure that the parts of a restart are measured, and add up: to be up, to the first step less the work done by then,
// to end.
func TestCosts(t *testing.T) {
	w := newWorld("a", "a", "b")
	w.costs(t, "a", 60)
	w.start(10, 0)
	w.up(12, 0, 0)
	w.costs(t, "a", 62) // no one knows yet when it is at work
	w.step(45, 0, 5, 3, 1)
	w.costs(t, "a", 2+30)
	w.step(200, 0, 50, 150, 1) // says nothing of the start
	w.costs(t, "a", 32)
	w.stop(300, 0)
	w.step(301, 0, 60, 200, 1)
	w.end(307, 0, sched.Preempted)
	w.costs(t, "a", 32+7)
	w.costs(t, "b", 39) // as other models, while nothing is known of it
	w.start(307, 2)
	w.up(308, 2, 0)
	w.costs(t, "b", 1+30+7)
	w.start(400, 0)
	w.up(404, 0, 200)
	w.step(500, 0, 0, 200, 1) // no step, no work
	w.step(501, 0, 61, 180, 1)
	w.costs(t, "a", 4+97+7) // it fell back, and did it all again: the longer of two
	w.start(600, 1)
	w.up(602, 1, 0)
	w.step(640, 1, 1, 4, 0.5) // 8 s of work
	w.costs(t, "a", 2+30+7)
	w.stop(700, 1)
	w.end(710, 1, sched.Finished) // it came to its end by itself
	w.costs(t, "a", 39)
	w.start(800, 1)
	w.hear(900, sched.Event{Kind: sched.StartFailed, Job: 1})
	w.up(901, 1, 0)
	w.costs(t, "a", 39)
}

// Ensure that the last five count, whatever was before, and that an odd one does not.
func TestCostsFollow(t *testing.T) {
	w := newWorld("a")
	for i, took := range []float64{1, 1, 1, 1, 1, 1000, 8, 8, 8, 8} {
		at := 10000 * float64(i)
		w.start(at, 0)
		w.up(at, 0, 0)
		w.step(at+took, 0, 1, 0, 1)
		want := 1.
		if i >= 7 { // 1, 1, 1000, 8, 8
			want = 8
		}
		w.costs(t, "a", want)
	}
}

// Ensure that what is saved and loaded between any two events is as if it never was, within bounds, and that what is
// wrong is an error.
func TestCostsSaveAndLoad(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	models := []string{"", "a", "b", "c"}
	w := newWorld(append(models, models...)...)
	at := 0.
	for range 3000 {
		at += 5 * rng.Float64()
		j := sched.JobID(rng.IntN(8))
		switch rng.IntN(5) {
		case 0:
			w.start(at, j)
		case 1:
			w.up(at, j, 0)
		case 2:
			w.step(at, j, float64(rng.IntN(2)), rng.Float64(), rng.Float64())
		case 3:
			w.stop(at, j)
		default:
			w.end(at, j, sched.Preempted)
		}
		next := restart.NewCosts(time.Minute)
		for i := range w.v.Jobs {
			if b := w.c.SaveJob(sched.JobID(i), nil); len(b) > 0 {
				if err := next.LoadJob(sched.JobID(i), b); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(next.SaveJob(sched.JobID(i), nil), b) {
					t.Fatalf("job %d is loaded otherwise", i)
				}
			}
		}
		saved := w.c.SaveRest(nil)
		if err := next.LoadRest(saved); err != nil {
			t.Fatal(err)
		}
		for _, wrong := range [][]byte{nil, saved[:len(saved)-1], append(bytes.Clone(saved), 1)} {
			if next.LoadRest(wrong) == nil {
				t.Fatalf("%d of %d bytes are no error", len(wrong), len(saved))
			}
		}
		for _, m := range append(models, "unknown") {
			if next.Of(m) != w.c.Of(m) {
				t.Fatalf("%q: %v, loaded %v", m, w.c.Of(m), next.Of(m))
			}
		}
		if len(saved) > 800 {
			t.Fatalf("%d bytes", len(saved))
		}
		w.c = next
	}
	for _, wrong := range [][]byte{{0, 1, 1}, {4, 1, 1}, {1}, {1, 1, 1, 1}} {
		if w.c.LoadJob(0, wrong) == nil {
			t.Errorf("%v is no error", wrong)
		}
	}
}

// Ensure that a guard holds by the rails, follows what restarts cost, counts stops and remembers them.
func TestGuard(t *testing.T) {
	cost := 10 * time.Second
	newGuard := func() *restart.Guard {
		return &restart.Guard{Rails: restart.Rails{MinRun: 5 * time.Minute, Restarts: 10, PerHour: 2},
			Cost: func(string) time.Duration {
				return cost
			}}
	}
	g := newGuard()
	v := sched.View{Jobs: make([]sched.Job, 3)}
	for i := range v.Jobs {
		v.Jobs[i].Spec = &sched.JobSpec{}
	}
	until := func(j sched.JobID, started, want float64) {
		t.Helper()
		if got := g.Until(&v, j, sched.Time(sched.Seconds(started))).Seconds(); got != want {
			t.Errorf("job %d, up at %v s, is left alone until %v s, want %v", j, started, got, want)
		}
	}
	until(1, 100, 400)
	cost = time.Minute
	until(1, 100, 700)
	for _, at := range []sched.Time{10, 20, 30} {
		for _, why := range []sched.Outcome{sched.Preempted, sched.Cancelled} {
			g.Observe(&v, &sched.Event{Time: at * 100e9, Kind: sched.Ordered, Job: 1, Code: int32(sched.Stop),
				Outcome: why})
		}
	}
	until(1, 4000, 2000+3600) // stopped at 2000 and 3000
	until(1, 5500, 6100)
	until(2, 4000, 4600)
	next := newGuard()
	if err := next.LoadJob(1, g.SaveJob(1, nil)); err != nil || len(g.SaveJob(2, nil)) > 0 {
		t.Errorf("load: %v", err)
	}
	g = next
	until(1, 4000, 5600)
	for _, wrong := range [][]byte{nil, {0x80}, {1, 2, 3}, {2, 1}} {
		if g.LoadJob(1, wrong) == nil {
			t.Errorf("%v is no error", wrong)
		}
	}
	v.Jobs[1].State = sched.Done
	g.Observe(&v, &sched.Event{Kind: sched.AttemptEnded, Job: 1})
	until(1, 4000, 4600)
}
