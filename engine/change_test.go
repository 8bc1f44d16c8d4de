package engine_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
)

// newChanging draws a world whose users change what they want of jobs: of rigid ones, or of those that are resized.
func newChanging(seed uint64) *world {
	w := newWorld(seed)
	if seed%3 == 2 {
		w = newElastic(seed)
	}
	r := rand.New(rand.NewPCG(seed, 12))
	for range 1 + r.IntN(8) {
		j := sched.JobID(r.IntN(len(w.jobs)))
		s := &w.jobs[j].Spec
		c := s.Change()
		if width := int32(1 + r.IntN(4)); r.IntN(4) > 0 {
			c.GPUs = sched.Range{Min: width, Want: width, Max: width}
			if w.system.admit == "elastic" {
				c.GPUs.Max += int32(r.IntN(4))
			}
		}
		if r.IntN(2) == 0 {
			c.Priority = int32(r.IntN(5)) - 2
		}
		c.Deadline, c.WallTime = sched.Time(r.IntN(2))*second, time.Duration(r.IntN(2))
		if r.IntN(2) == 0 { // an edit of other keys
			other := *s
			other.Group, other.Retries, other.CPUs = "edited", int32(r.IntN(3)), float32(r.IntN(2))
			other.Saves = r.IntN(2) == 0
			c.Spec = &other
		}
		at := s.Submit + second*sched.Time(r.IntN(20)) + sched.Time(r.IntN(2))
		w.inject = append(w.inject, sched.Event{Time: at, Kind: sched.JobChanged, Job: j, Change: &c})
	}
	w.sortInjected()
	return w
}

func changingBroken(w *world) string {
	v, err := w.run(pipeline.New(w.stages()), &checker{})
	if err != nil {
		return err.Error()
	}
	if w.system.admit == "elastic" {
		return leftWaiting(v, w.stages())
	}
	return w.atEnd(v)
}

// Ensure that the unit of a job's work is the width that it arrived with, whatever its user wants since.
func TestChangeKeepsTheUnitOfWork(t *testing.T) {
	s := engine.NewState(eventlog.Header{})
	spec := &sched.JobSpec{GPUs: sched.Rigid(4)}
	c := spec.Change()
	c.GPUs = sched.Rigid(2)
	for _, e := range []sched.Event{{Kind: sched.JobArrived, Spec: spec}, {Kind: sched.JobChanged, Change: &c}} {
		s.Apply(&e)
	}
	if j := s.View().Job(0); j.Unit() != 4 || j.Spec.GPUs.Want != 2 {
		t.Errorf("unit %d of a job that wants %d, want 4 and 2", j.Unit(), j.Spec.GPUs.Want)
	}
}

// stated checks what jobs are taken to save by: what their users said last when their latest attempt was started, or of
// those that have none when they changed it.
type stated struct {
	t       *testing.T
	said    map[sched.JobID]sched.Evidence // before this event
	at, not int                            // changes that held at once, and others
}

func (s *stated) Log(v *sched.View, e *sched.Event) {
	if e.Job == sched.None || int(e.Job) >= len(v.Jobs) || e.Kind == sched.Decided {
		return
	}
	j := v.Job(e.Job)
	was, known := s.said[e.Job]
	s.said[e.Job] = j.Evidence
	own := j.Evidence != sched.NoEvidence && j.Evidence != sched.Declared
	starts := e.Kind == sched.Ordered && sched.ActionKind(e.Code) == sched.Start
	switch {
	case !known || own:
	case e.Kind == sched.JobChanged && j.HoldsDevices():
		if s.not++; j.Evidence != was {
			s.t.Errorf("job %d runs and is changed: evidence %v, was %v", e.Job, j.Evidence, was)
		}
	case starts || e.Kind == sched.JobChanged && j.State != sched.Done:
		if s.at++; j.Evidence != sched.DeclaredBy(j.Spec) {
			s.t.Errorf("job %d, %v: evidence %v, want %v", e.Job, e.Kind, j.Evidence, sched.DeclaredBy(j.Spec))
		}
	}
}

