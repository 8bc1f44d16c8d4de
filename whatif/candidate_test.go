package whatif

import (
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Ensure that a job that has run already is offered no wall time that is over, and one that has not all three.
func TestShorterWallTimes(t *testing.T) {
	const hour = time.Hour
	for done, want := range map[time.Duration][]time.Duration{
		0: {3 * hour, 2 * hour, hour}, 2 * hour: {3 * hour}, 3 * hour: nil,
	} {
		var got []time.Duration
		for _, s := range candidates(&sched.View{}, &sched.JobSpec{WallTime: 4 * hour}, done, ShorterWallTime) {
			got = append(got, s.WallTime)
		}
		if !slices.Equal(got, want) {
			t.Errorf("done %v: %v, want %v", done, got, want)
		}
	}
}
