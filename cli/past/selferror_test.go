package past

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/trace"
	"github.com/trainyard/trainyard/whatif/whatiftest"
)

// asReal reports what a simulation does as a driver of real jobs would: no one sees when an attempt does its first
// work, some jobs never report any, and those have to start over when they are stopped.
type asReal struct {
	*sim.Driver
	v      *sched.View
	silent func(sched.JobID) bool
}

func (d *asReal) Sync(ctx context.Context, v *sched.View) ([]sched.Event, error) {
	d.v = v
	return d.Driver.Sync(ctx, v)
}

func (d *asReal) Next(ctx context.Context, until sched.Time) ([]sched.Event, error) {
	for {
		events, err := d.Driver.Next(ctx, until)
		seen := make([]sched.Event, 0, len(events))
		for _, e := range events {
			if d.see(&e) {
				seen = append(seen, e)
			}
		}
		if len(seen) > 0 || err != nil {
			return seen, err
		}
	}
}

// see makes of an event what is seen of it; false = nothing.
func (d *asReal) see(e *sched.Event) bool {
	silent := e.Kind.Form().Attempt && d.silent(e.Job)
	switch e.Kind {
	case sched.AttemptStarted:
		j := d.v.Job(e.Job)
		e.WorkFrom, e.Code, e.Rate = e.Time, sched.GuessedRate, float64(len(j.GPUs))/float64(j.Unit())
	case sched.Progressed, sched.EpochEnded:
		return !silent
	}
	if silent {
		e.Work = 0
	}
	return true
}

// recorded is the log of a queue as a manager has it: jobs of some minutes that come faster than they go, most of which
// report their work, and which take some seconds to minutes to start.
func recorded(t *testing.T, name string, seed uint64, silent func(sched.JobID) bool) string {
	t.Helper()
	return recordedBy(t, name, seed, silent, func(*whatiftest.World) {})
}

// recordedBy is recorded where jobs go by some law.
func recordedBy(t *testing.T, name string, seed uint64, silent func(sched.JobID) bool,
	law func(*whatiftest.World)) string {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 5))
	w := &whatiftest.World{Trace: &trace.Trace{}, Cluster: &cluster.Cluster{Name: "test", Types: []string{"a"}},
		Header: eventlog.Header{System: name, Origin: "2026-01-01T00:00:00Z", GPUs: 8, NodeGPUs: 8,
			Types: []string{"a"}}}
	w.Cluster.Nodes = []sched.NodeSpec{{Name: "n", GPUs: 8, Pool: sched.None}}
	if name == "boa-exact" {
		w.Header.NodeGPUs, w.Header.Budget = 1, 6
		w.Cluster.Nodes, w.Cluster.Pools = nil, []cluster.Pool{{Node: sched.NodeSpec{GPUs: 1},
			PoolSpec: sched.PoolSpec{Name: "slots", GPUs: 1, Max: 8, Price: 1}}}
		w.Header.Pools = w.Cluster.PoolSpecs()
	}
	costs := make(map[string]time.Duration)
	w.Runtime = sim.Runtime{StartDelay: time.Duration(1+r.IntN(5)) * time.Second,
		StopDelay: time.Duration(1+r.IntN(10)) * time.Second, RestartAtFirst: true,
		Report: 10 * time.Second, Noise: .01,
		RestartOf: func(j *trace.Job) time.Duration { return costs[j.Spec.Name] }}
	law(w)
	at := 0.
	for i := range 40 {
		at += r.ExpFloat64() * 200
		g := 1 << r.IntN(3)
		spec := sched.JobSpec{Name: fmt.Sprint("j", i), User: string(rune('a' + r.IntN(3))),
			Model: fmt.Sprint("m", r.IntN(3)), Submit: sched.Time(sched.Seconds(at)), GPUs: sched.Rigid(g),
			Share: sched.ShareAllow, Epochs: 10, Util: .4, GPUMemGB: 1}
		if i%2 == 0 && !silent(sched.JobID(i)) {
			spec.GPUs = sched.Range{Min: 1, Want: int32(g), Max: int32(2 * g)}
		}
		costs[spec.Name] = time.Duration(2+r.IntN(90)) * time.Second
		saves := trace.LosesWork
		if !silent(sched.JobID(i)) {
			spec.Saves, saves = true, trace.SavesWork
		}
		w.Trace.Jobs = append(w.Trace.Jobs,
			trace.Job{Spec: spec, Saves: saves, Duration: sched.Seconds(900 * math.Exp(.8*r.NormFloat64()))})
	}
	var err error
	if w.Header.Settings, err = system.LiveDefaults(name, nil); err != nil {
		t.Fatal(err)
	}
	dec, err := w.Live(t)()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	l := eventlog.NewWriter(&b, w.Header)
	d := &asReal{Driver: w.Driver(t), silent: silent}
	err = engine.Run(t.Context(), engine.NewState(w.Header), d, dec, engine.Options{Sinks: []eventlog.Sink{l}})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Ensure that a recorded queue of jobs that report their work and jobs that do not, with preemptions, comes out of a
