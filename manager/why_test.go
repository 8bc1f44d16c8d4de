package manager_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/whatif"
)

// Ensure that a job which waits for slots hears who holds them, and what would start it; that what it hears does start
// it when it is done; and that one that runs is restarted at its new width.
func TestWhyAndResize(t *testing.T) {
	t.Parallel()
	s := newRig(t, "fifo-skip", 4, "jobs: [{command: [x]}]").serve()
	first := s.submit("jobs: [{name: a, gpus: 3, command: [sleep, 1h]}, {name: b, gpus: 2, command: [sleep, 1h]}]")
	s.until(first, "running", runs)
	a, err := s.m.Why(t.Context(), first+1, host.WhyOptions{Remedies: 10 * time.Second, Forecast: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if w := &a.Waiting; w.Code != explain.WaitBusy || w.Need != 2 || w.Have != 1 || len(w.Jobs) != 1 ||
		w.Jobs[0] != first {
		t.Errorf("%+v, want 2 needed, 1 free, job a on the others", w)
	}
	if e := a.Forecast.Of(first + 1); e == nil || e.Start.P50 <= a.View.Now || a.Last != nil {
		t.Errorf("%+v, %+v, want a start some day and no displacement", e, a.Last)
	}
	if a.Remedies == nil || len(a.Remedies.List) == 0 || a.Remedies.List[0].Change != whatif.OtherGPUs {
		t.Fatalf("%+v, want fewer slots to do", a.Remedies)
	}
	width := func(r sched.Range) func(*sched.JobChange) { return func(c *sched.JobChange) { c.GPUs = r } }
	if bad := s.m.Change(t.Context(), first+1, width(a.Remedies.List[0].Spec.GPUs)); bad != nil {
		t.Fatal(bad)
	}
	s.until(first+1, "running", runs)
	if bad := s.m.Change(t.Context(), first, width(sched.Rigid(2))); bad != nil {
		t.Fatal(bad)
	}
	s.until(first, "running again", func(r *host.Row) bool { return runs(r) && r.Attempts == 2 })
	if bad := s.m.Look(t.Context(), func(v *sched.View) {
		if j := v.Job(first); len(j.GPUs) != 2 || j.Spec.GPUs != sched.Rigid(2) {
			t.Errorf("job a holds %v and asks for %+v, want 2", j.GPUs, j.Spec.GPUs)
		}
	}); bad != nil {
		t.Error(bad)
	}
	if a, err = s.m.Why(t.Context(), first, host.WhyOptions{}); err != nil || a.Waiting.Code != explain.NotWaiting ||
		a.Forecast != nil || a.Remedies != nil {
		t.Errorf("%+v, %v, want that it runs, and nothing that was not asked for", a, err)
	}
}

// Ensure that a change which would leave a job waiting for ever, or is of none that could be changed, is refused and
// says why.
func TestChangeRefused(t *testing.T) {
	t.Parallel()
	s := newRig(t, "fifo-skip", 2, "jobs: [{command: [x]}]").serve()
	first := s.submit("jobs: [{name: a, command: [sh, -c, 'exit 0']}, {name: b, submit: 1h, command: [x]}]")
	s.until(first, "done", done)
	for _, c := range []struct {
		id   sched.JobID
		gpus sched.Range
		err  error
		text string
	}{
		{first, sched.Rigid(1), host.ErrDone, "finished"},
		{first + 9, sched.Rigid(1), host.ErrNoJob, "no such job"},
		{first + 1, sched.Rigid(3), manager.ErrRefused, "needs 3"},
		{first + 1, sched.Rigid(0), manager.ErrRefused, "gpus 0, want > 0"},
		{first + 1, sched.Range{Min: 2, Want: 1, Max: 2}, manager.ErrRefused, "min <= default <= max"},
	} {
		err := s.m.Change(t.Context(), c.id, func(x *sched.JobChange) { x.GPUs = c.gpus })
		if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("job %d to %+v: %v, want %v: %s", c.id, c.gpus, err, c.err, c.text)
		}
	}
	if _, err := s.m.Why(t.Context(), first+9, host.WhyOptions{}); !errors.Is(err, host.ErrNoJob) {
		t.Errorf("%v, want %v", err, host.ErrNoJob)
	}
}

// Ensure that a job which lost its slots hears to whom, by which rule, also after the manager was replaced, and when
// it is back.
func TestDisplacedIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t, "las", 1, "jobs: [{command: [x]}]")
	r.options.Settings = map[string]string{"min_run": "0", "quantum": "1"}
	s := r.serve()
	first := s.submit("jobs: [{name: a, preemptible: true, grace: 1s, command: [sleep, 1h]}]")
	s.until(first, "running", runs)
	s.submit("jobs: [{name: b, grace: 1s, command: [sleep, 1h]}]")
	s.until(first+1, "running", runs)
	reported := func(s *served) {
		t.Helper()
		a, err := s.m.Why(t.Context(), first, host.WhyOptions{})
		if err != nil || a.Last == nil || a.Last.By != first+1 || a.Last.Why != sched.WhyPreempted {
			t.Errorf("%+v, %v, want that b preempted it", a, err)
		}
	}
	reported(s)
	_ = s.stop()
	reported(r.serve())
}

