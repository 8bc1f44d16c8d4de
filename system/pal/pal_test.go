package pal_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/allocate"
	"github.com/trainyard/trainyard/stage/place"
	"github.com/trainyard/trainyard/system/baseline"
	"github.com/trainyard/trainyard/system/pal"
	"github.com/trainyard/trainyard/trace"
)

// world is a cluster whose GPUs differ: pm[c][g] for classes A and B.
type world struct {
	cluster string
	pm      [][]float64
	across  float64
	cost    time.Duration
	every   time.Duration // between placements of all
	grants  sched.Allocator
}

// run plays t under FIFO with PAL placing, in rounds of 300 s; a restart takes 62 s.
func (w world) run(t *testing.T, tr *trace.Trace) []metrics.Job {
	t.Helper()
	classes := []string{"A", "B"}[:len(w.pm)]
	class := pal.Class(classes, nil)
	bins := variability.Rule{K: 4}.All(&variability.Scores{Classes: classes, PM: w.pm})
	k := pal.Beliefs{Scores: place.NewScores(bins, place.BySpec(class)), Penalty: place.TwoLevel(w.across),
		Work: tr.Oracle()}
	r := sim.Runtime{Restart: 62 * time.Second}
	r.Slowdown = func(_ *sched.View, j *trace.Job, gpus []sched.GPUID, nodes, _ int) float64 {
		x := 0.0
		for _, g := range gpus {
			x = max(x, w.pm[class(&j.Spec)][g])
		}
		if nodes > 1 {
			x *= w.across
		}
		return x
	}
	c, err := cluster.Load(w.cluster)
	if err != nil {
		t.Fatal(err)
	}
	d, err := sim.New(tr, c, sim.Options{Runtime: r})
	if err != nil {
		t.Fatal(err)
	}
	rec := metrics.NewRecorder(len(tr.Jobs))
	stages := pal.PAL(baseline.FIFO(nil), k, pal.Options{MoveCost: w.cost, ReplaceEvery: w.every, Grants: w.grants})
	err = engine.Run(context.Background(), engine.NewState(eventlog.Header{}), d, pipeline.New(stages),
		engine.Options{Sinks: []eventlog.Sink{rec}})
	if err != nil {
		t.Fatal(err)
	}
	return rec.Jobs
}

func job(name, class string, submit, gpus, seconds int) trace.Job {
	return trace.Job{Spec: sched.JobSpec{Name: name, Class: class, GPUs: sched.Rigid(gpus),
		Submit: sched.Time(submit) * 1e9},
		Duration: time.Duration(seconds) * time.Second}
}

// Ensure that a job moves to a faster GPU that gets free if that saves more than the cost of moving, and not else. The
// long one then takes 600 s at half speed, 62 s to restart and the rest at full speed.
func TestMovesOnlyIfWorthIt(t *testing.T) {
	for _, c := range []struct {
		seconds, moves int
		cost           time.Duration
	}{
		{1000, 1, 62 * time.Second},  // 700 s left: moving saves 700 s of 1400
		{1000, 0, 701 * time.Second}, // not more than that
		{360, 0, 62 * time.Second},   // 60 s left
		{364, 1, 62 * time.Second},   // 64 s left
		{1000, 1, 0},                 // free
		{100_000, 0, 1 << 20 * 1e9},  // dearer than all that is left
		{100_000, 1, 90_000 * 1e9},   // just worth it
		{100_000, 0, 100_000 * 1e9},  // just not
	} {
		w := world{cluster: "2x1", pm: [][]float64{{2, 1}}, across: 1, cost: c.cost}
		got := w.run(t, &trace.Trace{Jobs: []trace.Job{job("first", "A", 0, 1, 590),
			job("second", "A", 0, 1, c.seconds)}})
		if int(got[1].Migrations) != c.moves || got[0].Migrations != 0 {
			t.Errorf("%d s at a cost of %v: %d moves, want %d", c.seconds, c.cost, got[1].Migrations, c.moves)
		}
		if c.moves == 1 && got[1].Run != time.Duration(600+62+c.seconds-300)*time.Second {
			t.Errorf("%d s: ran %v", c.seconds, got[1].Run)
		}
	}
}

