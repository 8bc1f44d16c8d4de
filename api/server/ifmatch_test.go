package server

import (
	"errors"
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
	if tag := get.Header.Get("ETag"); tag != `"0-waiting"` {
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