// Ensure that a decision is explained by what went in, that events which are none are reported as such, and that this
// holds for decisions from before the manager was replaced; but not for those of another system.
func TestExplain(t *testing.T) {
	t.Parallel()
	r := newRig(t, "fifo-skip", 2, "jobs: [{command: [x]}]")
	s := r.serve()
	first := s.submit("jobs: [{name: a, command: [sleep, 1h]}, {name: b, gpus: 2, command: [sleep, 1h]}, {name: c, " +
		"command: [sleep, 1h]}]")
	s.until(first+2, "running", runs)
	var decided, ordered uint64
	for rec, err := range records(t, s.m) {
		switch {
		case err != nil:
			t.Fatal(err)
		case rec.Event.Kind == sched.Decided && rec.Event.Job == first+2:
			decided = rec.Event.Seq
		case rec.Event.Kind == sched.Ordered && ordered == 0:
			ordered = rec.Event.Seq
		}
	}
	check := func(s *served) {
		t.Helper()
		d, err := s.m.Explain(t.Context(), decided)
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Free) != 2 || len(d.Waited) != 3 || d.Waited[1] != first+1 || len(d.Wanted) != 2 || len(d.Was) != 0 ||
			len(d.Event.GPUs) != 1 ||
			d.Event.Why.Code != sched.WhyStarted || len(d.Refused) != 0 {
			t.Errorf("%+v, want a and c chosen of three that waited for two free slots", d)
		}
		if _, err = s.m.Explain(t.Context(), ordered); !errors.Is(err, host.ErrNoDecision) ||
			!strings.Contains(err.Error(), "carries one out") {
			t.Errorf("an order: %v", err)
		}
		gone, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		defer cancel()
		want := fmt.Sprintf("event %d: the log is long: it was not decided again in the time given, but up to event ",
			decided)
		if _, err = s.m.Explain(gone, decided); !errors.Is(err, host.ErrLate) ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("without time: %v, want %s...", err, want)
		}
		if _, err = s.m.Explain(t.Context(), 1<<40); !errors.Is(err, host.ErrNoEvent) {
			t.Errorf("no event: %v", err)
		}
	}
	check(s)
	_ = s.stop()
	s = r.serve()
	check(s)
	_ = s.stop()
	r.options.System = "las"
	s = r.serve()
	if _, err := s.m.Explain(t.Context(), ordered); !errors.Is(err, host.ErrNoDecision) {
		t.Errorf("of another system's log: %v", err)
	}
}

// Ensure that a plan says when jobs would run, hands none in, and refuses what would never start.
func TestPlan(t *testing.T) {
	t.Parallel()
	s := newRig(t, "fifo-skip", 2, "jobs: [{command: [x]}]").serve()
	first := s.submit("jobs: [{name: a, gpus: 2, command: [sleep, 1h]}]")
	s.until(first, "running", runs)
	f, id, err := s.m.Plan(t.Context(), s.list("jobs: [{name: b, after: [c], command: [x]}, {name: c, command: [x]}]"))
	if err != nil {
		t.Fatal(err)
	}
	c, b, now := f.Of(id), f.Of(id+1), f.At // those waited for come first
	if c == nil || b == nil {
		t.Fatalf("%+v, want estimates of %d and %d", f, id, id+1)
	}
	if c.Start.P50 <= now || b.Start.P50 < c.Start.P50 {
		t.Errorf("b %+v, c %+v at %v, want c to wait for a, and b for c", b, c, now)
	}
	if _, known, _ := s.m.Board().Row(id); known {
		t.Error("the plan was submitted")
	}
	if _, _, err = s.m.Plan(t.Context(), s.list("jobs: [{gpus: 3, command: [x]}]")); !errors.Is(err,
		manager.ErrRefused) {
		t.Errorf("%v, want it refused", err)
	}
}

// records reads the log of a manager.
func records(t *testing.T, m *manager.Manager) func(func(*eventlog.Record, error) bool) {
	t.Helper()
	var b strings.Builder
	if err := m.WriteLog(&b); err != nil {
		t.Fatal(err)
	}
	r, err := eventlog.NewReader(strings.NewReader(b.String()), "log")
	if err != nil {
		t.Fatal(err)
	}
	return r.Records()
}
