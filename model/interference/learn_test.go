package interference_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/model/interference"
	"github.com/trainyard/trainyard/sched"
)

// school is a state whose events a Learner observes.
type school struct {
	t *testing.T
	s *engine.State
	l *interference.Learner
	h *interference.History
}

func newSchool(t *testing.T, models ...string) *school {
	t.Helper()
	h := &interference.History{}
	c := &school{t, engine.NewState(eventlog.Header{ShareLimit: 4, Types: []string{"v100"}}),
		interference.NewLearner(h), h}
	c.event(sched.Event{Kind: sched.NodeJoined, NodeSpec: &sched.NodeSpec{Name: "n", GPUs: 2, Pool: sched.None}})
	for _, m := range models {
		c.event(sched.Event{Kind: sched.JobArrived,
			Spec: &sched.JobSpec{Model: m, GPUs: sched.Rigid(2), Share: sched.ShareAllow}})
	}
	return c
}

func (c *school) event(e sched.Event) {
	c.s.Apply(&e)
	c.l.Observe(c.s.View(), &e)
}

// start lets job id start at a time in seconds, having done work, and work from a later time on.
func (c *school) start(id sched.JobID, at, from float64, work time.Duration) {
	c.startOn(id, []sched.GPUID{0, 1}, at, from, work)
}

func (c *school) startOn(id sched.JobID, gpus []sched.GPUID, at, from float64, work time.Duration) {
	now, n := sched.Time(at*1e9), c.s.View().Jobs[id].Attempts+1
	c.event(sched.Event{Time: now, Kind: sched.Decided, Job: id, GPUs: gpus,
		Target: &sched.Target{Job: id, Config: sched.Config{Share: sched.Shared}}})
	c.event(sched.Event{Time: now, Kind: sched.Ordered, Job: id, Attempt: n, Code: int32(sched.Start)})
	c.event(sched.Event{Time: now, Kind: sched.AttemptStarted, Job: id, Attempt: n, Work: work,
		WorkFrom: sched.Time(from * 1e9), Rate: 1})
}

func (c *school) epoch(id sched.JobID, at float64, n int) {
	c.event(sched.Event{Time: sched.Time(at * 1e9), Kind: sched.EpochEnded, Job: id,
		Attempt: c.s.View().Jobs[id].Attempts, Value: float64(n)})
}

func (c *school) end(id sched.JobID, at float64, o sched.Outcome, text string) {
	c.event(sched.Event{Time: sched.Time(at * 1e9), Kind: sched.AttemptEnded, Job: id,
		Attempt: c.s.View().Jobs[id].Attempts, Outcome: o, Text: text})
}

