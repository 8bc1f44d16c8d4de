package pipeline

import (
	"slices"
	"testing"

	"github.com/trainyard/trainyard/sched"
)

// Ensure that holders are named by rank, the best first, and those without one last.
func TestRankedHolders(t *testing.T) {
	got := rankedHolders([]sched.JobID{7, 3, 9, 1}, []sched.JobID{1, 2, 3, 4, 7})
	if want := []sched.JobID{7, 3, 1, 2, 4}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