// Ensure, on random worlds in which jobs change, that all invariants hold and all ends, that both walks agree, that
// saving and loading changes nothing, and that the log replays byte for byte.
func TestChange(t *testing.T) {
	stopped, atOnce, later := 0, 0, 0
	for seed := range uint64(cases(t, 1500)) {
		w := newChanging(seed)
		says := &stated{t: t, said: make(map[sched.JobID]sched.Evidence)}
		bad := func(w *world) bool { return changingBroken(w) != "" }
		if bad(w) {
			w = w.shrink(bad)
			t.Fatalf("%v\n%s", w, changingBroken(w))
		}
		if w.system.admit != "elastic" {
			checkTwins(t, w)
		}
		if reloadDiffers(w) {
			w = w.shrink(reloadDiffers)
			var a, b transcript
			_, errA := runTwin(w, false, &a)
			r := &reloading{w: w, now: pipeline.New(w.stages())}
			_, errB := w.run(r, r, &b)
			t.Fatalf("%v\nerrors: kept %v, reloaded %v\n%s", w, errA, errB, firstDifference(a.lines, b.lines))
		}
		var log bytes.Buffer
		writer := eventlog.NewWriter(&log, w.header())
		_, err := w.run(pipeline.New(w.stages()), writer, says, sinkFunc(func(v *sched.View, e *sched.Event) {
			if e.Kind == sched.JobChanged && v.Jobs[e.Job].HoldsDevices() && len(v.Jobs[e.Job].Target) == 0 {
				stopped++
			}
		}))
		atOnce, later = atOnce+says.at, later+says.not
		if err == nil {
			err = writer.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		r, err := eventlog.NewReader(&log, "log")
		if err == nil {
			err = engine.Replay(context.Background(), r.Header(), r.Records(), w.renting(pipeline.New(w.stages())),
				engine.ReplayOptions{})
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	if stopped < 20 || atOnce < 20 || later < 20 {
		t.Errorf("%d attempts were stopped by a change, %d statements held at once, %d later: too few to say anything",
			stopped, atOnce, later)
	}
}

// Ensure that a spec which others may hold stays as it was, and that a change of what is not there, not to be, or over
// is dropped with the reason.
func TestChangeOfSpec(t *testing.T) {
	spec := &sched.JobSpec{Name: "a", GPUs: sched.Rigid(2), Priority: 1, Task: "t"}
	changed := spec.Changed(&sched.JobChange{GPUs: sched.Rigid(3), Deadline: 9})
	if spec.GPUs != sched.Rigid(2) || spec.Priority != 1 || changed.GPUs != sched.Rigid(3) || changed.Priority != 0 ||
		changed.Deadline != 9 || changed.Task != "t" {
		t.Errorf("%+v changed to %+v", spec, changed)
	}
	if again := changed.Change(); again != (sched.JobChange{GPUs: sched.Rigid(3), Deadline: 9}) {
		t.Errorf("may be changed from %+v", again)
	}
	for _, c := range []struct {
		job    sched.JobID
		change sched.JobChange
		want   string
	}{
		{1, sched.JobChange{GPUs: sched.Rigid(1)}, "job 1 is not known"},
		{-1, sched.JobChange{GPUs: sched.Rigid(1)}, "job -1 is not known"},
		{0, sched.JobChange{GPUs: sched.Rigid(1)}, "job 0 is done"},
		{0, sched.JobChange{}, "gpus 0, want > 0"},
		{0, sched.JobChange{GPUs: sched.Range{Min: 2, Want: 1, Max: 2}}, "gpus 2..2 with default 1, want min <= " +
			"default <= max"},
		{0, sched.JobChange{GPUs: sched.Rigid(1), WallTime: -1}, "wall time -1ns, want >= 0"},
		{0, sched.JobChange{GPUs: sched.Rigid(1), Deadline: -second}, "deadline -1s, want >= 0"},
	} {
		w := &world{types: []string{"a"}, nodes: []sched.NodeSpec{{Name: "n", GPUs: 4, Pool: sched.None}}}
		s := engine.NewState(w.header())
		events := []sched.Event{{Kind: sched.NodeJoined, NodeSpec: &w.nodes[0]}, {Kind: sched.JobArrived, Spec: spec}}
		if c.want == "job 0 is done" {
			events = append(events, sched.Event{Kind: sched.JobCommanded, Code: int32(sched.CancelJob)})
		}
		for i := range events {
			s.Apply(&events[i])
		}
		got := ""
		d := &answers{list: [][]sched.Event{{{Kind: sched.JobChanged, Job: c.job, Change: &c.change}}}}
		must(engine.Run(context.Background(), s, d, pipeline.New(plainFIFO),
			engine.Options{Dropped: func(_ *sched.Event, why string) {
				got = why
			}}))
		if got != c.want {
			t.Errorf("%d %+v: dropped for %q, want %q", c.job, c.change, got, c.want)
		}
	}
}
