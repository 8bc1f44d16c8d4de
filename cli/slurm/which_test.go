package slurm

import "testing"

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
