package server

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/sched"
)

// taskOfJob returns what a job is to run.
func (r *rig) taskOfJob(id int) (t task.Task, spec sched.JobSpec) {
	r.Helper()
	err := r.m.Look(r.Context(), func(v *sched.View) { spec = *v.Job(sched.JobID(id)).Spec })
	if err == nil {
		t, err = task.DecodeTask(spec.Task)
	}
	if err != nil {
		r.Fatal(err)
	}
	return t, spec
}

// Ensure that all keys of a job that waits may be changed, and of one that runs, where the answer says which hold of
// its next attempt; that a change is whole or none; and that one that is asked for in vain says why.
func TestEdit(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	jobs := r.submit("jobs: [{name: runs, command: [sleep, 1h]}, {name: waits, env: {SECRET: canary}, command: [a]}]")
	for j, err := r.client.Job(t.Context(), "runs"); j.State != "running"; j, err = r.client.Job(t.Context(), "runs") {
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	keys := "{command: [b, --lr, 1e-4], retry: {max: 3}, grace: 7s, priority: -2, time_limit: 2h, model: m}"
	edits := api.EditsOf(r.client)
	doc, err := edits.Edit(t.Context(), "waits", api.SeenJob{}, api.Edit{Keys: keys})
	all := []string{"command", "grace", "model", "priority", "retry", "time_limit"}
	if err != nil || len(doc.Next) > 0 || !slices.Equal(doc.Now, all) || doc.Job.Priority != -2 {
		t.Fatalf("%+v, %v", doc, err)
	}
	job, spec := r.taskOfJob(jobs[1].ID)
	if !slices.Equal(job.Command, []string{"b", "--lr", "1e-4"}) || job.Grace != 7*time.Second || spec.Retries != 3 ||
		job.TimeLimit != 2*time.Hour || spec.Model != "m" || job.Env["SECRET"] != "canary" || spec.Name != "waits" {
		t.Errorf("%+v, %+v", job, spec)
	}
	doc, err = edits.Edit(t.Context(), "runs", api.SeenJob{},
		api.Edit{Keys: "{priority: -1, grace: 5s, command: [c], launcher: none}"})
	if err != nil || !slices.Equal(doc.Now, []string{"grace", "priority"}) ||
		!slices.Equal(doc.Next, []string{"command", "launcher"}) {
		t.Errorf("of one that runs: %+v, %v", doc, err)
	}
	if doc, err = edits.Edit(t.Context(), "runs", api.SeenJob{}, api.Edit{Keys: "gpus: 1"}); err != nil ||
		len(doc.Notes) > 0 {
		t.Errorf("to what it runs on: %+v, %v", doc, err)
	}
	for keys, want := range map[string]string{"{priority: 3, gpus: 2}": "needs 2",
		"{priority: 3, colour: red}": "colour", "{priority: high}": "want a whole number",
		"{priority: 3, name: x}": "name stays", "{priority: 3, grace: 0s}": "grace", "": "want", "[]": "want",
		"{priority: 3, after: [runs]}": "after stays"} {
		_, err = edits.Edit(t.Context(), "waits", api.SeenJob{}, api.Edit{Keys: keys})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", keys, err, want)
		}
	}
	if _, spec = r.taskOfJob(jobs[1].ID); spec.Priority != -2 {
		t.Errorf("priority %d of an edit that was refused", spec.Priority)
	}
	stale := http.Header{"If-Match": {`"9-running"`}, "Content-Type": {"application/json"}}
	resp, err := r.client.Do(t.Context(), http.MethodPost, "/v1/jobs/1/edit",
		[]byte(`{"keys":"{priority: 0}"}`), stale)
	if err == nil {
		_ = resp.Body.Close()
	}
	if !errors.Is(err, api.ErrChanged) {
		t.Errorf("of one that has changed: %v", err)
	}
	var log strings.Builder
	events, err := r.client.Do(t.Context(), http.MethodGet, "/v1/log", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	buffer := make([]byte, 1<<16)
	for n := 1; n > 0; {
		n, _ = events.Body.Read(buffer)
		log.Write(buffer[:n])
	}
	if text := log.String(); strings.Contains(text, "canary") || !strings.Contains(text, `"event":"changed"`) {
		t.Error("the log of an edit shows a variable, or no edit")
	}
}

// Ensure that an edit by which a job stops that runs says so.
func TestEditStops(t *testing.T) {
	t.Parallel()
	r := newRig(t, 2, nil)
	r.submit("jobs: [{name: runs, command: [sleep, 1h]}]")
	for j, err := r.client.Job(t.Context(), "runs"); j.State != "running"; j, err = r.client.Job(t.Context(), "runs") {
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	doc, err := api.EditsOf(r.client).Edit(t.Context(), "runs", api.SeenJob{}, api.Edit{Keys: "gpus: 2"})
	if err != nil || len(doc.Notes) != 1 ||
		!strings.HasPrefix(doc.Notes[0], "is stopped, as it runs on 1, and waits for its turn") {
		t.Errorf("%q, %v", doc.Notes, err)
	}
}

// Ensure that of edits at once none is lost: each changes a key of its own.
func TestEditsAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	id := r.submit("jobs: [{name: a, submit: 1h, command: [x]}]")[0].ID
	for _, grace := range []string{"3s", "4s", "5s"} {
		var all sync.WaitGroup
		for _, keys := range []string{"grace: " + grace, "retries: " + grace[:1], "model: m" + grace, "gpus: 1",
			"wall_time: " + grace} {
			all.Go(func() {
				_, err := api.EditsOf(r.client).Edit(t.Context(), "a", api.SeenJob{}, api.Edit{Keys: "{" + keys + "}"})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		job, spec := r.taskOfJob(id)
		if d, _ := time.ParseDuration(grace); job.Grace != d || spec.Retries != int32(grace[0]-'0') ||
			spec.Model != "m"+grace || spec.WallTime != d {
			t.Errorf("%s: %+v, %+v", grace, job, spec)
		}
	}
}

// Ensure that users lower their jobs and order them among themselves, and that more takes an admin.
func TestPriorityRights(t *testing.T) {
	t.Parallel()
	ann := ""
	r := newRig(t, 1, func(r *rig) {
		network(t)(r)
		ann = r.token("u", "ann", api.User)
	})
	r.submit("jobs: [{name: a, user: ann, submit: 1h, command: [x]}, {name: b, user: ann, submit: 1h, command: [x]}, " +
		"{name: c, user: bob, submit: 1h, command: [x]}]")
	her := r.dial(ann)
	number := func(n int) api.Priority { return api.Priority{Priority: &n} }
	for _, c := range []struct {
		client *api.Client
		job    string
		to     api.Priority
		err    error
		want   map[string]int // priorities afterwards
	}{
		{her, "a", number(1), api.ErrForbidden, map[string]int{"a": 0}},
		{her, "a", number(-3), nil, map[string]int{"a": -3}},
		{her, "a", number(0), nil, map[string]int{"a": 0}},
		{her, "c", number(-1), api.ErrForbidden, map[string]int{"c": 0}},
		{her, "a", api.Priority{Above: "c"}, api.ErrForbidden, map[string]int{"a": 0}},
		{her, "b", api.Priority{Above: "a"}, nil, map[string]int{"a": -1, "b": 0}},
		{her, "b", api.Priority{Above: "a"}, nil, map[string]int{"a": -1, "b": 0}},
		{her, "b", api.Priority{Below: "a"}, nil, map[string]int{"a": -1, "b": -2}},
		{r.client, "c", number(2), nil, map[string]int{"c": 2}},
		{r.client, "a", api.Priority{Above: "c"}, nil, map[string]int{"a": 3, "c": 2}},
		{r.client, "a", api.Priority{Above: "a"}, api.ErrMalformed, nil},
		{r.client, "a", api.Priority{Above: "none"}, api.ErrNoJob, nil},
		{r.client, "a", api.Priority{}, api.ErrMalformed, nil},
	} {
		_, err := api.EditsOf(c.client).Prioritize(t.Context(), c.job, c.to)
		if !errors.Is(err, c.err) {
			t.Errorf("%s to %+v: %v, want %v", c.job, c.to, err, c.err)
		}
		for name, want := range c.want {
			if j, failed := r.client.Job(t.Context(), name); failed != nil || j.Priority != want {
				t.Errorf("%s to %+v: priority %d of %s, want %d (%v)", c.job, c.to, j.Priority, name, want, failed)
			}
		}
	}
	_, err := r.client.Cancel(t.Context(), "c")
	if err != nil {
		t.Fatal(err)
	}
	for job, other := range map[string]string{"a": "c", "c": "a"} {
		if _, err = api.EditsOf(r.client).Prioritize(t.Context(), job, api.Priority{Above: other}); !errors.Is(err,
			api.ErrDone) {
			t.Errorf("%s above %s, of which one is done: %v", job, other, err)
		}
	}
	_, err = api.EditsOf(her).Edit(t.Context(), "a", api.SeenJob{}, api.Edit{Keys: "priority: 9"})
	if !errors.Is(err, api.ErrForbidden) {
		t.Errorf("by an edit: %v", err)
	}
	first := api.Submission{File: "jobs: [{command: [x], priority: 1}]", Dir: "/"}
	if _, err := her.Submit(t.Context(), first); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("as it is submitted: %v", err)
	}
}
