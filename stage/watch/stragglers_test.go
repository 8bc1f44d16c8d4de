package watch_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/place"
	"github.com/trainyard/trainyard/stage/watch"
	"github.com/trainyard/trainyard/system/baseline"
	"github.com/trainyard/trainyard/system/pal"
	"github.com/trainyard/trainyard/trace"
)

const hour = sched.Time(time.Hour)

// world is a cluster of 4 nodes of 4 GPUs on which some GPUs are slow for a while.
type world struct {
	changes []sim.Change
	jobs    []trace.Job
	scored  bool // PAL; else packed again each round
	s       *watch.Stragglers
	events  []string // quarantines
	each    func(v *sched.View, e *sched.Event)
}

func (w *world) Log(v *sched.View, e *sched.Event) {
	if e.Kind == sched.Moved && len(e.GPUs) > 0 {
		w.events = append(w.events, fmt.Sprintf("%v:%d:%d", e.Time, e.GPUs[0], e.Code))
	}
	if w.each != nil {
		w.each(v, e)
	}
}

// run plays the jobs, reports every minute with 2 % of noise, and returns them.
func (w *world) run(t *testing.T) []metrics.Job {
	t.Helper()
	c, err := cluster.Load("4x4")
	if err != nil {
		t.Fatal(err)
	}
	tr := &trace.Trace{Jobs: w.jobs}
	w.s = &watch.Stragglers{}
	stages := pal.Packed(baseline.FIFO(nil), pal.Options{})
	if w.scored {
		bins := make([]variability.Bins, 1)
		bins[0] = variability.Bins{Bin: make([]int, 16), SF: []float64{1}}
		scores := place.NewScores(bins, place.BySpec(func(*sched.JobSpec) int { return 0 }))
		k := pal.Beliefs{Scores: scores, Penalty: place.TwoLevel(1), Work: tr.Oracle()}
		stages = pal.PAL(baseline.FIFO(nil), k, pal.Options{MoveCost: 62 * time.Second})
		w.s.Revise, w.s.Weighs = scores.Revise, true
	}
	d, err := sim.New(tr, c,
		sim.Options{Runtime: sim.Runtime{Restart: 62 * time.Second, Changes: w.changes, Report: time.Minute, Noise: .02,
			Seed: 1}})
	if err != nil {
		t.Fatal(err)
	}
	rec := metrics.NewRecorder(len(tr.Jobs))
	if err := engine.Run(context.Background(), engine.NewState(eventlog.Header{}), d,
		pal.Watched(stages, w.s).Decider(), engine.Options{Sinks: []eventlog.Sink{rec, w}}); err != nil {
		t.Fatal(err)
	}
	return rec.Jobs
}

func job(submit sched.Time, gpus int, run time.Duration) trace.Job {
	return trace.Job{Spec: sched.JobSpec{Name: fmt.Sprint(submit), Model: "m", GPUs: sched.Rigid(gpus), Submit: submit},
		Duration: run}
}

// Ensure that a job moves off a GPU that turns slow, within three reports and a round, and loses little; and that
// no one moves where nothing is slow.
func TestJobLeavesSlowGPU(t *testing.T) {
	for _, c := range []struct {
		scored bool
		slow   float64
		moves  int32
		run    time.Duration // at most
	}{
		// packed again it comes back after each quarantine
		{true, 2.8, 1, 10*time.Hour + 15*time.Minute}, {false, 2.8, 9, 10*time.Hour + 30*time.Minute},
		{true, 1, 0, 10 * time.Hour}, {false, 1, 0, 10 * time.Hour},
		{true, 1.15, 1, 10*time.Hour + 5*time.Minute},
		{false, 1.15, 0, 12 * time.Hour}, // no reason for a quarantine, and packed knows no scores
	} {
		w := &world{scored: c.scored, jobs: []trace.Job{job(0, 1, 10*time.Hour)},
			changes: []sim.Change{{At: 2 * hour, GPUs: []sched.GPUID{0}, Factor: c.slow}}}
		got := w.run(t)[0]
		if got.Migrations > c.moves || c.moves > 0 && got.Migrations == 0 || got.Run > c.run {
			t.Errorf("%v by %v: %d moves in %v, want at most %d in %v", c.scored, c.slow, got.Migrations, got.Run,
				c.moves, c.run)
		}
	}
}

