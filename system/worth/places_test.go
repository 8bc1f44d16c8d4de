package worth_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/model/remaining"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/place"
	"github.com/trainyard/trainyard/system/pal"
	"github.com/trainyard/trainyard/system/worth"
	"github.com/trainyard/trainyard/trace"
)

// uneven is a cluster whose GPUs differ: pm by GPU, the same for all jobs.
type uneven struct {
	cluster string
	pm      []float64
	restart time.Duration
	unsaved sched.Unsaved
}

// moves checks that who moves at its width gains more by the scores than its restart takes, once at an instant.
type moves struct {
	t      *testing.T
	w      uneven
	slow   func(*sched.View, sched.JobID, []sched.GPUID) float64
	oracle sched.Remainer
	last   map[sched.JobID]sched.Time
	held   map[sched.JobID][]sched.GPUID
	count  int
}

// Log looks at what was decided.
func (m *moves) Log(v *sched.View, e *sched.Event) {
	if e.Kind != sched.Decided {
		return
	}
	j, was := &v.Jobs[e.Job], m.held[e.Job]
	m.held[e.Job] = append([]sched.GPUID(nil), e.GPUs...)
	if len(was) == 0 || len(was) != len(e.GPUs) || j.Spec.GPUs.Min < j.Spec.GPUs.Max {
		return
	}
	left := float64(m.oracle.Remaining(v, e.Job))
	here, there := m.slow(v, e.Job, was), m.slow(v, e.Job, e.GPUs)
	if !(left*(here-there) > float64(m.w.restart)) {
		m.t.Errorf("job %d moves from %v to %v with %v left, by %v", e.Job, was, e.GPUs, left, here-there)
	}
	if at, ok := m.last[e.Job]; ok && at == v.Now || m.w.unsaved == sched.LeaveUnsaved {
		m.t.Errorf("job %d moves at %v, last at %v, unsaved %v", e.Job, v.Now, at, m.w.unsaved)
	}
	m.last[e.Job] = v.Now
	m.count++
}

// run plays jobs, whose sizes are known.
func (w uneven) run(t *testing.T, jobs []trace.Job) (ended []metrics.Job, moved int) {
	t.Helper()
	tr := &trace.Trace{Jobs: jobs}
	c, err := cluster.Load(w.cluster)
	if err != nil {
		t.Fatal(err)
	}
	scores := &variability.Scores{Classes: []string{"A"}, PM: [][]float64{w.pm}}
	b := pal.Beliefs{Scores: place.NewScores(variability.Rule{K: 4}.All(scores),
		func(*sched.View, sched.JobID) int { return 0 }), Penalty: place.TwoLevel(1.5)}
	runtime := sim.Runtime{Restart: w.restart,
		Slowdown: func(_ *sched.View, _ *trace.Job, gpus []sched.GPUID, nodes, _ int) float64 {
			x := 0.0
			for _, g := range gpus {
				x = max(x, w.pm[g])
			}
			if nodes > 1 {
				x *= 1.5
			}
			return x
		}}
	d, err := sim.New(tr, c, sim.Options{Runtime: runtime})
	if err != nil {
		t.Fatal(err)
	}
	s := worth.Stages(worth.Known{Speeds: speedup.NewLearned(4, 8), Work: remaining.Known{Remainer: tr.Oracle()},
		Restart: func(string) time.Duration { return w.restart },
		Scores:  &worth.Places{Place: place.PAL{Scores: b.Scores, Penalty: b.Penalty}, Slowdown: b.Slowdown}},
		worth.Params{Explores: true, Unsaved: w.unsaved})
	s.Unsaved = w.unsaved
	rec := metrics.NewRecorder(len(jobs))
	check := &moves{t: t, w: w, slow: b.Slowdown, oracle: tr.Oracle(), last: map[sched.JobID]sched.Time{},
		held: map[sched.JobID][]sched.GPUID{}}
	if err := engine.Run(context.Background(), engine.NewState(eventlog.Header{}), d, s.Decider(),
		engine.Options{Sinks: []eventlog.Sink{rec, whole{t}, check}}); err != nil {
		t.Fatal(err)
	}
	return rec.Jobs, check.count
}

// Ensure that a rigid job leaves a slow GPU as soon as a fast one is free, if what it has left gets shorter by more
// than its restart, and may be stopped at all.
func TestMovesPay(t *testing.T) {
	for _, c := range []struct {
		name    string
		work    int
		restart time.Duration
		unsaved sched.Unsaved
		ends    int
	}{
		{"much is left", 2000, 60 * time.Second, sched.StopUnsaved, 1000 + 60 + 1667},
		{"little is left", 360, 60 * time.Second, sched.StopUnsaved, 1 + 3*360},
		{"a restart costs too much", 2000, time.Hour, sched.StopUnsaved, 1 + 3*2000},
		{"it saves nothing", 2000, 60 * time.Second, sched.LeaveUnsaved, 1 + 3*2000},
	} {
		w := uneven{"1x2", []float64{1, 3}, c.restart, c.unsaved}
		jobs, _ := w.run(t, []trace.Job{job(0, 1, 1000), job(1, 1, c.work)})
		if got := seconds(jobs[1].Finish); got != c.ends {
			t.Errorf("%s: it ends at %d, want %d", c.name, got, c.ends)
		}
	}
}

// Ensure that in random worlds whose GPUs differ all jobs end, and no move is made that does not pay.
func TestRandomUnevenWorldsEnd(t *testing.T) {
	moved := 0
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 71))
		w := uneven{cluster: []string{"2x4", "1x8", "8x1"}[r.IntN(3)],
			restart: time.Duration(r.IntN(3)) * 40 * time.Second, unsaved: sched.Unsaved(r.IntN(2))}
		for range 8 {
			w.pm = append(w.pm, []float64{1, 1, 1.4, 2.5}[r.IntN(4)])
		}
		var jobs []trace.Job
		at := 0
		for range 40 {
			if r.IntN(3) > 0 {
				at += r.IntN(200)
			}
			j := job(at, 1+r.IntN(8), 1+r.IntN(1+r.IntN(2000)))
			if g := &j.Spec.GPUs; r.IntN(4) == 0 {
				g.Min, g.Max = 1, 8
			}
			jobs = append(jobs, j)
		}
		ended, n := w.run(t, jobs)
		moved += n
		for i, j := range ended {
			if j.Outcome != sched.Finished {
				t.Fatalf("seed %d, %+v: job %d of %d GPUs has not finished", seed, w, i, j.GPUs)
			}
		}
	}
	if moved == 0 {
		t.Error("no job was moved")
	}
}
