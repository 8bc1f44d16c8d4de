package worth_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/model/remaining"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/place"
	"github.com/trainyard/trainyard/system/worth"
	"github.com/trainyard/trainyard/trace"
)

// world is what a test runs on.
type world struct {
	cluster string
	restart time.Duration
	learned bool // sizes; else by an oracle
	unsaved sched.Unsaved
	speeds  string // table of those known, by width; "" = they are learned
}

func (w world) run(t *testing.T, jobs []trace.Job) []metrics.Job {
	t.Helper()
	tr := &trace.Trace{Jobs: jobs}
	c, err := cluster.Load(w.cluster)
	if err != nil {
		t.Fatal(err)
	}
	d, err := sim.New(tr, c, sim.Options{Runtime: sim.Runtime{Restart: w.restart}})
	if err != nil {
		t.Fatal(err)
	}
	known := worth.Known{Speeds: speedup.NewLearned(4, 8), Work: remaining.Known{Remainer: tr.Oracle()},
		Restart: func(string) time.Duration { return w.restart }}
	if w.speeds != "" {
		app, bad := speedup.ReadThroughputs(strings.NewReader(w.speeds), "m")
		if bad != nil {
			t.Fatal(bad)
		}
		known.Speeds = speedup.NewOracle(map[string]speedup.App{"m": app}, 4, 8)
	}
	if w.learned {
		known.Work = remaining.NewSizes()
	}
	s := worth.Stages(known, worth.Params{Place: place.Count{}, Explores: true, Unsaved: w.unsaved})
	s.Unsaved = w.unsaved
	rec := metrics.NewRecorder(len(jobs))
	if err := engine.Run(context.Background(), engine.NewState(eventlog.Header{}), d, s.Decider(),
		engine.Options{Sinks: []eventlog.Sink{rec, whole{t}}}); err != nil {
		t.Fatal(err)
	}
	return rec.Jobs
}

// whole checks that who is given GPUs is given as many as were meant for it.
type whole struct{ t *testing.T }

// Log looks at what was decided.
func (w whole) Log(v *sched.View, e *sched.Event) {
	if j := v.Jobs; e.Kind == sched.Decided && len(e.GPUs) > 0 && int(j[e.Job].Want) != len(e.GPUs) {
		w.t.Errorf("job %d is given %d GPUs, %d were meant", e.Job, len(e.GPUs), j[e.Job].Want)
	}
}

// job arrives, asks for GPUs and takes so long; times are in seconds.
func job(at, gpus, takes int) trace.Job {
	return trace.Job{Spec: sched.JobSpec{Submit: sched.Time(0).Add(time.Duration(at) * time.Second),
		GPUs: sched.Rigid(gpus), Model: "m"}, Duration: time.Duration(takes) * time.Second}
}

func seconds(t sched.Time) int { return int(t / sched.Time(time.Second)) }

// Ensure that a long job is stopped for a short one where that pays for its restart, and only there: example 11 of
// docs/papers/combined.md, with nothing unsaved.
func TestStopsMustPay(t *testing.T) {
	w := world{cluster: "1x1", restart: 60 * time.Second}
	for _, c := range []struct{ left, newcomer, ends int }{
		{1000, 100, 110},       // it is stopped
		{130, 100, 10 + 230},   // it is nearly done: the newcomer waits
		{1000, 990, 10 + 1990}, // they are alike
	} {
		jobs := w.run(t, []trace.Job{job(0, 1, c.left+10), job(10, 1, c.newcomer)})
		if got := seconds(jobs[1].Finish); got != c.ends {
			t.Errorf("%+v: the newcomer ends at %d", c, got)
		}
	}
}

// Ensure that a gang of the whole cluster starts under a stream of narrow jobs of which none may be stopped: an hour
// after it came none starts any more, and the longest of those that run ends in ten minutes.
func TestGangStartsUnderAStream(t *testing.T) {
	w := world{cluster: "1x4", unsaved: sched.LeaveUnsaved}
	jobs := []trace.Job{job(1000, 4, 3000)}
	for i := range 1000 {
		jobs = append(jobs, job(175*i, 1, 600))
	}
	for i := 1; i < len(jobs) && jobs[i].Spec.Submit < jobs[i-1].Spec.Submit; i++ {
		jobs[i-1], jobs[i] = jobs[i], jobs[i-1]
	}
	for _, j := range w.run(t, jobs) {
		if j.GPUs == 4 && seconds(j.Start) > 1000+3600+600+300 { // a look at prices may come five minutes late
			t.Errorf("the gang starts at %d", seconds(j.Start))
		}
	}
}

// Ensure that random worlds of elastic and rigid jobs, with restarts that cost much, little or nothing, come to an end
// with all jobs done.
func TestRandomWorldsEnd(t *testing.T) {
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 23))
		var jobs []trace.Job
		at := 0
		for range 40 {
			if r.IntN(3) > 0 {
				at += r.IntN(200)
			}
			j := job(at, 1+r.IntN(8), r.IntN(1+r.IntN(2000)))
			if g := &j.Spec.GPUs; r.IntN(2) == 0 {
				g.Min, g.Max = 1, 8
			}
			j.Spec.Priority, j.Duration = int32(r.IntN(4)-1), max(j.Duration, 1)
			jobs = append(jobs, j)
		}
		w := world{cluster: []string{"2x4", "1x8", "8x1"}[r.IntN(3)], learned: r.IntN(2) == 0,
			restart: time.Duration(r.IntN(3)) * 40 * time.Second, unsaved: sched.Unsaved(r.IntN(2))}
		for i, j := range w.run(t, jobs) {
			if j.Outcome != sched.Finished {
				t.Fatalf("seed %d, %+v: job %d of %d GPUs has not finished", seed, w, i, j.GPUs)
			}
		}
	}
}

// Ensure that jobs whose speed grows faster than their width do not stop each other again and again: what one holds is
// worth to it what it was when it was served, as to be wider would cost a restart.
func TestFastGrowingSpeedsDoNotThrash(t *testing.T) {
	for _, spec := range []string{"2x4", "1x4:a+1x4:b"} {
		for _, learned := range []bool{false, true} {
			var jobs []trace.Job
			for i := range 300 {
				j := job(20*i, 1, 300+200*(i%7))
				j.Spec.GPUs.Max, j.Spec.Batch = 8, sched.BatchRange{Min: 64, Max: 64}
				jobs = append(jobs, j)
			}
			w := world{cluster: spec, restart: 62 * time.Second, learned: learned,
				speeds: "global_batch_size,1,2,4,8\n64,1,3.7,8,12\n"}
			stops := int64(0)
			for _, j := range w.run(t, jobs) {
				stops += int64(j.Preemptions)
			}
			if stops > 3*int64(len(jobs)) { // they were 1,700 and more
				t.Errorf("%s, learned %v: %d stops of %d jobs", spec, learned, stops, len(jobs))
			}
		}
	}
}
