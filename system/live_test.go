package system_test

import (
	"fmt"
	"testing"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/system"
)

// Ensure that a log goes on with the keys under which it started: those that came later and keep no one's work hold
// where it is asked for them, and in new logs.
func TestLiveDefaultsOf(t *testing.T) {
	const kept = "keep_free:on loss_rail:on min_run:auto preempt_limit:6 "
	own := map[string]string{"priority": "own"}
	for _, x := range []struct {
		since int
		given map[string]string
		want  string
	}{
		{0, nil, "map[" + kept + "priority:classes unsaved:leave]"},
		{0, own, "map[" + kept + "priority:own unsaved:leave]"},
		{1, nil, "map[" + kept + "unsaved:leave]"},
		{2, nil, "map[" + kept + "unsaved:leave]"},
		{2, map[string]string{"priority": "classes"}, "map[" + kept + "priority:classes unsaved:leave]"},
		{3, nil, "map[" + kept + "priority:classes unsaved:leave]"},
	} {
		got, err := system.LiveDefaultsOf(&eventlog.Header{Since: x.since}, "tiresias-las", x.given)
		if err != nil || fmt.Sprint(got) != x.want {
			t.Errorf("log of schema %d, given %v: %v, %v, want %s", x.since, x.given, got, err, x.want)
		}
	}
	if got, err := system.LiveDefaultsOf(&eventlog.Header{}, "nosuch", nil); err == nil {
		t.Errorf("settings %v of a system that is not known", got)
	}
}

// Ensure that settings mean what a log of before has where they differ by what it could not know alone.
func TestAlike(t *testing.T) {
	header := func(since int, priority string) *eventlog.Header {
		h := &eventlog.Header{System: "fifo", Since: since, Settings: map[string]string{"min_run": "auto"}}
		if priority != "" {
			h.Settings["priority"] = priority
		}
		return h
	}
	for _, x := range []struct {
		since          int
		logged, wanted string
		serve, run     bool
	}{
		{2, "", "", true, true},
		{2, "", "own", true, true},
		{2, "", "classes", false, true},
		{2, "own", "own", true, true},
		{2, "classes", "classes", true, true},
		{2, "ignore", "ignore", true, true},
		{2, "classes", "", false, false},
		{2, "own", "classes", false, false},
		{0, "classes", "classes", true, true},
		{0, "classes", "own", false, false},
	} {
		for run, want := range map[bool]bool{false: x.serve, true: x.run} {
			got := system.Alike(header(x.since, x.logged), header(0, x.wanted).Settings, run)
			if got != want {
				t.Errorf("schema %d, logged %q, wanted %q, run %v: alike is %v", x.since, x.logged, x.wanted, run, got)
			}
		}
	}
}
