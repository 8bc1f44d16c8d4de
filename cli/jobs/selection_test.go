package jobs

import (
	"strings"
	"testing"

	"github.com/trainyard/trainyard/api"
)

// Ensure that verbs about one job find a task of an array by its number, also once it is done, and leave names alone.
func TestOneTask(t *testing.T) {
	list := []api.Job{{ID: 0, Name: "7_3"}, {ID: 16, State: "done", Array: &api.Task{First: 16, Index: 2}},
		{ID: 17, State: "running", Array: &api.Task{First: 16, Index: 5}}}
	for _, c := range []struct{ arg, want, bad string }{
		{arg: "16_2", want: "16"}, {arg: "16_5", want: "17"}, {arg: "7_3", want: "7_3"}, {arg: "16", want: "16"},
		{arg: "16_3", bad: "no such job"}, {arg: "16_*", bad: "means 2 jobs, want one"},
		{arg: "16_x", bad: "want tasks"},
	} {
		got, err := oneOf(list, c.arg)
		if got != c.want || (err != nil) != (c.bad != "") || err != nil && !strings.Contains(err.Error(), c.bad) {
			t.Errorf("%s: %q, %v; want %q, %q", c.arg, got, err, c.want, c.bad)
		}
	}
}
