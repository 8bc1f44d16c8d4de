package jobs

import (
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
)

// Ensure that the line about a start says what is known: GPUs, an interval, how many are ahead, or nothing.
func TestStartLine(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	soon := &api.Within{Known: true, Low: now.Add(20 * time.Minute).Format(time.RFC3339),
		High: now.Add(45 * time.Minute).Format(time.RFC3339)}
	for want, doc := range map[string]*api.Why{
		"job 12 has its 2 GPUs\n":        {Unit: "GPU", Job: api.Job{ID: 12, GPUs: []string{"a", "b"}}},
		"job 12 starts in 20 to 45 min":  {Job: api.Job{ID: 12, Start: soon}, AheadAll: 3},
		"; 3 ahead\n":                    {Job: api.Job{ID: 12, Start: soon}, AheadAll: 3},
		"job 12 waits: no idea yet when": {Job: api.Job{ID: 12}},
	} {
		if got := startLine(doc, now); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := startLine(&api.Why{Job: api.Job{State: "done"}}, now); got != "" {
		t.Error(got)
	}
}
