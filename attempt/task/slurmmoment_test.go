package task

import (
	"testing"
	"time"
)

// Ensure that points in time are read as Slurm reads them, to the side of now that is meant, and that what is none, or
// beyond what a time can hold, is refused.
func TestParseSlurmMoment(t *testing.T) {
	now := time.Date(2026, 11, 28, 15, 30, 0, 0, time.UTC)
	for text, want := range map[string][2]string{ // the next, the last
		"now":                 {"2026-11-28T15:30:00", "2026-11-28T15:30:00"},
		"now+2hours":          {"2026-11-28T17:30:00", "2026-11-28T17:30:00"},
		"now+90":              {"2026-11-28T15:31:30", "2026-11-28T15:31:30"},
		"now-1day":            {"2026-11-27T15:30:00", "2026-11-27T15:30:00"},
		"today":               {"2026-11-28T15:30:00", "2026-11-28T00:00:00"},
		"tomorrow":            {"2026-11-29T00:00:00", "2026-11-29T00:00:00"},
		"midnight":            {"2026-11-29T00:00:00", "2026-11-28T00:00:00"},
		"noon":                {"2026-11-29T12:00:00", "2026-11-28T12:00:00"},
		"16:00":               {"2026-11-28T16:00:00", "2026-11-27T16:00:00"},
		"09:10:11":            {"2026-11-29T09:10:11", "2026-11-28T09:10:11"},
		"1201":                {"2026-12-01T00:00:00", "2025-12-01T00:00:00"},
		"02/03":               {"2027-02-03T00:00:00", "2026-02-03T00:00:00"},
		"02/03/24":            {"2024-02-03T00:00:00", "2024-02-03T00:00:00"},
		"2026-01-31":          {"2026-01-31T00:00:00", "2026-01-31T00:00:00"},
		"2026-01-31T16:00:05": {"2026-01-31T16:00:05", "2026-01-31T16:00:05"},
	} {
		for i, past := range []bool{false, true} {
			got, err := ParseSlurmMoment(text, now, past)
			if err != nil || got.Format("2006-01-02T15:04:05") != want[i] {
				t.Errorf("%s, past %v: %v, %v, want %s", text, past, got, err, want[i])
			}
		}
	}
	for _, text := range []string{"", "soon", "now+", "now+-3", "now*3", "now+3moons", "now+9223372036854775807weeks",
		"now+99999999999999999999", "now+9223372036854775807days", "25:00", "1340", "2026-13-01", "nowadays"} {
		if got, err := ParseSlurmMoment(text, now, false); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
}
