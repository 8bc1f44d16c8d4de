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
