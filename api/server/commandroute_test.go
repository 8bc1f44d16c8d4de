package server

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/api"
)

// Ensure that of many jobs those of another user are refused one by one, those done already too, and the others done
// with; and that a request about many is under no condition of one.
func TestCommandsAreOfOwnJobs(t *testing.T) {
	t.Parallel()
	ann := ""
	r := newRig(t, 1, func(r *rig) {
		network(t)(r)
		ann = r.token("u", "ann", api.User)
	})
	bobs := strconv.Itoa(r.submit("jobs: [{command: [x], user: bob, name: of-bob, submit: 1h}]")[0].ID)
	c := r.dial(ann)
	var own []string
	for range 3 {
		doc, err := c.Submit(t.Context(), api.Submission{File: "jobs: [{command: [x], submit: 1h}]", Dir: "/"})
		if err != nil {
			t.Fatal(err)
		}
		own = append(own, strconv.Itoa(doc.Jobs[0].ID))
	}
	if _, err := c.Cancel(t.Context(), own[2]); err != nil {
		t.Fatal(err)
	}
	jobs := []string{own[0], bobs, "no-such", own[1], own[2]}
	list, wrong, err := api.CommandAll(t.Context(), c, "pause", jobs)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []error{nil, api.ErrForbidden, api.ErrNoJob, nil, api.ErrDone} {
		if !errors.Is(wrong[i], want) || want == nil && (wrong[i] != nil || list[i].State != "held" ||
			strconv.Itoa(list[i].ID) != jobs[i]) {
			t.Errorf("job %s: %+v, %v, want %v", jobs[i], list[i], wrong[i], want)
		}
	}
	if j, bad := r.client.Job(t.Context(), bobs); bad != nil || j.Outcome != "" {
		t.Errorf("bob's job is %+v, %v", j, bad)
	}
	status, text := r.ask(http.MethodPost, "/v1/commands", ann, `{"command": "pause", "jobs": ["`+own[0]+`"]}`,
		func(q *http.Request) { q.Header.Set("If-Match", "*") })
	if status != http.StatusBadRequest || !strings.Contains(text, "If-Match") {
		t.Errorf("under a condition: %d %s", status, text)
	}
}
