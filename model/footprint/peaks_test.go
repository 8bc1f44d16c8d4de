package footprint_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/trainyard/trainyard/model/footprint"
	"github.com/trainyard/trainyard/sched"
)

// world is jobs that run, as Peaks see them.
type world struct {
	v sched.View
	p *footprint.Peaks
}

func (w *world) add(spec sched.JobSpec) sched.JobID {
	spec.GPUs = sched.Rigid(1)
	w.v.Jobs = append(w.v.Jobs, sched.Job{Spec: &spec, State: sched.Active, Attempt: sched.Running, Up: true,
		Settled: w.v.Now})
	return sched.JobID(len(w.v.Jobs) - 1)
}

func (w *world) see(e sched.Event) { w.p.Observe(&w.v, &e) }

func (w *world) measured(j sched.JobID, gb float32) {
	w.see(sched.Event{Kind: sched.Measured, Job: j, MemGB: gb})
}

// is fails the test unless job j is taken to have so much memory, from there.
func (w *world) is(t *testing.T, j sched.JobID, gb float64, from footprint.Source) {
	t.Helper()
	if got, source := w.p.Of(&w.v, j); got != gb || source != from {
		t.Errorf("job %d has %v GB, %v, want %v, %v", j, got, source, gb, from)
	}
}

// Ensure that what is stated counts until more is measured, that what is measured of a job which states nothing counts
// once it has run for long, and that what a job had that finished counts for those alike.
func TestPeaks(t *testing.T) {
	w := &world{p: footprint.New()}
	says := w.add(sched.JobSpec{Model: "net", User: "ann", GPUMemGB: 8})
	silent := w.add(sched.JobSpec{Model: "net", User: "bob"})
	w.is(t, says, 8, footprint.Stated)
	w.is(t, silent, 0, footprint.Unknown)
	w.measured(says, 7)
	w.measured(silent, 5)
	w.see(sched.Event{Kind: sched.Measured, Job: sched.None, Node: 0, MemGB: 70})
	w.is(t, says, 8, footprint.Stated)
	w.is(t, silent, 0, footprint.Unknown)
	w.measured(says, 9)
	if !w.p.News() {
		t.Error("more was measured, and that is no news")
	}
	w.measured(says, 6)
	if w.p.News() {
		t.Error("less was measured, and that is news")
	}
	w.is(t, says, 9, footprint.Measured)

	w.v.Now += sched.Time(footprint.Settled)
	w.see(sched.Event{Kind: sched.Progressed, Job: silent})
	w.is(t, silent, 5, footprint.Measured)
	next := w.add(sched.JobSpec{Model: "net", User: "bob"})
	w.is(t, next, 0, footprint.Unknown)
	w.see(sched.Event{Kind: sched.AttemptEnded, Job: silent, Outcome: sched.Failed})
	w.is(t, next, 0, footprint.Unknown)
	w.see(sched.Event{Kind: sched.AttemptEnded, Job: silent, Outcome: sched.Finished})
	w.is(t, next, 5, footprint.Alike)
	w.measured(next, 6)
	w.is(t, next, 6, footprint.Measured)
	w.is(t, w.add(sched.JobSpec{Model: "net", User: "ann"}), 0, footprint.Unknown)
	w.is(t, w.add(sched.JobSpec{Model: "net", User: "bob", Batch: sched.BatchRange{Max: 64}}), 0, footprint.Unknown)
}

// Ensure that Peaks that were saved and loaded go on as if they had not been, and that no part of what they save loads
// as something else.
func TestSaveAndLoad(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	w := &world{p: footprint.New()}
	for i := range 300 {
		if i%3 == 0 {
			w.add(sched.JobSpec{Model: string(rune('a' + rng.IntN(5))), GPUMemGB: float32(rng.IntN(2))})
		}
		w.v.Now += sched.Time(rng.Int64N(int64(time.Minute)))
		j := sched.JobID(rng.IntN(len(w.v.Jobs)))
		switch rng.IntN(4) {
		case 0:
			w.see(sched.Event{Kind: sched.AttemptEnded, Job: j, Outcome: sched.Finished})
		case 1:
			w.see(sched.Event{Kind: sched.Progressed, Job: j})
		default:
			w.measured(j, float32(rng.IntN(40)))
		}
	}
	other := &world{v: w.v, p: footprint.New()}
	for j := range w.v.Jobs {
		b := w.p.SaveJob(sched.JobID(j), nil)
		if len(b) == 0 {
			continue
		}
		if err := other.p.LoadJob(sched.JobID(j), b); err != nil {
			t.Fatal(err)
		}
		if other.p.LoadJob(sched.JobID(j), b[:len(b)-1]) == nil {
			t.Error("a part of what was saved of a job is loaded")
		}
	}
	rest := w.p.SaveRest(nil)
	for n := range rest {
		if footprint.New().LoadRest(rest[:n]) == nil {
			t.Errorf("%d of %d bytes are loaded", n, len(rest))
		}
	}
	if err := other.p.LoadRest(rest); err != nil {
		t.Fatal(err)
	}
	for j := range w.v.Jobs {
		gb, from := w.p.Of(&w.v, sched.JobID(j))
		other.is(t, sched.JobID(j), gb, from)
		if !bytes.Equal(w.p.SaveJob(sched.JobID(j), nil), other.p.SaveJob(sched.JobID(j), nil)) {
			t.Errorf("job %d is saved otherwise once loaded", j)
		}
	}
	if !bytes.Equal(other.p.SaveRest(nil), rest) {
		t.Error("kinds are saved otherwise once loaded")
	}
}
