package metrics_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/trace"
)

// both folds a log into figures that keep everything, and into compact ones.
type both struct {
	*testing.T
	seed           uint64
	rec, smallRec  *metrics.Recorder
	line, smallOne *timeline.Timeline
	n, every       int
	now            sched.Time
}

func newBoth(t *testing.T, seed uint64, every int) *both {
	b := &both{T: t, seed: seed, every: every, rec: metrics.NewRecorder(0), smallRec: metrics.NewCompact(),
		line: new(timeline.Timeline)}
	b.line.Meter, b.smallOne = b.rec.Bill(), timeline.NewCompact(b.smallRec.Bill())
	return b
}

// Log folds an event, and now and then compares.
func (b *both) Log(v *sched.View, e *sched.Event) {
	for _, sink := range []eventlog.Sink{b.line, b.rec, b.smallOne, b.smallRec} {
		sink.Log(v, e)
	}
	b.now = v.Now
	if b.n++; b.n%b.every == 0 && !b.Failed() {
		b.compare(v.Now)
	}
}

func (b *both) compare(now sched.Time) {
	b.Helper()
	if got, want := b.smallRec.Result("x"), b.rec.Result("x"); !reflect.DeepEqual(got, want) {
		b.Errorf("seed %d, event %d: %+v, want %+v", b.seed, b.n, got, want)
	}
	if got, want := b.smallRec.All(), b.rec.All(); len(want) > 0 && !reflect.DeepEqual(got, want) {
		b.Errorf("seed %d, event %d: jobs %+v, want %+v", b.seed, b.n, got, want)
	}
	for id := range b.rec.Jobs {
		if got := b.smallRec.Of(sched.JobID(id)); got != b.rec.Jobs[id] {
			b.Errorf("seed %d, event %d: energy of job %d %v, want %v", b.seed, b.n, id, got, b.rec.Jobs[id].Energy)
		}
	}
	got, want := b.smallOne.Snapshot(now), b.line.Snapshot(now)
	if len(want.Jobs) > 0 && !reflect.DeepEqual(got.Jobs, want.Jobs) {
		b.Errorf("seed %d, event %d: described %+v, want %+v", b.seed, b.n, got.Jobs, want.Jobs)
	}
	if len(want.Attempts) > 0 && !reflect.DeepEqual(got.Attempts, want.Attempts) {
		b.Errorf("seed %d, event %d: attempts %+v, want %+v", b.seed, b.n, got.Attempts, want.Attempts)
	}
	if !reflect.DeepEqual(got.Losses(), want.Losses()) || !reflect.DeepEqual(got.Series(), want.Series()) ||
		!reflect.DeepEqual(got.Spells(), want.Spells()) {
		b.Errorf("seed %d, event %d: losses %+v, want %+v", b.seed, b.n, got.Losses(), want.Losses())
	}
	for id := sched.JobID(0); int(id) < len(want.Jobs); id += 7 {
		if got, want := b.smallOne.OfJob(id), want.OfJob(id); !reflect.DeepEqual(got, want) {
			b.Errorf("seed %d, event %d: attempts of job %d %+v, want %+v", b.seed, b.n, id, got, want)
		}
	}
}

// Ensure that figures which keep what is over in few bytes say the same as those which keep all of it, at any event, on
// random histories with failures, naps, sharing, renting, power, delays and commands of users.
func TestCompactAgainstWhole(t *testing.T) {
	for seed := range uint64(120) {
		h := newHistory(seed)
		d, err := sim.New(&trace.Trace{Jobs: h.jobs}, &h.cluster, h.options)
		if err != nil {
			t.Fatal(err)
		}
		b := newBoth(t, seed, 101)
		ctx, stop := context.WithCancel(context.Background())
		o := engine.Options{Sinks: []eventlog.Sink{b, &limit{t, 20000, stop}}}
		err = engine.Run(ctx, engine.NewState(eventlog.Header{Pools: h.pools, ShareLimit: 3}), d,
			h.decider(9*int(seed%3/2)), o)
		stop()
		if err != nil {
			t.Fatal(err)
		}
		b.compare(b.now)
		if t.Failed() {
			return
		}
	}
}

// Ensure the same where many attempts are packed: of systems that preempt, resize and share.
func TestCompactOfSystems(t *testing.T) {
	const in = "../internal/freeze/testdata/input/"
	for system, from := range map[string]simulate.Inputs{
		"tiresias-las": {Trace: in + "mixed.csv", Cluster: in + "failing.yaml"},
		"elastic":      {Trace: in + "mixed.csv", Cluster: in + "failing.yaml"},
		"eaco":         {Trace: in + "mixed.csv", Cluster: in + "octets.yaml", Sharing: in + "interference.csv"},
	} {
		b := newBoth(t, 0, 1009)
		request := simulate.Request{System: system, From: from, Sinks: []eventlog.Sink{b}}
		if _, err := request.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		b.compare(b.now)
		if n := len(b.line.Attempts); n < 64 {
			t.Errorf("%s: %d attempts, want enough to be packed", system, n)
		}
	}
}
