package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// tied runs events on a cluster of eight GPUs and returns how each job stands, and the log.
func tied(t *testing.T, events ...[]sched.Event) (states string, log []byte, w *world) {
	t.Helper()
	w = &world{types: []string{"a"}, nodes: []sched.NodeSpec{{Name: "n", GPUs: 8, Pool: sched.None}}}
	var b bytes.Buffer
	sink := eventlog.NewWriter(&b, w.header())
	joined := sched.Event{Kind: sched.NodeJoined, NodeSpec: &w.nodes[0]}
	s := engine.NewState(w.header())
	events[0] = append([]sched.Event{joined}, events[0]...)
	must(engine.Run(context.Background(), s, &answers{list: events}, pipeline.New(plainFIFO),
		engine.Options{Sinks: []eventlog.Sink{sink}}))
	must(sink.Flush())
	var words []string
	for _, j := range s.View().Jobs {
		word := j.State.String()
		if j.State == sched.Done {
			word = j.Outcome.String()
		}
		words = append(words, word)
	}
	return strings.Join(words, " "), b.Bytes(), w
}

func arrive(after []sched.JobID, ties sched.Ties) sched.Event {
	return sched.Event{Kind: sched.JobArrived, Spec: &sched.JobSpec{GPUs: sched.Rigid(1), After: after, Ties: ties}}
}

func cancelled(id sched.JobID) sched.Event {
	return sched.Event{Kind: sched.JobCommanded, Job: id, Code: int32(sched.CancelJob)}
}

// Ensure that a job is rejected as soon as a job ends otherwise than it wants, though it waits for others as well, and
// at its arrival where that is so already; and that one that wants a failure goes on then.
func TestTiesOfEnds(t *testing.T) {
	t.Parallel()
	zero, both := []sched.JobID{0}, []sched.JobID{0, 1}
	notYet := arrive(nil, sched.Ties{})
	notYet.Spec.NotBef = 1000 * second
	other := arrive(nil, sched.Ties{})
	other.Spec.NotBef = 1000 * second
	got, log, w := tied(t,
		[]sched.Event{notYet, other, arrive(both, sched.Ties{AfterOK: zero}), arrive(zero, sched.Ties{AfterFail: zero}),
			arrive([]sched.JobID{2}, sched.Ties{AfterOK: []sched.JobID{2}})},
		[]sched.Event{cancelled(0)},
		[]sched.Event{arrive(zero, sched.Ties{AfterOK: zero}), arrive(zero, sched.Ties{AfterFail: zero})})
	if want := "cancelled held rejected active rejected rejected active"; got != want {
		t.Errorf("jobs are %s, want %s", got, want)
	}
	if want := `"event":"rejected","job":2`; !strings.Contains(string(log), want) {
		t.Errorf("the log has no %s:\n%s", want, log)
	}
	replayed(t, log, w)
}

// Ensure that of an array no more tasks than may run at once are not held, that each that is over makes room for one,
// and that one which is cancelled in the line makes none.
func TestTiesOfArrays(t *testing.T) {
	t.Parallel()
	var tasks []sched.Event
	for i := range int32(6) {
		tasks = append(tasks, arrive(nil, sched.Ties{Array: sched.Array{Place: i, Index: 2 * i, Size: 6, AtOnce: 2}}))
	}
	none := []sched.Event{}
	for _, c := range []struct {
		want   string
		events [][]sched.Event
	}{
		{"active active held held held held", [][]sched.Event{tasks}},
		{"active active cancelled held held held", [][]sched.Event{tasks, {cancelled(2)}}},
		{"cancelled active cancelled active held held", [][]sched.Event{tasks, {cancelled(2)}, {cancelled(0)},
			{ended(0)}, none}},
		{"cancelled cancelled cancelled cancelled active active", [][]sched.Event{tasks, {cancelled(3)}, {cancelled(2)},
			{cancelled(1)}, {ended(1)}, {cancelled(0)}, {ended(0)}, none}},
		{"cancelled active cancelled cancelled cancelled cancelled", [][]sched.Event{tasks, {cancelled(5)},
			{cancelled(2)}, {cancelled(4)}, {cancelled(3)}, {cancelled(0)}, {ended(0)}, none}},
		{"cancelled cancelled active active held held", [][]sched.Event{tasks, {cancelled(0), cancelled(1)},
			{ended(0), ended(1)}, none}},
	} {
		got, log, w := tied(t, c.events...)
		if got != c.want {
			t.Errorf("tasks are %s, want %s", got, c.want)
		}
		replayed(t, log, w)
	}
}

// Ensure that a state made of a view goes on as the one that it was taken of: a task that was cancelled in the line of
// its array stands in no line any more.
func TestTiesOfRestoredArrays(t *testing.T) {
	t.Parallel()
	var tasks []sched.Event
	for i := range int32(4) {
		tasks = append(tasks, arrive(nil, sched.Ties{Array: sched.Array{Place: i, Index: i, Size: 4, AtOnce: 1}}))
	}
	w := &world{types: []string{"a"}, nodes: []sched.NodeSpec{{Name: "n", GPUs: 8, Pool: sched.None}}}
	joined := sched.Event{Kind: sched.NodeJoined, NodeSpec: &w.nodes[0]}
	run := func(s *engine.State, events ...[]sched.Event) string {
		must(engine.Run(context.Background(), s, &answers{list: events}, pipeline.New(plainFIFO), engine.Options{}))
		var words []string
		for _, j := range s.View().Jobs {
			words = append(words, j.State.String())
		}
		return strings.Join(words, " ")
	}
	s := engine.NewState(w.header())
	run(s, append([]sched.Event{joined}, tasks...), []sched.Event{cancelled(1)})
	restored, err := engine.Restore(w.header(), *s.View())
	must(err)
	for name, state := range map[string]*engine.State{"the state": s, "the restored one": restored} {
		got := run(state, []sched.Event{cancelled(0)}, []sched.Event{ended(0)}, []sched.Event{})
		if want := "done done active held"; got != want {
			t.Errorf("tasks of %s are %s, want %s", name, got, want)
		}
	}
}

// ended says that the first attempt of a job, which was cancelled, is gone.
func ended(id sched.JobID) sched.Event {
	return sched.Event{Kind: sched.AttemptEnded, Job: id, Attempt: 1, Outcome: sched.Cancelled}
}

// replayed replays a log.
func replayed(t *testing.T, log []byte, w *world) {
	t.Helper()
	r, err := eventlog.NewReader(bytes.NewReader(log), "log")
	if err == nil {
		err = engine.Replay(context.Background(), r.Header(), r.Records(), pipeline.New(plainFIFO),
			engine.ReplayOptions{})
	}
	if err != nil {
		t.Error(fmt.Errorf("replay: %w", err))
	}
}

// task is one of an array of four, of which two may run at once.
func task(place int32) trace.Job {
	return gang(0, 1, func(s *sched.JobSpec) {
		s.Ties.Array = sched.Array{Place: place, Index: place, Size: 4, AtOnce: 2}
	})
}
