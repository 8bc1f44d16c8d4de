package manager

import (
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Ensure that a forecast of a job is kept once a minute, and that nothing is remembered of jobs that no one asks about
// any more: a manager sees millions.
func TestForetoldForgets(t *testing.T) {
	t.Parallel()
	var f foretold
	second := sched.Time(time.Second)
	for id := range sched.JobID(10 * mostForetold) {
		now := sched.Time(id) * second
		if !f.due(id, now) {
			t.Fatalf("job %d is not due, of which none was kept", id)
		}
		f.note(id, now)
		if f.due(id, now+59*second) || !f.due(id, now+60*second) {
			t.Fatalf("job %d: due within a minute, or not after it", id)
		}
	}
	if len(f.last) > mostForetold {
		t.Errorf("%d jobs are remembered, want %d at most", len(f.last), mostForetold)
	}
}