// Ensure that a GPU that stays slow goes into quarantine again and again, for twice as long each time, and that one
// that recovers comes out for good.
func TestQuarantineAndTrial(t *testing.T) {
	var jobs []trace.Job
	for i := range 60 {
		jobs = append(jobs, job(sched.Time(i)*hour/2, 1, 29*time.Minute))
	}
	w := &world{jobs: jobs, changes: []sim.Change{{At: hour, GPUs: []sched.GPUID{0}, Factor: 2}}}
	w.run(t)
	if len(w.events) < 6 {
		t.Fatalf("quarantines %v", w.events)
	}
	var last, term float64
	for i, e := range w.events {
		var at float64
		var g, on int
		if _, err := fmt.Sscanf(e, "%fs:%d:%d", &at, &g, &on); err != nil || g != 0 || on != (i+1)%2 {
			t.Fatalf("event %s of %v", e, w.events)
		}
		if on == 0 {
			if term > 0 && math.Abs((at-last)/term-2) > .01 {
				t.Errorf("quarantine of %v s after one of %v s", at-last, term)
			}
			term = at - last
		}
		last = at
	}
	var first float64
	if _, err := fmt.Sscanf(w.events[0], "%fs", &first); err != nil {
		t.Fatal(err)
	}
	w.changes = append(w.changes, sim.Change{At: sched.Time(first+60) * 1e9, GPUs: []sched.GPUID{0}, Factor: 1})
	w.events = nil
	w.run(t)
	if len(w.events) != 2 || w.s.Factor(0) != 1 || w.s.Quarantined(0) {
		t.Errorf("it recovered: quarantines %v, factor %v", w.events, w.s.Factor(0))
	}
}

// Ensure that where jobs wait a slow GPU goes into quarantine only if it costs its gang more than a GPU; and where
// no one waits, only if the system does not weigh that itself.
func TestQuarantineMustPay(t *testing.T) {
	for _, c := range []struct {
		name        string
		scored      bool // PAL
		alone, wide int  // jobs of one GPU, for 2 hours, and the GPUs of the nine that follow, 0 = none do
		factor      float64
		want        bool // at any time; else not within the hours in which others wait
	}{
		{"alone, others wait", false, 80, 0, 2.8, false},
		{"alone, others wait, PAL", true, 80, 0, 2.8, false},
		{"alone, no one waits", false, 1, 0, 2.8, true},
		{"alone, no one waits, PAL", true, 1, 0, 2.8, false},
		{"then in a gang of four", false, 16, 4, 2.8, true}, // costs 2.6 GPUs
		{"then in a gang of two", false, 16, 2, 1.5, false}, // 0.7
		{"then in a gang of two, PAL", true, 16, 2, 1.5, false},
	} {
		w := &world{scored: c.scored, changes: []sim.Change{{At: hour / 2, GPUs: []sched.GPUID{0}, Factor: c.factor}}}
		for i := range c.alone {
			w.jobs = append(w.jobs, job(sched.Time(i), 1, 2*time.Hour))
		}
		for i := range 9 * min(c.wide, 1) {
			w.jobs = append(w.jobs, job(sched.Time(100+i), c.wide, 6*time.Hour))
		}
		first := sched.Never
		w.each = func(_ *sched.View, e *sched.Event) {
			if e.Kind == sched.Moved && e.Code == 1 {
				first = min(first, e.Time)
			}
		}
		w.run(t)
		if got := first < sched.Never && (c.want || first < 7*hour); got != c.want {
			t.Errorf("%s: quarantine %v, at %v, want %v", c.name, got, first, c.want)
		}
	}
}

