package engine_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that run, service, start and end go by when an attempt started and ended, although its driver heard of it
// later, that no record moves a start before its order or an end before its start, and that the log says it again.
func TestRunGoesByWhenItHappened(t *testing.T) {
	node := &sched.NodeSpec{Name: "a", GPUs: 2, Pool: sched.None}
	spec := &sched.JobSpec{GPUs: sched.Rigid(2)}
	for _, c := range []struct {
		name             string
		up, gone         sched.Time // as recorded; heard of at 40 s and 90 s
		start, end       sched.Time
		run              time.Duration
		between, stopped bool // it reports in between; it was asked to stop, at 70 s or, if early, before it is known
		early            bool
	}{
		{"at once", 0, 0, 40e9, 90e9, 50 * time.Second, false, false, false},
		{"both late", 12e9, 55e9, 12e9, 55e9, 43 * time.Second, false, false, false},
		{"a report counted on", 12e9, 55e9, 12e9, 55e9, 43 * time.Second, true, false, false},
		{"an order to stop counted on", 12e9, 55e9, 12e9, 55e9, 43 * time.Second, false, true, false},
		{"ordered to stop while it came up", 12e9, 55e9, 12e9, 55e9, 43 * time.Second, false, true, true},
		{"before it was ordered, and before it started", 3e9, 4e9, 10e9, 10e9, 0, false, false, false},
		{"after it was heard of", 1e15, 1e15, 40e9, 90e9, 50 * time.Second, false, false, false},
	} {
		events := []sched.Event{{Kind: sched.NodeJoined, NodeSpec: node}, {Kind: sched.JobArrived, Spec: spec},
			{Time: 10e9, Kind: sched.Decided, Target: &sched.Target{}, GPUs: []sched.GPUID{0, 1}},
			{Time: 10e9, Kind: sched.Ordered, Attempt: 1, Code: int32(sched.Start)},
			{Time: 40e9, At: c.up, Kind: sched.AttemptStarted, Attempt: 1, WorkFrom: 40e9, Rate: 1}}
		stop := sched.Event{Time: 70e9, Kind: sched.Ordered, Attempt: 1, Code: int32(sched.Stop)}
		if c.early {
			stop.Time = 30e9
			events = slices.Insert(events, 4, stop)
		}
		if c.between {
			events = append(events, sched.Event{Time: 80e9, Kind: sched.Progressed, Attempt: 1, WorkFrom: 80e9,
				Rate: 1})
		}
		outcome := sched.Finished
		if c.stopped {
			outcome = sched.Cancelled
		}
		if c.stopped && !c.early {
			events = append(events, stop)
		}
		events = append(events, sched.Event{Time: 90e9, At: c.gone, Kind: sched.AttemptEnded, Attempt: 1,
			Outcome: outcome})
		s := engine.NewState(eventlog.Header{})
		var log bytes.Buffer
		w := eventlog.NewWriter(&log, eventlog.Header{})
		for i := range events {
			s.Apply(&events[i])
			w.Log(s.View(), &events[i])
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := eventlog.NewReader(strings.NewReader(log.String()), "log")
		if err != nil {
			t.Fatal(err)
		}
		again, _, err := engine.Fold(r.Header(), r.Records())
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range []*sched.View{s.View(), again.View()} {
			j := v.Job(0)
			if j.FirstStart != c.start || j.LastStart != c.start || j.End != c.end || j.Run != c.run || v.Now != 90e9 ||
				j.Service != sched.GPUTime(2, c.run) {
				t.Errorf("%s: started %v, ended %v, ran %v for %v, at %v; want %v to %v, %v, at 90 s", c.name,
					j.FirstStart, j.End, j.Run, j.Service, v.Now, c.start, c.end, c.run)
			}
		}
	}
}
