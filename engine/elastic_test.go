package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
)

// newElastic draws a world in which widths and batch sizes change.
func newElastic(seed uint64) *world {
	w := newWorld(seed)
	r := rand.New(rand.NewPCG(seed, 9))
	w.system.admit = "elastic"
	for i := range w.jobs {
		s := &w.jobs[i].Spec
		s.GPUs.Max += int32(r.IntN(3))
		s.GPUs.Min = 1 + int32(r.IntN(int(s.GPUs.Min)))
		s.Batch = sched.BatchRange{Min: 1, Max: 64}
	}
	return w
}

// evenly is an Allocator that shares what there is: each gets its minimum in order of rank, then one more in turn, up
// to its maximum. How a job runs depends on the width, and what it wants on how many there are.
type evenly struct{}

func (evenly) Allocate(v *sched.View, room []int32, order []sched.JobID, _ *sched.Desired,
	dst []sched.Grant) []sched.Grant {
	for _, j := range order {
		s := v.Jobs[j].Spec
		for t := range room {
			if s.Types.Has(sched.TypeID(t)) && room[t] >= s.GPUs.Min {
				room[t] -= s.GPUs.Min
				dst = append(dst, sched.Grant{Job: j, GPUs: s.GPUs.Min, Least: s.GPUs.Min,
					Want: min(s.GPUs.Max, int32(len(order)))})
				break
			}
		}
	}
	for more := true; more && len(room) == 1; {
		more = false
		for i := range dst {
			if g := &dst[i]; room[0] > 0 && g.GPUs < v.Jobs[g.Job].Spec.GPUs.Max {
				g.GPUs++
				room[0]--
				more = true
			}
		}
	}
	for i := range dst {
		g := &dst[i]
		g.Config = sched.Config{Batch: 1 + int32(len(dst)/3), Accum: int16(g.GPUs % 2), LRScale: float32(g.GPUs) / 4}
		g.Want = max(g.Want, g.GPUs)
	}
	return dst
}

// leftWaiting names a job that waits although its minimum is there and its user may hold it, "" if none does.
func leftWaiting(v *sched.View, s pipeline.Stages) string {
	l := sched.NewLedger(v)
	for i := range v.Jobs {
		id, least := sched.JobID(i), int(v.Jobs[i].Spec.GPUs.Min)
		if v.Jobs[i].Eligible() && (s.UserLimit == 0 || least <= s.UserLimit) && s.Place.Fits(v, l, id, least) {
			return fmt.Sprintf("job %d waits at the end, %d GPUs are free", i, l.FreeOf(0))
		}
	}
	return ""
}

// Ensure that in worlds of changing widths all invariants hold, that attempts run as was granted, that all ends, and
// that the log replays.
func TestElastic(t *testing.T) {
	resized, reconfigured, wanting := 0, 0, 0
	for seed := range uint64(cases(t, 1500)) {
		w := newElastic(seed)
		var log bytes.Buffer
		writer := eventlog.NewWriter(&log, w.header())
		count := sinkFunc(func(v *sched.View, e *sched.Event) {
			switch {
			case e.Kind == sched.Decided && e.Why.Code == sched.WhyResized:
				resized++
			case e.Kind == sched.Decided && e.Why.Code == sched.NoReason && len(e.GPUs) > 0:
				reconfigured++
			case e.Kind == sched.AttemptStarted && v.Jobs[e.Job].Live.Batch == 0:
				t.Fatalf("seed %d: job %d runs with no batch", seed, e.Job)
			case e.Kind == sched.Decided && len(e.GPUs) > 0 && v.Jobs[e.Job].Want > int32(len(e.GPUs)):
				wanting++
			}
		})
		v, err := w.run(pipeline.New(w.stages()), &checker{}, writer, count)
		if err == nil {
			err = writer.Close()
		}
		if err != nil {
			t.Fatalf("%v\n%v", w, err)
		}
		if why := leftWaiting(v, w.stages()); why != "" {
			t.Fatalf("%v\n%s", w, why)
		}
		r, err := eventlog.NewReader(&log, "log")
		if err == nil {
			err = engine.Replay(context.Background(), r.Header(), r.Records(), w.renting(pipeline.New(w.stages())),
				engine.ReplayOptions{})
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if seed < 200 && reloadDiffers(w) {
			w = w.shrink(reloadDiffers)
			var a, b transcript
			_, errA := runTwin(w, false, &a)
			r := &reloading{w: w, now: pipeline.New(w.stages())}
			_, errB := w.run(r, r, &b)
			t.Fatalf("%v\nerrors: kept %v, reloaded %v\n%s", w, errA, errB, firstDifference(a.lines, b.lines))
		}
	}
	if min(resized, reconfigured, wanting) < 100 {
		t.Errorf("%d resized, %d reconfigured, %d want more: too few to say anything", resized, reconfigured, wanting)
	}
}
