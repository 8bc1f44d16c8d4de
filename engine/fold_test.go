package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that an event which contradicts the state panics with what a reader of the crash needs.
func TestContradictionsPanic(t *testing.T) {
	node := &sched.NodeSpec{Name: "a", GPUs: 1, Pool: sched.None}
	spec := &sched.JobSpec{GPUs: sched.Rigid(1)}
	begin := []sched.Event{{Kind: sched.NodeJoined, NodeSpec: node}, {Kind: sched.JobArrived, Spec: spec}}
	start := slices.Concat(begin, []sched.Event{{Kind: sched.Decided, Target: &sched.Target{}, GPUs: []sched.GPUID{0}},
		{Kind: sched.Ordered, Attempt: 1, Code: int32(sched.Start)}})
	for _, c := range []struct {
		name, want string
		events     []sched.Event
	}{
		{"time falls", "time falls", []sched.Event{{Time: 5, Kind: sched.Ticked}, {Time: 4, Kind: sched.Ticked}}},
		{"later job needed", "want an earlier one",
			append(begin[:1:1], sched.Event{Kind: sched.JobArrived,
				Spec: &sched.JobSpec{GPUs: sched.Rigid(1), After: []sched.JobID{0}}})},
		{"end without attempt", "attempt is none",
			append(begin[:2:2], sched.Event{Kind: sched.AttemptEnded, Outcome: sched.Finished})},
		{"end of another attempt", "latest attempt is 1",
			append(start[:4:4], sched.Event{Kind: sched.AttemptEnded, Attempt: 2, Outcome: sched.Finished})},
		{"start twice", "attempt is running", append(start[:4:4], sched.Event{Kind: sched.AttemptStarted, Attempt: 1},
			sched.Event{Kind: sched.AttemptStarted, Attempt: 1})},
		{"end twice", "attempt is ended",
			append(start[:4:4], sched.Event{Kind: sched.AttemptEnded, Attempt: 1, Outcome: sched.Preempted},
				sched.Event{Kind: sched.AttemptEnded, Attempt: 1, Outcome: sched.Preempted})},
		{"no outcome", "outcome", append(start[:4:4], sched.Event{Kind: sched.AttemptEnded, Attempt: 1})},
		{"node up twice", "is up already", []sched.Event{begin[0], begin[0]}},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				if p, _ := recover().(string); !strings.Contains(p, c.want) || !strings.Contains(p, "version") {
					t.Errorf("panic %q, want %q", p, c.want)
				}
			}()
			s := engine.NewState(eventlog.Header{})
			for i := range c.events {
				s.Apply(&c.events[i])
			}
		})
	}
}

// Ensure that Reconcile asked twice says the same.
func TestReconcileIsPure(t *testing.T) {
	s := engine.NewState(eventlog.Header{})
	node, spec := &sched.NodeSpec{Name: "a", GPUs: 2, Pool: sched.None}, &sched.JobSpec{GPUs: sched.Rigid(1)}
	for _, e := range []sched.Event{{Kind: sched.NodeJoined, NodeSpec: node}, {Kind: sched.JobArrived, Spec: spec},
		{Kind: sched.JobArrived, Spec: spec},
		{Kind: sched.Decided, Target: &sched.Target{}, GPUs: []sched.GPUID{0}},
		{Kind: sched.Ordered, Attempt: 1, Code: int32(sched.Start)},
		{Kind: sched.Decided, Target: &sched.Target{}, GPUs: []sched.GPUID{1}},
		{Kind: sched.Decided, Job: 1, Target: &sched.Target{}, GPUs: []sched.GPUID{0}}} {
		s.Apply(&e)
	}
	var a, b sched.Plan
	s.Reconcile(&a)
	s.Reconcile(&b)
	if len(a.Actions) != 1 || len(b.Actions) != 1 || a.Actions[0].Kind != sched.Stop ||
		b.Actions[0].Kind != sched.Stop {
		t.Errorf("first %+v, then %+v", a, b)
	}
}

// Ensure that a View which contradicts itself is refused, and that an empty one is a new state.
func TestRestoreRefuses(t *testing.T) {
	good := func() sched.View {
		spec := &sched.JobSpec{GPUs: sched.Rigid(1)}
		return sched.View{Nodes: []sched.Node{{Spec: sched.NodeSpec{Name: "a", GPUs: 2, Pool: sched.None}}},
			GPUs: make([]sched.GPU, 2),
			Jobs: []sched.Job{{Spec: spec, State: sched.Waiting}, {Spec: spec, State: sched.Waiting}}}
	}
	for _, c := range []struct {
		want  string // "" = it is accepted
		spoil func(v *sched.View)
	}{
		{"", func(v *sched.View) {}},
		{"", func(v *sched.View) { *v = sched.View{} }},
		{"node 0 has GPUs from 1", func(v *sched.View) { v.Nodes[0].First = 1 }},
		{"node 0 has GPUs from 0, 3 of them", func(v *sched.View) { v.Nodes[0].Spec.GPUs = 3 }},
		{"2 GPUs, 0 of them of nodes", func(v *sched.View) { v.Nodes = nil }},
		{"job 1: set [2], want GPUs below 2", func(v *sched.View) { v.Jobs[1].Target = []sched.GPUID{2} }},
		{"job 0: attempt is running, holds []", func(v *sched.View) { v.Jobs[0].Attempt = sched.Running }},
		{"", func(v *sched.View) { v.Jobs[0] = sched.Job{} }},
		{"job 0: without a spec and waiting", func(v *sched.View) { v.Jobs[0].Spec = nil }},
		{"job 1: without a spec and done, attempt none, holds [], target [0]", func(v *sched.View) {
			v.Jobs[1] = sched.Job{State: sched.Done, Target: []sched.GPUID{0}}
		}},
		{"job 1: depends on job 1", func(v *sched.View) {
			v.Jobs[1].Spec = &sched.JobSpec{GPUs: sched.Rigid(1), After: []sched.JobID{1}}
		}},
	} {
		v := good()
		c.spoil(&v)
		_, err := engine.Restore(eventlog.Header{}, v)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	if _, err := engine.Restore(eventlog.Header{Pools: []sched.PoolSpec{{GPUs: 1}}}, good()); err == nil {
		t.Error("a View without the pools of the header is accepted")
	}
}

// Ensure that what was measured of a node is known until another machine takes its slot, and that what says nothing, or
// is about one job, changes nothing.
func TestMeasured(t *testing.T) {
	s := engine.NewState(eventlog.Header{})
	node := &sched.NodeSpec{Name: "a", GPUs: 1, Pool: sched.None}
	for _, e := range []sched.Event{{Kind: sched.NodeJoined, NodeSpec: node},
		{Kind: sched.Measured, Job: sched.None, Value: 350, Rate: .5},
		{Kind: sched.Measured, Job: sched.None, Rate: .9},
		{Kind: sched.Measured, Job: sched.None, Node: sched.None, Value: 9},
		{Kind: sched.Measured, Value: 100}} {
		s.Apply(&e)
	}
	if got := s.View().Nodes[0].Watts; got != 350 {
		t.Errorf("%v W, want 350", got)
	}
	for _, e := range []sched.Event{{Kind: sched.NodeLeft, Code: int32(sched.NodeDown)},
		{Kind: sched.NodeJoined, NodeSpec: node}} {
		s.Apply(&e)
	}
	if got := s.View().Nodes[0].Watts; got != 0 {
		t.Errorf("%v W of a machine that is new, want 0", got)
	}
}
