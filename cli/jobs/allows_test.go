package jobs

import "testing"

// Ensure that it is seen which widths leave a job where it runs, and that what is not understood does not.
func TestAllows(t *testing.T) {
	for keys, want := range map[string]bool{"grace: 1s": true, "gpus: 2": true, "gpus: 1": false,
		`"gpus": {"min":1,"max":4}`: true, `"gpus": {"min":3,"max":4}`: false, "gpus: {min: 1, max: 1}": false,
		"gpus: many": false, "gpus: {min: 1}": false, "gpus: [": true} {
		if got := allows(keys, 2); got != want {
			t.Errorf("%s: %v, want %v", keys, got, want)
		}
	}
}
