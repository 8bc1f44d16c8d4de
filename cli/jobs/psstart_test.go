package jobs

import (
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
)

// Ensure that ps says when jobs that wait are expected to start, in the words of why and submit, that it says so where
// there is no idea, and that the column is left out where nothing was foreseen.
func TestPsStart(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) string { return now.Add(d).Format(time.RFC3339Nano) }
	soon := &api.Within{Known: true, Low: at(10 * time.Minute), Median: at(15 * time.Minute),
		High: at(20 * time.Minute)}
	doc := api.Jobs{Now: at(0), Unit: "slot", Jobs: []api.Job{
		{ID: 0, Name: "up", State: "running", GPUs: []string{"slot-0"}, End: soon},
		{ID: 1, Name: "next", State: "waiting", Start: soon, Why: "needs 1 slot"},
		{ID: 2, Name: "last", State: "waiting", Start: &api.Within{}},
	}}
	list := func() string {
		t.Helper()
		var out, side strings.Builder
		if err := (&psFlags{}).table(&out, &side, &doc); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	said := list()
	wantSaid(t, said, "start", within(soon, now), "no idea yet")
	for _, line := range strings.Split(said, "\n") {
		if strings.Contains(line, "next") && !strings.Contains(line, "in 10 to 20 min") {
			t.Errorf("%q, want when it starts", line)
		}
		if strings.Contains(line, " up ") && strings.Contains(line, " min") {
			t.Errorf("%q, want no start of one that runs", line)
		}
	}
	for i := range doc.Jobs {
		doc.Jobs[i].Start = nil
	}
	if said = list(); strings.Contains(said, "start") {
		t.Errorf("%s: want no column without a forecast", said)
	}
}

// Ensure that a start without times of day says the same, and marks what holds if no one else comes.
func TestPsStartBriefly(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) string { return now.Add(d).Format(time.RFC3339Nano) }
	for _, c := range []struct {
		start *api.Within
		want  string
	}{
		{nil, "-"},
		{&api.Within{}, "no idea yet"},
		{&api.Within{Known: true, Low: at(10 * time.Minute), High: at(20 * time.Minute)}, "in 10 to 20 min"},
		{&api.Within{Known: true, Low: at(0), High: at(90 * time.Second), Alone: true}, "within 90 s*"},
		{&api.Within{Known: true, Low: at(-time.Hour), High: at(0)}, "at once"},
		{&api.Within{Low: at(time.Minute), High: ""}, "in 60 s or later (from 12:01:00)"},
		{&api.Within{Low: "soon", High: at(time.Hour)}, "unknown"},
	} {
		if got := startBriefly(&api.Job{Start: c.start}, now); got != c.want {
			t.Errorf("%+v: %q, want %q", c.start, got, c.want)
		}
	}
}