// Ensure that all are placed again only in the first round at or after each multiple of their period, be it a multiple
// of the round or not, and that newcomers start in every round all the same.
func TestReplaceEvery(t *testing.T) {
	for _, c := range []struct{ every, at int }{{0, 600}, {300, 600}, {900, 900}, {1000, 1200}, {3600, 3600},
		{1e6, 0}} {
		w := world{cluster: "3x1", pm: [][]float64{{2, 1, 4}}, across: 1, every: time.Duration(c.every) * time.Second}
		got := w.run(t, &trace.Trace{Jobs: []trace.Job{job("first", "A", 0, 1, 590), job("second", "A", 0, 1, 10_000),
			job("late", "A", 301, 1, 1)}})
		want := 2 * 10_000
		if c.at > 0 { // at half speed until then
			want = c.at + 62 + 10_000 - c.at/2
		}
		if got[1].Run != time.Duration(want)*time.Second {
			t.Errorf("every %d s: ran %v, want %d s", c.every, got[1].Run, want)
		}
		if got[2].Start != 600*1e9 {
			t.Errorf("every %d s: the newcomer starts at %v, want 600 s", c.every, got[2].Start)
		}
	}
}

// Ensure that with another rule of who runs a job may pass one that does not fit, and that without it does not.
func TestBackfill(t *testing.T) {
	for _, c := range []struct {
		grants sched.Allocator
		start  sched.Time
	}{{nil, 1500e9}, {allocate.Quota{}, 0}} {
		w := world{cluster: "2x1", pm: [][]float64{{1, 1}}, across: 1, grants: c.grants}
		got := w.run(t, &trace.Trace{Jobs: []trace.Job{job("head", "A", 0, 1, 1000), job("wide", "A", 0, 2, 300),
			job("behind", "A", 0, 1, 100)}})
		if got[2].Start != c.start {
			t.Errorf("%T: starts at %v, want %v", c.grants, got[2].Start, c.start)
		}
	}
}

// Ensure that the sensitive class chooses first although the other arrived first, and that who runs stays as it is.
func TestSensitiveClassChoosesFirst(t *testing.T) {
	w := world{cluster: "3x1", pm: [][]float64{{3, 1, 2}, {1.2, 1, 1.1}}, across: 1}
	got := w.run(t, &trace.Trace{Jobs: []trace.Job{job("b", "B", 0, 1, 1000), job("a", "A", 0, 1, 1000),
		job("b2", "B", 0, 1, 1000), job("late", "A", 0, 1, 10)}})
	for i, want := range []time.Duration{1100, 1000, 1200} { // b takes the better of what a leaves
		if got[i].Start != 0 || got[i].Run != want*time.Second {
			t.Errorf("%s starts at %v and runs %v, want 0 and %d s", got[i].Name, got[i].Start, got[i].Run, want)
		}
	}
	if got[3].Start == 0 {
		t.Errorf("the last started at once: it is sensitive, but behind the prefix")
	}
}

// Ensure that no job moves where GPUs are alike and distance costs nothing, however jobs come and go.
func TestNobodyMovesBetweenAlikeGPUs(t *testing.T) {
	moves := 0
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 5))
		tr, at := &trace.Trace{}, 0
		for i := range 40 {
			at += r.IntN(900)
			tr.Jobs = append(tr.Jobs, job(fmt.Sprint(i), []string{"A", "B"}[r.IntN(2)], at, 1+r.IntN(6),
				60+r.IntN(5000)))
		}
		alike := []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
		for _, j := range (world{cluster: "4x4", pm: [][]float64{alike, alike}, across: 1,
			cost: 62 * time.Second}).run(t, tr) {
			moves += int(j.Migrations)
		}
	}
	if moves > 0 {
		t.Errorf("%d moves, want none", moves)
	}
}
