package jobs

import (
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
)

// Ensure that intervals are reported as exactly as they are known, and no more so.
func TestWithin(t *testing.T) {
	now := time.Date(2026, 5, 4, 13, 0, 0, 0, time.Local)
	at := func(d time.Duration) string { return now.Add(d).UTC().Format("2006-01-02T15:04:05.000Z") }
	for _, c := range []struct {
		low, high time.Duration // < 0 = not in view
		want      string
	}{
		{70 * time.Minute, 200 * time.Minute, "in 1 to 3 h (14:10 to 16:20)"},
		{9*time.Minute + 50*time.Second, 10*time.Minute + 20*time.Second, "in about 10 min (13:09 to 13:10)"},
		{0, 40 * time.Minute, "within 40 min (13:00 to 13:40)"},
		{5 * time.Second, 65 * time.Second, "in 5 to 65 s (13:00:05 to 13:01:05)"},
		{time.Hour, 50 * time.Hour, "within 2 days (14:00 to 6 May 15:00)"},
		{70 * time.Minute, -1, "in 70 min or later (from 14:10)"},
		{0, -1, "at once or any time later"},
		{0, 10 * time.Millisecond, "at once"},
		{-1, -1, "unknown"},
	} {
		w := &api.Within{Known: true, Low: at(c.low), High: at(c.high)}
		if c.low < 0 {
			w.Low = ""
		}
		if c.high < 0 {
			w.High = ""
		}
		if got := within(w, now); got != c.want {
			t.Errorf("%v to %v: %q, want %q", c.low, c.high, got, c.want)
		}
	}
	if got := within(&api.Within{}, now); got != "no idea yet" {
		t.Errorf("%q of nothing known", got)
	}
	old := &api.Within{Low: at(0), High: at(time.Minute)} // of a manager that says no more
	if got := within(old, now); got != "within 60 s (13:00:00 to 13:01:00)" {
		t.Errorf("%q of an interval", got)
	}
	if old.Alone = true; within(old, now) != "within 60 s (13:00:00 to 13:01:00) if no one else comes" {
		t.Errorf("%q of one that holds if no one else comes", within(old, now))
	}
	if got := within(nil, now); got != "unknown" {
		t.Errorf("%q of nothing", got)
	}
}
