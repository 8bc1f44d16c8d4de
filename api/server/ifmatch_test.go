package server

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/trainyard/trainyard/api"
)

// Ensure that a change that was asked for of a job as it stood before is refused with 412 and does nothing, on every
// route that changes a job.
func TestIfMatch(t *testing.T) {
	r := newRig(t, 1, nil)
	doc, err := r.client.Submit(t.Context(), api.Submission{Dir: "/",
		File: "jobs: [{name: a, gpus: 1, command: [sleep, 1h]}, {name: b, gpus: 1, command: [x]}]"})
	if err != nil || len(doc.Jobs) != 2 {
		t.Fatal(doc, err)
	}
	get, err := r.client.Do(t.Context(), http.MethodGet, "/v1/jobs/1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = get.Body.Close()
	if tag := get.Header.Get("ETag"); tag != `"0-waiting-1-1-1"` {
		t.Errorf("ETag %s of a job that waits", tag)
	}
	ask := func(verb, tag string) error {
		resp, err := r.client.Do(t.Context(), http.MethodPost, "/v1/jobs/1/"+verb, nil, http.Header{"If-Match": {tag}})
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	for _, verb := range []string{"cancel", "pause", "resume", "requeue"} {
		p := (*api.Problem)(nil)
		if err := ask(verb, `"1-running"`); !errors.As(err, &p) || p.Status != http.StatusPreconditionFailed ||
			p.Code != "changed" || !errors.Is(err, api.ErrChanged) {
			t.Errorf("%s of a job that has changed: %v, want 412", verb, err)
		}
	}
	if j, err := r.client.Job(t.Context(), "1"); err != nil || j.State != "waiting" {
		t.Errorf("%+v, %v, want it to wait", j, err)
	}
	if err := errors.Join(ask("pause", `"0-running", "0-waiting"`), ask("cancel", "*")); err != nil {
		t.Error(err)
	}
}

// Ensure that of those who saw a job alike and change it at once one alone succeeds, whether it is resized, paused or
// cancelled: the job is looked at and changed in one instant. What the others wanted is not done.
func TestIfMatchAtOnce(t *testing.T) {
	r := newRig(t, 8, nil)
	const rounds, atOnce = 6, 8
	file := fmt.Sprintf("jobs: [{name: x, gpus: 8, command: [sleep, 1h]}, {name: a, gpus: {min: 1, max: 8}, "+
		"count: %d, command: [sleep, 1h]}]", rounds)
	if _, err := r.client.Submit(t.Context(), api.Submission{Dir: "/", File: file}); err != nil {
		t.Fatal(err)
	}
	for round := range rounds {
		path := fmt.Sprintf("/v1/jobs/%d", round+1)
		get, err := r.client.Do(t.Context(), http.MethodGet, path, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = get.Body.Close()
		tag := get.Header.Get("ETag")
		change := func(n int) error {
			verb, body := "/resize", fmt.Appendf(nil, `{"gpus_min": 1, "gpus_max": %d}`, n)
			if round%2 == 1 && n%2 == 1 {
				verb, body = "/pause", nil
			}
			resp, failed := r.client.Do(t.Context(), http.MethodPost, path+verb, body, http.Header{"If-Match": {tag}})
			if failed == nil {
				_ = resp.Body.Close()
			}
			return failed
		}
		errs, start := make(chan error), make(chan bool)
		for n := range atOnce {
			go func() {
				<-start
				errs <- change(n%7 + 1)
			}()
		}
		close(start)
		done := 0
		for range atOnce {
			if failed := <-errs; failed == nil {
				done++
			} else if !errors.Is(failed, api.ErrChanged) {
				t.Errorf("%v, want %v", failed, api.ErrChanged)
			}
		}
		if done != 1 {
			t.Errorf("round %d: %d of %d changes of what was seen alike were made, want one", round, done, atOnce)
		}
		if failed := change(3); !errors.Is(failed, api.ErrChanged) {
			t.Errorf("round %d: a resize by the old tag: %v", round, failed)
		}
	}
}