// random is a world with changing jobs and slow GPUs.
func random(seed uint64, scored bool) *world {
	r := rand.New(rand.NewPCG(seed, 3))
	w := &world{scored: scored}
	at := sched.Time(0)
	for range 60 {
		at += sched.Time(r.Int64N(int64(20 * time.Minute)))
		w.jobs = append(w.jobs, job(at, 1<<r.IntN(4), time.Duration(10+r.IntN(200))*time.Minute))
	}
	for i := range 8 {
		w.changes = append(w.changes,
			sim.Change{At: sched.Time(i+1) * hour, GPUs: []sched.GPUID{sched.GPUID(r.IntN(16)),
				sched.GPUID(r.IntN(16))}, Factor: []float64{1, 1.2, 1.5, 3}[r.IntN(4)]})
	}
	return w
}

// Ensure that what is saved after any event and loaded into another gives the same future: both, hearing the same, save
// the same in the end and know the same factors; and that all jobs finish.
func TestSaveAndLoad(t *testing.T) {
	for seed := range uint64(6) {
		w := random(seed, seed%2 == 0)
		events, twin := 0, (*watch.Stragglers)(nil)
		w.each = func(v *sched.View, e *sched.Event) { // hears it before w.s does
			if twin != nil {
				twin.Observe(v, e)
				twin.Provision(v, &sched.Desired{})
			}
			if events++; events == 700 {
				twin = &watch.Stragglers{Weighs: w.s.Weighs}
				for j := range v.Jobs {
					if b := w.s.SaveJob(sched.JobID(j), nil); len(b) > 0 {
						if err := twin.LoadJob(sched.JobID(j), b); err != nil {
							t.Fatal(err)
						}
					}
				}
				if err := twin.LoadRest(w.s.SaveRest(nil)); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(twin.SaveRest(nil), w.s.SaveRest(nil)) {
					t.Fatalf("seed %d: saves other than was loaded", seed)
				}
				twin.Observe(v, e)
			}
		}
		for i, j := range w.run(t) {
			if j.Outcome != sched.Finished {
				t.Errorf("seed %d: job %d %v", seed, i, j.Outcome)
			}
		}
		for g := range sched.GPUID(16) {
			if twin == nil || twin.Factor(g) != w.s.Factor(g) {
				t.Fatalf("seed %d: GPU %d otherwise after loading", seed, g)
			}
		}
	}
}

// Ensure that a watcher that comes in the middle of a run goes on from what the view shows.
func TestTakesOver(t *testing.T) {
	w := &world{scored: true, jobs: []trace.Job{job(0, 1, 10*time.Hour)},
		changes: []sim.Change{{At: 2 * hour, GPUs: []sched.GPUID{0}, Factor: 2.8}}}
	late, found := &watch.Stragglers{}, false
	w.each = func(v *sched.View, e *sched.Event) {
		if e.Time > hour {
			late.Observe(v, e)
			found = found || late.Factor(0) > 2
		}
	}
	if w.run(t); !found {
		t.Error("nothing was found")
	}
}

// Ensure that a watcher that hears of nothing slow changes nothing, and that the same run is the same twice.
func TestSameAgain(t *testing.T) {
	for seed := range uint64(4) {
		a, b := random(seed, true), random(seed, true)
		x, y := a.run(t), b.run(t)
		for i := range x {
			if x[i].Finish != y[i].Finish {
				t.Fatalf("seed %d: job %d ends at %v, then at %v", seed, i, x[i].Finish, y[i].Finish)
			}
		}
	}
}

// FuzzLoad ensures that no bytes make a load panic or are taken that would not be saved again.
func FuzzLoad(f *testing.F) {
	f.Add((&watch.Stragglers{}).SaveRest(nil), []byte{})
	f.Fuzz(func(t *testing.T, rest, job []byte) {
		s := &watch.Stragglers{}
		_ = s.LoadJob(0, job)
		if s.LoadRest(rest) == nil {
			_ = s.SaveRest(nil)
			s.Factor(0)
		}
	})
}