// simulation of the system that decided as it went: mean JCT within a twentieth, on average over queues.
func TestSelfError(t *testing.T) {
	third := func(j sched.JobID) bool { return j%3 == 1 }
	stopped := int64(0)
	for _, name := range []string{"fifo", "tiresias-las", "elastic", "boa-exact", "eaco", "pal", "pollux"} {
		const seeds = 6
		sum := 0.
		for seed := range uint64(seeds) {
			h := read(t, recorded(t, name, seed, third))
			rows, err := h.Compare(t.Context(), []Candidate{h.Itself()})
			if err != nil || rows[1].Err != nil {
				t.Fatal(name, err, rows[1].Err)
			}
			sum += math.Abs(rows[1].Error.MeanJCT)
			stopped += rows[0].Preemptions
		}
		t.Logf("%-13s %.1f %%", name, 100*sum/seeds)
		if sum/seeds > .05 {
			t.Errorf("%s: its simulation is off by %.1f %% of the mean JCT, want 5 %% at most", name, 100*sum/seeds)
		}
	}
	if stopped < 50 {
		t.Errorf("%d preemptions: too few to mean anything", stopped)
	}
}

// Ensure that what the start of one job that reports its work was seen to cost is charged to no other.
func TestStartUpIsChargedWhereItWas(t *testing.T) {
	for _, name := range []string{"fifo", "fifo-skip", "tiresias-las"} {
		h := read(t, recorded(t, name, 7, func(j sched.JobID) bool { return j != 3 }))
		rows, err := h.Compare(t.Context(), []Candidate{h.Itself()})
		if err != nil || rows[1].Err != nil {
			t.Fatal(name, err, rows[1].Err)
		}
		if d := rows[1].Error.MeanJCT; math.Abs(d) > .05 {
			t.Errorf("%s: its simulation is off by %+.1f %% of the mean JCT, want 5 %% at most", name, 100*d)
		}
	}
}

// hurt is how much jobs of a model slow those next to them, and suffer from them; power says how fast they are by their
// GPUs.
var (
	hurt  = map[string]float64{"m0": .02, "m1": .05, "m2": .08}
	power = map[string]float64{"m0": .5, "m1": .7, "m2": .9}
)

// unequal has jobs share GPUs, slow each other down there, and be as fast on other numbers of GPUs as their model is.
func unequal(w *whatiftest.World) {
	for i := range w.Cluster.Nodes {
		w.Cluster.Nodes[i].GPUMemGB = 10
	}
	w.Runtime.Interference = func(j *trace.Job, others []*trace.Job) float64 {
		slow := 1.
		for _, o := range others {
			slow += hurt[j.Spec.Model] + hurt[o.Spec.Model]
		}
		return slow
	}
	w.Runtime.Speed = func(j *trace.Job, _ sched.Config, placement []int, _ time.Duration) (float64, time.Duration) {
		gpus := 0
		for _, n := range placement {
			gpus += n
		}
		return math.Pow(float64(gpus)/float64(j.Spec.GPUs.Want), power[j.Spec.Model]), 0
	}
}

// Ensure that how jobs slow each other down on a GPU, and how fast they are on more or fewer of them, is taken from the
// record. Whose turn comes first is a matter of seconds there, so that a queue by itself says little: over queues the
// mean JCT is right within a twentieth.
func TestSelfErrorWithoutProportion(t *testing.T) {
	third := func(j sched.JobID) bool { return j%3 == 1 }
	for _, name := range []string{"eaco", "elastic", "pollux"} {
		const seeds = 12
		was, is, stops, again := 0., 0., int64(0), int64(0)
		for seed := range uint64(seeds) {
			h := read(t, recordedBy(t, name, seed, third, unequal))
			rows, err := h.Compare(t.Context(), []Candidate{h.Itself()})
			if err != nil || rows[1].Err != nil {
				t.Fatal(name, err, rows[1].Err)
			}
			was, is = was+rows[0].MeanJCT, is+rows[1].MeanJCT
			stops, again = stops+rows[0].Preemptions, again+rows[1].Preemptions
		}
		t.Logf("%-8s %+.1f %%, stops %d and %d", name, 100*(is/was-1), stops, again)
		if math.Abs(is/was-1) > .05 {
			t.Errorf("%s: its simulations are off by %+.1f %% of the mean JCT, want 5 %% at most", name, 100*(is/was-1))
		}
		if name == "eaco" && (again < stops/2 || again > 2*stops) {
			t.Errorf("eaco: %d stops simulated of %d, want about as many", again, stops)
		}
	}
}

// Ensure that the slow-downs of pairs, and the work of jobs that shared GPUs, come out of a record as they were.
func TestSlowdownsFromRecord(t *testing.T) {
	h := read(t, recordedBy(t, "eaco", 5, func(j sched.JobID) bool { return j%3 == 1 }, unequal))
	pairs := 0
	for n, slow := range h.speeds.slow {
		others := kindsOf(n.company)
		if len(others) != 1 {
			continue
		}
		pairs++
		if want := 1 + hurt[n.kind] + hurt[others[0]]; math.Abs(slow/want-1) > .02 {
			t.Errorf("%s next to %s takes %.3f times as long, want %.3f", n.kind, others[0], slow, want)
		}
	}
	if pairs < 5 {
		t.Errorf("%d kinds of pairs: too few to mean anything", pairs)
	}
	for name, want := range map[string]time.Duration{"j0": 3166 * time.Second, "j8": 6451 * time.Second} {
		i := slices.IndexFunc(h.Trace.Jobs, func(j trace.Job) bool { return j.Spec.Name == name })
		if is := h.Trace.Jobs[i].Duration; math.Abs(is.Seconds()/want.Seconds()-1) > .01 {
			t.Errorf("%s: work %v, want %v", name, is, want)
		}
	}
}
