package slurm

import (
	"errors"
	"fmt"
	"testing"

	"github.com/trainyard/trainyard/api"
)

// Ensure that a selector with nothing in it is an error, not all jobs, and that nothing given means no job.
func TestEmptySelectors(t *testing.T) {
	none := given{"-x", nil}
	for _, values := range [][]string{{""}, {","}, {" , "}, {"", ""}} {
		empty := given{"-x", values}
		for i, all := range [][4]given{{empty, none, none, none}, {none, empty, none, none}, {none, none, empty, none},
			{none, none, none, empty}} {
			if _, err := newWhich(all[0], all[1], all[2], all[3]); err == nil {
				t.Errorf("selector %d of %q: no error", i, values)
			}
		}
	}
	w, err := newWhich(none, none, none, none)
	if found, failed := w.find(t.Context(), nil); err != nil || failed != nil || len(found) != 0 {
		t.Errorf("nothing given: %v, %v, %v, want no jobs", found, err, failed)
	}
}

// Ensure that columns are at most 9999 wide.
func TestWidthsAreCapped(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "12": 12, "9999": 9999, "1000000000": 9999} {
		if got, err := parseWidth(text); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-5", "+5", "x", "99999999999999999999"} {
		if got, err := parseWidth(text); err == nil {
			t.Errorf("%q: %d, want an error", text, got)
		}
	}
}

// Ensure that tasks of an array which something does not apply to are errors only where it was done with none that the
// argument means, and then one error, of the first; that others stay, and that errors name tasks as users do.
func TestTasksArePassedOver(t *testing.T) {
	done := &api.Problem{Detail: `job "6": done already (finished)`}
	away := errors.New("away")
	for _, tt := range []struct {
		jobs  []string
		wrong []error // of 6_0, 6_1, 6_2
		want  string
	}{
		{[]string{"6"}, []error{conflict("a"), nil, conflict("b")}, ""},
		{[]string{"6"}, []error{conflict("a"), conflict("b"), conflict("b")}, "scontrol: a"},
		{[]string{"6", "6_2"}, []error{conflict("a"), nil, conflict("b")}, "scontrol: b"},
		{[]string{"6_0", "6_2"}, []error{conflict("a"), nil, conflict("b")}, "scontrol: a\nscontrol: b"},
		{[]string{"6_[0-1]", "6_2"}, []error{conflict("a"), nil, nil}, ""},
		{[]string{"6"}, []error{errOver, conflict("b"), errOver}, "scontrol: b"},
		{[]string{"6"}, []error{errOver, errOver, errOver}, ""},
		{[]string{"6"}, []error{away, nil, conflict("b")}, "away"},
		{nil, []error{conflict("a"), nil, errOver}, "scontrol: a"},
		{[]string{"6"}, []error{fmt.Errorf("%w%w", api.ErrDone, done), nil, nil}, ""},
		{[]string{"6_0"}, []error{errors.Join(api.ErrDone, done), nil, nil}, "job 6_0: done already (finished)"},
	} {
		lines := make([]line, len(tt.wrong))
		for i := range lines {
			lines[i].ID, lines[i].Array = 6+i, &api.Task{First: 6, Index: i}
		}
		w, got := which{jobs: tt.jobs}, ""
		w.settle(lines, tt.wrong)
		if err := errors.Join(tt.wrong...); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%v: %q, want %q", tt.jobs, got, tt.want)
		}
	}
}
