package jobs

import (
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/trainyard/trainyard/api"
)

// Ensure that the editor shows the keys that are set, and that what its user leaves as it is is no change.
func TestShownKeys(t *testing.T) {
	t.Parallel()
	was := shownKeys(&api.Job{Min: 2, Want: 2, Max: 2, Keys: &api.Keys{Grace: "30s",
		TimeLimit: &api.TimeLimit{Max: "2h0m0s", Each: true}, Retries: 3, GPUTypes: []string{"a100"},
		Notify: []api.Notify{{On: []string{"failed"}, Webhook: &api.Webhook{File: "/w"}}}}})
	text, err := yaml.Marshal(was)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"priority: 0\n", "gpus: 2\n", "time_limit:\n  each: true\n  max: 2h0m0s\n",
		"grace: 30s\n", "retries: 3\n", "gpu_type:\n- a100\n", "from_file: /w\n"} {
		if !strings.Contains(string(text), line) {
			t.Errorf("the editor shows\n%swant %q", text, line)
		}
	}
	for edit, want := range map[string]string{"": "", "grace: 30s": "", "grace: 9s": `"grace": "9s"` + "\n",
		"max: 3h": `"time_limit": {"each":true,"max":"3h"}` + "\n"} {
		now := string(text)
		if key, _, some := strings.Cut(edit, ":"); some {
			_, old, _ := strings.Cut(now, key+":")
			old, _, _ = strings.Cut(old, "\n")
			now = strings.Replace(now, key+":"+old, edit, 1)
		}
		if keys, gone, err := differing(was, now); err != nil || keys != want || gone != nil {
			t.Errorf("%s: %q, %v, %v, want %q", edit, keys, gone, err, want)
		}
	}
	now := strings.Replace(string(text), "grace: 30s\n", "", 1)
	if keys, gone, err := differing(was, now); err != nil || keys != "" || !slices.Equal(gone, []string{"grace"}) {
		t.Errorf("a deleted line: %q, %v, %v, want it named", keys, gone, err)
	}
}
