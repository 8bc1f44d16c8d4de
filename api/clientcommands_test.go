package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"github.com/trainyard/trainyard/api"
)

// Ensure that no answer about a job is not read as success: too few answers, or one that says nothing.
func TestCommandsUnanswered(t *testing.T) {
	t.Parallel()
	for answer, whole := range map[string]bool{`{"jobs":[]}`: false, `{"jobs":[{"job":{"id":1}}]}`: false,
		`{"jobs":[{},{},{}]}`: false, `{"jobs":[{"job":{"id":1}},{}]}`: true} {
		c := managerThat(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, answer)
		})
		list, wrong, err := api.CommandAll(t.Context(), c, "cancel", []string{"1", "2"})
		if whole != (err == nil) || whole && (len(wrong) != 2 || wrong[0] != nil || list[0].ID != 1 ||
			wrong[1] == nil) {
			t.Errorf("%s: %+v, %v, %v", answer, list, wrong, err)
		}
	}
	old := managerThat(t, func(w http.ResponseWriter, _ *http.Request) {
		says(w, api.ErrNoJob)
	})
	if _, _, err := api.CommandAll(t.Context(), old, "eat", []string{"1"}); err == nil {
		t.Error("an old manager eats")
	}
	_, wrong, err := api.CommandAll(t.Context(), old, "cancel", []string{"1"})
	if p := (*api.Problem)(nil); err != nil || !errors.As(wrong[0], &p) {
		t.Errorf("of an old manager: %v, %v", wrong, err)
	}
}

// Ensure that more jobs than a request may name go in several, and that each answer is that of its job.
func TestCommandsInParts(t *testing.T) {
	t.Parallel()
	requests := 0
	c := managerThat(t, func(w http.ResponseWriter, r *http.Request) {
		var in api.Commanding
		var doc api.Commanded
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.Jobs) > 50_000 {
			t.Errorf("%d jobs, %v", len(in.Jobs), err)
		}
		for _, name := range in.Jobs {
			id, _ := strconv.Atoi(name)
			doc.Jobs = append(doc.Jobs, api.CommandedJob{Job: &api.Job{ID: id}})
		}
		requests++
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(doc)
	})
	names := make([]string, 50_001)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	list, wrong, err := api.CommandAll(t.Context(), c, "cancel", names)
	if err != nil || len(list) != len(names) || len(wrong) != len(names) || list[50_000].ID != 50_000 || requests != 2 {
		t.Errorf("%d answers of %d requests, %v", len(list), requests, err)
	}
}
