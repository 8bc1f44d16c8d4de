package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/sched"
)

// said returns what the store would report, by kind, reason and text.
func (s *store) reported() (list []string) {
	for _, n := range s.news.notes {
		list = append(list, strings.TrimSpace(n.kind+" "+n.reason+" "+n.text))
	}
	s.news.notes = nil
	return list
}

// Ensure that the end of an attempt is reported as what it is for its job, with what became of its work, and for whom
// it was.
func TestEndsAreTold(t *testing.T) {
	const lost = "; what it did in its last 2s is lost"
	nodes := []sched.Node{{Spec: sched.NodeSpec{Name: "n", GPUs: 4}, State: sched.NodeUp},
		{Spec: sched.NodeSpec{Name: "m", GPUs: 4}, First: 4, State: sched.NodeDraining}}
	where := []sched.GPU{{}, {}, {}, {}, {Node: 1}, {Node: 1}, {Node: 1}, {Node: 1}}
	job := func(name string) sched.Job {
		return sched.Job{Spec: &sched.JobSpec{User: "lab", Name: name, Task: name, GPUs: sched.Rigid(2), Retries: 2},
			State: sched.Waiting, Attempt: sched.Ended, Attempts: 3}
	}
	for _, c := range []struct {
		name   string
		held   []sched.GPUID
		e      sched.Event
		change func(j, other *sched.Job)
		want   string
	}{
		{"for another", []sched.GPUID{1, 2}, sched.Event{Outcome: sched.Preempted, Text: "stopped as ordered" + lost},
			func(_, other *sched.Job) {
				other.Target = []sched.GPUID{2, 3}
			}, "Normal Preempted its GPUs are for lab/other" + lost},
		{"next to another that stays", []sched.GPUID{1, 2},
			sched.Event{Outcome: sched.Preempted, Text: "stopped as ordered"},
			func(_, other *sched.Job) {
				other.GPUs, other.Target = []sched.GPUID{2}, []sched.GPUID{2}
			}, "Normal Preempted the policy has others use its GPUs"},
		{"of a node that is drained", []sched.GPUID{4, 5},
			sched.Event{Outcome: sched.Preempted, Text: "stopped as ordered"}, nil,
			"Normal Preempted node m is to be empty"},
		{"narrower", []sched.GPUID{0, 1, 2, 3},
			sched.Event{Outcome: sched.Preempted, Text: "stopped as ordered; what it did is saved"},
			func(j, _ *sched.Job) {
				j.Target = []sched.GPUID{0}
			}, "Normal Resized from 4 to 1 GPU; what it did is saved"},
		{"elsewhere", []sched.GPUID{0, 1}, sched.Event{Outcome: sched.Preempted, Text: "stopped as ordered"},
			func(j, _ *sched.Job) { j.Target = []sched.GPUID{3, 5} }, "Normal Moved from n/0-1 to n/3, m/1"},
		{"paused", []sched.GPUID{0, 1}, sched.Event{Outcome: sched.Preempted, Text: "stopped as ordered" + lost},
			func(j, _ *sched.Job) { j.Paused = true }, "Normal Paused suspended by its user" + lost},
		{"failed, and tried again", []sched.GPUID{0, 1}, sched.Event{Outcome: sched.Failed, Text: "pod p: exit code 1"},
			func(j, _ *sched.Job) {
				j.Failures = 1
			}, "Warning Failed pod p: exit code 1; it is tried again, 1 of 2 times"},
		{"failed", []sched.GPUID{0, 1}, sched.Event{Outcome: sched.Failed, Text: "pod p: exit code 1"},
			func(j, _ *sched.Job) { j.State = sched.Done }, "Warning Failed pod p: exit code 1"},
		{"its node is lost", []sched.GPUID{0, 1}, sched.Event{Outcome: sched.NodeLost, Text: "node n is gone"}, nil,
			"Warning NodeLost node n is gone"},
		{"finished", []sched.GPUID{0, 1}, sched.Event{Outcome: sched.Finished},
			func(j, _ *sched.Job) {
				j.Service, j.State = 12000, sched.Done
			}, "Normal Finished after 3h20m0s of GPU time in 3 attempts, 1m30s of it without use"},
		{"cancelled", []sched.GPUID{0, 1}, sched.Event{Outcome: sched.Preempted},
			func(j, _ *sched.Job) { j.State = sched.Done }, ""},
		{"of one that is forgotten", []sched.GPUID{0, 1}, sched.Event{Outcome: sched.Finished},
			func(j, _ *sched.Job) { j.Spec.Task = "" }, ""},
	} {
		s := &store{v: &sched.View{Nodes: nodes, GPUs: where, Jobs: []sched.Job{job("mine"), job("other")}},
			live: []sched.JobID{0, 1},
			jobs: map[sched.JobID]*saved{0: {held: c.held, lost: 90 * time.Second}, 1: {}}}
		if c.change != nil {
			c.change(&s.v.Jobs[0], &s.v.Jobs[1])
		}
		c.e.Kind = sched.AttemptEnded
		s.story(&c.e)
		if got := strings.Join(s.reported(), ", "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Ensure that a wait is reported where its kind changes, by whomever, and that what an earlier leader may have reported
// is not reported again.
func TestWaitsAreTold(t *testing.T) {
	s := &store{v: &sched.View{Jobs: []sched.Job{{Spec: &sched.JobSpec{Task: "uid"}, State: sched.Waiting}}},
		jobs: map[sched.JobID]*saved{0: {}}}
	const brief = false
	for _, c := range []struct {
		code explain.Code
		full bool
		want string
	}{
		{explain.WaitBusy, true, "Normal Queued busy"}, {explain.WaitFragmented, true, ""},
		{explain.WaitBehind, true, ""},
		{explain.WaitSystem, brief, ""}, {explain.WaitQuota, true, "Normal Queued quota"},
		{explain.WaitBusy, brief, ""},
		{explain.WaitQuota, true, ""}, {explain.WaitBusy, true, "Normal Queued busy"}, {explain.WaitStarts, true, ""},
		{explain.WaitRetry, true, ""},
		{explain.WaitBusy, true, "Normal Queued busy"}, {explain.WaitStarts, brief, ""},
		{explain.WaitBusy, brief, "Normal Queued busy"},
		{explain.WaitBusy, brief, ""}, {explain.WaitQuota, true, ""}, {explain.WaitBusy, true, "Normal Queued busy"},
	} {
		s.queue(0, c.code, c.full, c.code.String())
		if got := strings.Join(s.reported(), ", "); got != c.want {
			t.Errorf("%v: %q, want %q", c.code, got, c.want)
		}
	}
	s.jobs[0].wait = waited(&s.v.Jobs[0])
	s.queue(0, explain.WaitBusy, true, "busy")
	if got := s.reported(); got != nil {
		t.Errorf("after a change of leaders: %q", got)
	}
	if s.queue(0, explain.WaitQuota, true, "quota"); !slices.Equal(s.reported(), []string{"Normal Queued quota"}) {
		t.Error("then another kind: nothing is reported")
	}
}

// no one remembers nothing.
type none struct{ sched.Decider }

func (none) Format() string                         { return "no one/1" }
func (none) SaveJob(_ sched.JobID, b []byte) []byte { return b }
func (none) SaveRest(b []byte) []byte               { return b }

// Ensure that nothing is reported of a batch before it is durable.
func TestToldOnceDurable(t *testing.T) {
	lost := false
	d := newDesk(t, interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string,
		o client.Object, opts ...client.SubResourceUpdateOption) error {
		if lost {
			return errDied
		}
		return c.SubResource(sub).Update(ctx, o, opts...)
	}})
	d.fatal = func(err error) bool { return errors.Is(err, errDied) }
	d.dec, d.v.Jobs[0].State, d.v.Jobs[0].Attempt = none{}, sched.Active, sched.Running
	var reported []note
	d.news.report = func(n ...note) { reported = append(reported, n...) }
	d.submit("first")
	d.batch, lost = true, true
	d.say(0, "Normal", reportedStarted, "attempt 1 runs")
	if err := d.EndBatch(); !errors.Is(err, errDied) || len(reported) > 0 {
		t.Fatalf("%v, reported %v", err, reported)
	}
	lost = false
	if err := d.EndBatch(); err != nil || len(reported) != 1 || reported[0].about.UID != "first" {
		t.Fatalf("%v, reported %v", err, reported)
	}
}
