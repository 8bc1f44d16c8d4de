package api_test

import (
	"errors"
	"fmt"
	"net/http"
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
