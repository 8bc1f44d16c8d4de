package controller

import (
	"context"
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that jobs which went while no one led are missed, and that none is for what a batch did that was cut short:
// jobs that came in it are not counted for others, and those that ended in it are.
func TestGone(t *testing.T) {
	at := func(id sched.JobID, version uint64, state sched.JobState) record.Job {
		return record.Job{ID: id, Version: version, Job: sched.Job{State: state}}
	}
	s := &v1alpha1.SchedulerPolicyStatus{Version: 20, Jobs: 4, Running: 1, Waiting: 2} // job 0 was done
	for _, c := range []struct {
		jobs []record.Job
		want int
	}{
		{[]record.Job{at(0, 5, sched.Done), at(1, 9, sched.Active), at(2, 9, sched.Waiting), at(3, 9, sched.Held)}, 0},
		{[]record.Job{at(1, 9, sched.Active), at(2, 9, sched.Waiting), at(3, 9, sched.Held)}, 0},
		{[]record.Job{at(0, 5, sched.Done), at(2, 9, sched.Waiting), at(3, 9, sched.Held)}, 1},
		{[]record.Job{at(1, 21, sched.Done), at(2, 9, sched.Waiting), at(3, 9, sched.Held)}, 0},
		{[]record.Job{at(1, 9, sched.Active), at(2, 9, sched.Waiting), at(4, 22, sched.Waiting)}, 1},
		{nil, 3},
	} {
		if got := gone(s, c.jobs); got != c.want {
			t.Errorf("of %+v %d are missed, want %d", c.jobs, got, c.want)
		}
	}
}

// Ensure that a system goes on, with what it remembers, from the line of who decided as earlier versions wrote it: they
// knew neither figures of memory nor, before that, classes of priority. Another system starts with today's defaults.
func TestUpgradeGoesOn(t *testing.T) {
	for _, name := range []string{"eaco", "worth", "fifo"} {
		r := newRig(t, name, map[string]string{"priority": "classes"}, 20, 1)
		var p v1alpha1.SchedulerPolicy
		at := client.ObjectKey{Name: PolicyName}
		if err := r.api.Get(t.Context(), at, &p); err != nil {
			t.Fatal(err)
		}
		if name != "fifo" { // which does not share
			p.Spec.Settings["share_memory"] = "stated"
		}
		if err := r.api.Update(t.Context(), &p); err != nil {
			t.Fatal(err)
		}
		r.writes.Store(20)
		if err := r.lead(); !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		r.writes.Store(-1)
		for _, key := range []string{"share_memory", "priority"} { // the newest first
			if err := r.api.Get(t.Context(), at, &p); err != nil {
				t.Fatal(err)
			}
			status := p.Status
			word, given := " "+key+"="+p.Spec.Settings[key], p.Spec.Settings[key] != ""
			if given != strings.Contains(status.System, word) {
				t.Fatalf("%q decided, want it with%s", status.System, word)
			}
			status.System = strings.Replace(status.System, word, "", 1)
			delete(p.Spec.Settings, key)
			if err := r.api.Update(t.Context(), &p); err != nil {
				t.Fatal(err)
			}
			p.Status = status
			if err := r.api.Status().Update(t.Context(), &p); err != nil {
				t.Fatal(err)
			}
			live, err := r.controller().start(context.Background())
			if err != nil {
				t.Fatalf("from %q: %v", status.System, err)
			}
			if live.renewed != "" {
				t.Errorf("from %q: %s", status.System, live.renewed)
			}
		}
	}
	if is := since("fifo priority=classes", "eaco"); is != 0 {
		t.Errorf("another system has the defaults of schema %d", is)
	}
}
