package host_test

import (
	"testing"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that exit codes are reported with the signals they stand for, and ends with what is known of them.
func TestFailureTexts(t *testing.T) {
	for _, c := range []struct {
		row  host.Row
		want string
	}{
		{host.Row{}, ""},
		{host.Row{Ended: sched.Preempted, Code: 75}, ""},
		{host.Row{Ended: sched.Failed, Code: 1}, "exit code 1"},
		{host.Row{Ended: sched.Failed, Code: 128}, "exit code 128"},
		{host.Row{Ended: sched.Failed, Code: 139}, "exit code 139 (SIGSEGV)"},
		{host.Row{Ended: sched.Failed, Code: 137}, "exit code 137 (SIGKILL, by no order of the manager: the kernel " +
			"kills so where memory is short)"},
		{host.Row{Ended: sched.Failed, Code: 255}, "exit code 255"},
		{host.Row{Ended: sched.Failed, Code: 3, Text: "what it did in its last 5s is lost"},
			"exit code 3: what it did in its last 5s is lost"},
		{host.Row{Failures: 1, Text: "no free port"}, "could not be started: no free port"},
	} {
		if got := c.row.Failure(); got != c.want || c.row.Failed() != (c.want != "") {
			t.Errorf("%+v: %q, want %q", c.row, got, c.want)
		}
	}
}

// Ensure that the latest job of a name is found, which job had it before, and those next to it that are not done.
func TestNamesOfJobs(t *testing.T) {
	b := host.NewBoard()
	v := new(sched.View)
	for id, name := range []string{"a", "b", "a", "", "a"} {
		v.Jobs = append(v.Jobs, sched.Job{Spec: &sched.JobSpec{Name: name}, State: sched.Waiting})
		b.Log(v, &sched.Event{Kind: sched.JobArrived, Job: sched.JobID(id)})
		if id == 2 { // two batches
			_ = b.EndBatch()
		}
	}
	_ = b.EndBatch()
	v.Jobs[2].State = sched.Done
	b.Log(v, &sched.Event{Kind: sched.AttemptEnded, Job: 2})
	_ = b.EndBatch()
	for id, want := range []sched.JobID{sched.None, sched.None, 0, sched.None, 2} {
		if row, _, _ := b.Row(sched.JobID(id)); row.Older != want {
			t.Errorf("job %d: %d had its name before, want %d", id, row.Older, want)
		}
	}
	if id, ok := b.Find("a"); id != 4 || !ok {
		t.Errorf("found %d, %v, want 4", id, ok)
	}
	if _, ok := b.Find("c"); ok {
		t.Error("found a job that is not there")
	}
	if got := b.Others(4); len(got) != 1 || got[0] != 0 {
		t.Errorf("others %v, want 0 alone: 2 is done", got)
	}
	if got := b.Others(1); len(got) != 0 {
		t.Errorf("others %v, want none", got)
	}
	var _ eventlog.Sink = b
}
