package server

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/api"
)

// Ensure that a list of jobs under a key has one answer, that the key is that of one user, and that it stands for the
// file, the folder and the variables.
func TestSubmitUnderKey(t *testing.T) {
	t.Parallel()
	ann, bob := "", ""
	r := newRig(t, 1, func(r *rig) {
		network(t)(r)
		ann, bob = r.token("u", "ann", api.User), r.token("v", "bob", api.User)
	})
	list := api.Submission{File: "jobs: [{command: [x], submit: 1h, count: 3, name: a}]", Dir: "/"}
	seen := map[int]bool{}
	for _, token := range []string{ann, bob, ann, bob} {
		doc, err := r.dial(token).SubmitOnce(t.Context(), list, "same", api.Retry{})
		if err != nil || len(doc.Jobs) != 3 || doc.Jobs[2].ID != doc.Jobs[0].ID+2 || doc.Jobs[2].Name != "a-3" {
			t.Fatalf("%+v, %v", doc, err)
		}
		seen[doc.Jobs[0].ID] = true
	}
	if len(seen) != 2 {
		t.Errorf("first jobs %v, want one of each user", seen)
	}
	for what, other := range map[string]api.Submission{
		"file":      {File: strings.Replace(list.File, "[x]", "[y]", 1), Dir: "/"},
		"folder":    {File: list.File, Dir: "/tmp"},
		"variables": {File: list.File, Dir: "/", Env: map[string]string{"PATH": "/bin"}},
	} {
		_, err := r.dial(ann).SubmitOnce(t.Context(), other, "same", api.Retry{})
		p := (*api.Problem)(nil)
		if !errors.Is(err, api.ErrKeyUsed) || !errors.As(err, &p) || p.Status != http.StatusConflict {
			t.Errorf("another %s: %v", what, err)
		}
	}
	body := `{"file":"jobs: [{command: [x], submit: 1h}]","dir":"/"}`
	for _, key := range []string{"a b", strings.Repeat("k", 65), "é", "a/b"} {
		status, text := r.ask(http.MethodPost, "/v1/jobs", ann, body, func(q *http.Request) {
			q.Header.Set("Content-Type", "application/json")
			q.Header.Set(api.KeyHeader, key)
		})
		if status != http.StatusBadRequest || !strings.Contains(text, "want 1 to 64 of") {
			t.Errorf("key %q: %d %s", key, status, text)
		}
	}
	if all, err := r.client.Jobs(t.Context(), api.Filter{}); err != nil || all.Total != 6 {
		t.Errorf("%d jobs, %v; want 6", all.Total, err)
	}
}
