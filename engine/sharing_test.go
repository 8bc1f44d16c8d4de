package engine_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// newSharing draws a world in which jobs have epochs and may share GPUs, and a sharer decides.
func newSharing(seed uint64) *world {
	w := newWorld(seed)
	r := rand.New(rand.NewPCG(seed, 8))
	w.share = 1 + r.IntN(4)
	w.runtime.EpochEnd = func(_ *trace.Job, n int) time.Duration { return time.Duration(n) * 2 * time.Second }
	for i := range w.jobs {
		s := &w.jobs[i].Spec
		s.Share = pick(r, sched.ShareNever, sched.ShareAllow, sched.ShareAllow)
		s.GPUs.Max += int32(r.IntN(3))
		s.GPUs.Min = 1 + int32(r.IntN(int(s.GPUs.Min)))
	}
	return w
}

// decider makes whoever decides in w, but for who rents.
func (w *world) decider() sched.Decider {
	if w.share == 0 {
		return pipeline.New(w.stages())
	}
	return &sharer{seed: w.seed}
}

// sharer is a Decider that gives sets at random, shared, on trial or alone, now or at an epoch's end, much of it wrong;
// after a while it gives every job what is free, so that all ends.
type sharer struct {
	noMemory
	seed  uint64
	acted sched.Time // at which it last did
}

// sharerUntil is when a sharer comes to its senses.
const sharerUntil = 60 * second

func (*sharer) Observe(*sched.View, *sched.Event) {}

func (s *sharer) Decide(v *sched.View, d *sched.Desired) {
	if v.Now > sharerUntil {
		s.serve(v, d)
		return
	}
	if len(v.Jobs) > 0 {
		d.WakeBy(v.Now.Add(time.Second))
	}
	if v.Now == s.acted {
		return
	}
	s.acted = v.Now
	r := rand.New(rand.NewPCG(s.seed, v.Version))
	for i := range v.Jobs {
		j, id := &v.Jobs[i], sched.JobID(i)
		if !j.Eligible() || r.IntN(3) > 0 {
			continue
		}
		t := d.Keep(v, id)
		if len(j.Target) == 0 || r.IntN(3) == 0 {
			set := someGPUs(v, r, int(j.Spec.GPUs.Min)+r.IntN(int(j.Spec.GPUs.Max-j.Spec.GPUs.Min)+1))
			d.Jobs = d.Jobs[:len(d.Jobs)-1]
			t = d.Give(id, set, sched.Reason{Code: sched.WhyMoved})
			t.Share = sched.Share(r.IntN(2))
			t.Trial = t.Share == sched.Shared && r.IntN(3) == 0
			t.Want = int32(r.IntN(6))
		}
		t.At = sched.Boundary(r.IntN(4) / 3)
		if r.IntN(3) == 0 {
			t.Cap = sched.Watts(100 * r.IntN(3))
		}
		if r.IntN(9) == 0 {
			t.Batch, t.Trial = int32(r.IntN(2)), false
		}
		if r.IntN(5) == 0 {
			d.Watch = append(d.Watch, sched.Watch{Job: id, On: r.IntN(2) == 0})
		}
	}
}

func (s *sharer) Format() string { return "sharer/1" }
func (s *sharer) SaveRest(b []byte) []byte {
	return binary.LittleEndian.AppendUint64(b, uint64(s.acted))
}

func (s *sharer) LoadRest(b []byte) error {
	s.acted = sched.Time(binary.LittleEndian.Uint64(b))
	return nil
}

// serve gives jobs that wait whatever is free.
func (s *sharer) serve(v *sched.View, d *sched.Desired) {
	l := sched.NewLedger(v)
	for i := range v.Jobs {
		j, id := &v.Jobs[i], sched.JobID(i)
		for t := sched.TypeID(0); int(t) < l.Types() && j.Eligible() && len(j.Target) == 0 && l.Set(id) == nil; t++ {
			if n := int(j.Spec.GPUs.Min); j.Spec.Types.Has(t) && l.FreeOf(t) >= n {
				set := l.TakeAny(t, n, nil)
				l.Book(id, set)
				d.Give(id, set, sched.Reason{Code: sched.WhyStarted})
			}
		}
	}
}

// Ensure, after every event of worlds in which jobs share GPUs, that no GPU has more tenants than it may, that who
// shares with no one has its GPUs alone, that one newcomer is on trial at a time and that counters equal a recount;
// that all ends, and that the log replays.
func TestSharing(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(cases(t, 1500)) {
		w := newSharing(seed)
		var log bytes.Buffer
		writer := eventlog.NewWriter(&log, w.header())
		count := sinkFunc(func(v *sched.View, e *sched.Event) { note(seen, v, e) })
		v, err := w.run(w.decider(), &checker{scripted: true}, writer, count)
		if err == nil {
			err = writer.Close()
		}
		if err != nil {
			t.Fatalf("%v\n%v", w, err)
		}
		for i := range v.Jobs {
			if j := &v.Jobs[i]; j.HoldsDevices() {
				t.Fatalf("%v\njob %d holds %v at the end", w, i, j.GPUs)
			}
		}
		r, err := eventlog.NewReader(&log, "log")
		if err == nil {
			err = engine.Replay(context.Background(), r.Header(), r.Records(), w.renting(w.decider()),
				engine.ReplayOptions{})
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	for _, what := range []string{"shared", "trial", "adjust", "watch", "later", "at epoch end", "refused"} {
		if seen[what] < 50 {
			t.Errorf("%d of %q in all worlds: too few to say anything", seen[what], what)
		}
	}
}

// note counts what a test of sharing must have met.
func note(seen map[string]int, v *sched.View, e *sched.Event) {
	switch {
	case e.Kind == sched.Refused:
		seen["refused"]++
	case e.Kind == sched.Decided && e.Target.At == sched.AtEpochEnd:
		seen["later"]++
	case e.Kind == sched.Decided && e.Target.Trial:
		seen["trial"]++
	case e.Kind == sched.EpochEnded && len(v.Jobs[e.Job].Target) > 0:
		seen["at epoch end"]++
	case e.Kind == sched.Ordered && sched.ActionKind(e.Code) == sched.Adjust:
		seen["adjust"]++
	case e.Kind == sched.Ordered && sched.ActionKind(e.Code) == sched.WatchEpochs:
		seen["watch"]++
	case e.Kind == sched.AttemptStarted && slices.ContainsFunc(v.Jobs[e.Job].GPUs, func(g sched.GPUID) bool {
		return v.GPUs[g].Holders > 1
	}):
		seen["shared"]++
	}
}
