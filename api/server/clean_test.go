package server

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/driver/local/shim"
)

// Ensure that an admin alone has run folders removed, of jobs that are done for long enough: neither what runs, nor a
// checkpoint, nor what is known of a job.
func TestClean(t *testing.T) {
	t.Parallel()
	ann := ""
	r := newRig(t, 2, func(r *rig) {
		network(t)(r)
		ann = r.token("u", "ann", api.User)
	})
	jobs := r.submit("jobs: [{name: over, command: [sh, -c, 'echo kept > $TRAINYARD_CHECKPOINT_DIR/x; echo wrote']}, " +
		"{name: runs, command: [sleep, 1h]}]")
	over, err := r.client.Wait(t.Context(), "over")
	if err != nil || over.Outcome != "finished" {
		t.Fatalf("%+v, %v", over, err)
	}
	state := shim.State(r.dir)
	output := state.RunDir(int32(jobs[0].ID), 1).Output()
	there := func(path string) bool {
		_, missing := os.Stat(path)
		return missing == nil
	}
	for other := state.RunDir(int32(jobs[1].ID), 1).Output(); !there(other); time.Sleep(10 * time.Millisecond) {
		if t.Context().Err() != nil {
			t.Fatal("the other job did not start")
		}
	}
	if _, err = r.dial(ann).Clean(t.Context(), api.Clean{}); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("by a user: %v", err)
	}
	if status, text := r.ask(http.MethodPost, "/v1/clean", ann, `{"older_s":-1}`, func(q *http.Request) {
		q.Header.Set("Content-Type", "application/json")
	}); status != http.StatusForbidden {
		t.Errorf("%d %s", status, text)
	}
	if _, err = r.client.Clean(t.Context(), api.Clean{OlderSec: -1}); err == nil {
		t.Error("jobs that are done for less than no time")
	}
	for _, in := range []api.Clean{{OlderSec: 3600}, {Dry: true}} {
		doc, bad := r.client.Clean(t.Context(), in)
		if bad != nil || doc.Attempts > 1 || !there(output) || in.Dry != doc.Dry {
			t.Errorf("%+v: %+v, %v", in, doc, bad)
		}
	}
	for doc := (api.Cleaned{}); doc.Attempts == 0; { // its shim may be there still
		if doc, err = r.client.Clean(t.Context(), api.Clean{Outputs: true}); err != nil || len(doc.Left) > 1 {
			t.Fatalf("%+v, %v", doc, err)
		}
	}
	if there(output) || !there(filepath.Dir(output)) {
		t.Error("outputs alone")
	}
	if doc, err := r.client.Clean(t.Context(), api.Clean{}); err != nil || doc.Attempts != 1 || doc.Jobs != 1 ||
		doc.Bytes <= 0 {
		t.Errorf("%+v, %v", doc, err)
	}
	if there(filepath.Dir(output)) || !there(filepath.Join(state.Checkpoint(int32(jobs[0].ID)), "x")) ||
		!there(state.RunDir(int32(jobs[1].ID), 1).Output()) {
		t.Error("the run folder of the job that is over, and nothing else, is to go")
	}
	if text, err := r.logs("over"); err != nil || text != "" {
		t.Errorf("logs of what is gone: %q, %v", text, err)
	}
	if j, err := r.client.Job(t.Context(), "over"); err != nil || j.Outcome != "finished" {
		t.Errorf("%+v, %v", j, err)
	}
}
