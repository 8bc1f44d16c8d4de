package server

import (
	"strings"
	"testing"

	"github.com/trainyard/trainyard/api"
)

// Ensure that where the notices of a job go is for its user and for admins: others see that there are some, in the
// job, in why and in the log.
func TestNoticesAreConcealed(t *testing.T) {
	t.Parallel()
	tokens := map[string]string{}
	r := newRig(t, 1, func(r *rig) {
		network(t)(r)
		tokens["ann"], tokens["bob"] = r.token("u", "ann", api.User), r.token("o", "bob", api.User)
		tokens["root"] = r.token("a", "root", api.Admin)
	})
	ann := r.dial(tokens["ann"])
	_, err := ann.Submit(t.Context(), api.Submission{Dir: "/", File: "jobs: [{command: [x], name: hers, submit: 1h, " +
		"notify: [{on: [failed], mail: canary@lab.example}, {run: /canary}]}]"})
	if err != nil {
		t.Fatal(err)
	}
	for who, sees := range map[string]bool{"ann": true, "root": true, "bob": false} {
		for _, path := range []string{"/v1/jobs/hers", "/v1/jobs/hers/wait?seconds=0", "/v1/jobs/hers/why?ahead_ms=0"} {
			_, text := r.ask("GET", path, tokens[who], "", nil)
			if strings.Count(text, `canary@lab.example`) == 1 != sees || strings.Contains(text, "/canary") != sees ||
				!strings.Contains(text, `"notify":[{"on":["failed"]`) {
				t.Errorf("%s by %s, want where notices go %v:\n%s", path, who, sees, text)
			}
		}
		if _, text := r.ask("GET", "/v1/log", tokens[who], "", nil); !strings.Contains(text, "hers") ||
			strings.Contains(text, "canary") {
			t.Errorf("the log by %s:\n%s", who, text)
		}
	}
}