// known says what the history knows of a set.
func (c *school) known(models ...string) string {
	c.t.Helper()
	list, err := c.h.Slowdowns(interference.Place{GPU: "v100", Width: 2}, members(models...), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	s := ""
	for _, e := range list {
		s += fmt.Sprintf("%.3f x%v %v; ", e.Slow, e.Weight, e.Source)
	}
	return s
}

// Ensure that only whole and undisturbed epochs are learned from, and those of the job alone are the measure. Alone
// epochs of a take 10 s, of b 20 s; together 12 s and 30 s.
func TestLearner(t *testing.T) {
	c := newSchool(t, "a", "b")
	c.start(0, 0, 0, 0)
	c.epoch(0, 10, 1)
	c.epoch(0, 20, 2)
	c.end(0, 20, sched.Preempted, "")
	c.start(1, 20, 20, 0)
	c.epoch(1, 40, 1)
	c.start(0, 45, 45, 20*time.Second) // a is in an epoch of unknown age, b in one that a disturbs
	c.epoch(0, 50, 3)
	c.epoch(0, 62, 4) // 12 s
	c.epoch(1, 65, 2) // disturbed
	if got, want := c.known("b", "a"), "1.035 x0 prior; 1.200 x1 exact; "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	c.epoch(0, 74, 5)
	c.epoch(1, 95, 3) // 30 s
	c.epoch(0, 99, 7) // one was not watched
	if got, want := c.known("b", "a"), "1.500 x1 exact; 1.200 x2 exact; "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	c.end(0, 100, sched.Finished, "")
	c.epoch(1, 110, 4) // a left
	c.epoch(1, 130, 5)
	if got, want := c.known("b", "a"), "1.500 x1 exact; 1.200 x2 exact; "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if d, ok := c.l.Alone(interference.Place{GPU: "v100", Width: 2}, "b"); !ok || d != 20*time.Second {
		t.Errorf("b alone takes %v, want 20 s", d)
	}
}

// Ensure that a resident's epoch counts only if the newcomer was at work all the time, and that without a time alone
// nothing is learned.
func TestLearnerRestart(t *testing.T) {
	c := newSchool(t, "a", "b")
	p := interference.Place{GPU: "v100", Width: 2}
	if err := c.l.ReportAlone(p, "a", 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if err := c.l.ReportAlone(p, "a", 0); err == nil {
		t.Error("an epoch of no time")
	}
	c.start(0, 0, 0, 0)
	c.start(1, 2, 25, 0) // its restart takes 23 s
	c.epoch(0, 10, 1)
	c.epoch(0, 20, 2)
	c.epoch(0, 31, 3)
	c.epoch(0, 42, 4) // the first with b at work, 11 s
	c.epoch(1, 60, 1) // nothing is known of b alone
	if got, want := c.known("a", "b"), "1.100 x1 exact; 1.035 x0 prior; "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Ensure that a failure for want of memory next to others is remembered, and no other failure, and that this survives a
// restart together with what is under way.
func TestLearnerOOM(t *testing.T) {
	c := newSchool(t, "a", "b", "c")
	p := interference.Place{GPU: "v100", Width: 2}
	refused := func(models ...string) bool {
		t.Helper()
		is, err := c.h.Refused(p, models)
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	c.start(0, 0, 0, 0)
	c.start(1, 1, 1, 0)
	c.end(1, 2, sched.Failed, "exit status 1")
	c.start(2, 3, 3, 0)
	if refused("a", "b") {
		t.Error("refused for any failure")
	}
	c.reload()
	c.end(2, 4, sched.Failed, "RuntimeError: CUDA out of memory. Tried to allocate")
	if !refused("c", "a") || refused("a", "b") || refused("c") {
		t.Error("want the pair that ran out of memory refused, and no other")
	}
}

// reload goes on with a new Learner that loaded what the old one saved.
func (c *school) reload() {
	c.t.Helper()
	old := c.l
	c.h = &interference.History{}
	c.l = interference.NewLearner(c.h)
	if err := c.l.LoadRest(old.SaveRest(nil)); err != nil {
		c.t.Fatal(err)
	}
	for j := range c.s.View().Jobs {
		if err := c.l.LoadJob(sched.JobID(j), old.SaveJob(sched.JobID(j), nil)); err != nil {
			c.t.Fatal(err)
		}
	}
	for _, bad := range [][]byte{nil, {9}, append(old.SaveRest(nil), 0)} {
		if interference.NewLearner(&interference.History{}).LoadRest(bad) == nil {
			c.t.Errorf("loaded %v", bad)
		}
	}
}

// Ensure that what is learned of GPUs of one type that are shared by one mechanism says nothing of those shared by
// another, and that this survives a restart.
func TestLearnerMechanisms(t *testing.T) {
	c := newSchool(t)
	c.event(sched.Event{Kind: sched.NodeJoined, NodeSpec: &sched.NodeSpec{Name: "m", GPUs: 2, Sharing: sched.MPS,
		Pool: sched.None}})
	place := func(how sched.Mechanism) interference.Place {
		return interference.Place{GPU: "v100", How: how, Width: 2}
	}
	for _, m := range []string{"a", "b", "a", "b"} {
		c.event(sched.Event{Kind: sched.JobArrived,
			Spec: &sched.JobSpec{Model: m, GPUs: sched.Rigid(2), Share: sched.ShareAllow}})
		for _, how := range []sched.Mechanism{sched.TimeSlicing, sched.MPS} {
			if err := c.l.ReportAlone(place(how), m, 10*time.Second); err != nil {
				t.Fatal(err)
			}
		}
	}
	for id, gpus := range [][]sched.GPUID{{0, 1}, {0, 1}, {2, 3}, {2, 3}} {
		c.startOn(sched.JobID(id), gpus, 0, 0, 0)
	}
	c.epoch(0, 10, 1)
	c.epoch(2, 10, 1)
	c.epoch(2, 21, 2)
	c.reload()
	c.epoch(0, 25, 2)
	c.end(3, 26, sched.Failed, "CUDA out of memory")
	for how, want := range map[sched.Mechanism]string{sched.TimeSlicing: "1.500 exact, refused false",
		sched.MPS: "1.100 exact, refused true", sched.MIG: "2.000 prior, refused false"} {
		est, err := c.h.Slowdowns(place(how), members("a", "b"), nil)
		if err != nil {
			t.Fatal(err)
		}
		oom, err := c.h.Refused(place(how), []string{"a", "b"})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%.3f %v, refused %v", est[0].Slow, est[0].Source, oom); got != want {
			t.Errorf("%v: %s, want %s", how, got, want)
		}
	}
}

// split is a school of a on GPUs 0 and 1, next to b on the one and c on the other, all timed alone.
func split(t *testing.T) *school {
	c := newSchool(t, "a")
	for _, m := range []string{"b", "c"} {
		c.event(sched.Event{Kind: sched.JobArrived,
			Spec: &sched.JobSpec{Model: m, GPUs: sched.Rigid(1), Share: sched.ShareAllow}})
	}
	for id, gpus := range [][]sched.GPUID{{0, 1}, {0}, {1}} {
		if err := c.l.ReportAlone(interference.Place{GPU: "v100", Width: int32(len(gpus))}, string("abc"[id]),
			10*time.Second); err != nil {
			t.Fatal(err)
		}
		c.startOn(sched.JobID(id), gpus, 0, 0, 0)
	}
	return c
}

// Ensure that the epochs of a job that has other company on one of its GPUs than on the other say nothing: they are not
// those of a set of three; and that those of one that has company on one GPU alone are those of a pair.
func TestLearnerSplit(t *testing.T) {
	c := split(t)
	c.epoch(1, 12, 1)
	c.epoch(0, 15, 1)
	c.epoch(0, 30, 2)
	if c.h.Len() != 1 {
		t.Errorf("%d sets are known, want that of b next to a alone", c.h.Len())
	}
	c.end(2, 31, sched.Finished, "")
	c.epoch(0, 40, 3)
	c.epoch(0, 54, 4)
	if got, want := c.known("a", "b"), "1.400 x1 exact; 1.035 x0 prior; "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Ensure that each company is remembered in which a job may have run out of memory.
func TestLearnerSplitOOM(t *testing.T) {
	c := split(t)
	c.end(0, 15, sched.Failed, "out of memory")
	p := interference.Place{GPU: "v100", Width: 2}
	for _, other := range []string{"b", "c"} {
		if is, err := c.h.Refused(p, []string{"a", other}); err != nil || !is {
			t.Errorf("a next to %s: refused %v (%v), want true", other, is, err)
		}
	}
}

// Ensure that the epochs of jobs on GPUs that are shared by several mechanisms say nothing of any.
func TestLearnerMixed(t *testing.T) {
	c := newSchool(t, "a", "b")
	c.event(sched.Event{Kind: sched.NodeJoined, NodeSpec: &sched.NodeSpec{Name: "m", GPUs: 2, Sharing: sched.MPS,
		Pool: sched.None}})
	for id := range sched.JobID(2) {
		for _, how := range []sched.Mechanism{sched.TimeSlicing, sched.MPS} {
			if err := c.l.ReportAlone(interference.Place{GPU: "v100", How: how, Width: 2}, string("ab"[id]),
				10*time.Second); err != nil {
				t.Fatal(err)
			}
		}
		c.startOn(id, []sched.GPUID{1, 2}, 0, 0, 0)
	}
	c.epoch(0, 15, 1)
	c.epoch(0, 30, 2)
	if c.h.Len() != 0 {
		t.Errorf("%d sets are known, want none", c.h.Len())
	}
}
