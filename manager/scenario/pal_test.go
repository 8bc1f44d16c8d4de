package scenario

import (
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that a job of PAL leaves a slot on which its steps take longer than those of its like on others, although
// nothing was known of the slots, goes on from its checkpoint on another, and that no one else moves.
func TestPALLeavesSlowSlot(t *testing.T) {
	t.Parallel()
	s := newScene(t, "pal", device.Slots(6), map[string]string{"min_run": "0", "preempt_limit": "0", "move_cost": "0"})
	s.options.Round = 500 * time.Millisecond
	s.run()
	if err := s.m.DrainGPUs(t.Context(), []sched.GPUID{0}, true); err != nil {
		t.Fatal(err)
	}
	const train = `command: [sh, -c, 'case $TRAINYARD_DEVICES in slot-0) pace=75ms;; *) pace=25ms;; esac; exec "$0" ` +
		`--steps 100000 --report-every 1 --checkpoint-every 0 --step-time $pace', TRAINER]`
	peers := s.submit("jobs: [{name: peer, count: 4, model: net, " + train + "}]")
	for j := range sched.JobID(4) {
		n := 0
		s.await(0, "the peers have said their speed", func(e *sched.Event) bool {
			if e.Kind == sched.Progressed && e.Job == peers+j {
				n++
			}
			return n == 15
		})
	}
	if err := s.m.DrainGPUs(t.Context(), []sched.GPUID{0}, false); err != nil {
		t.Fatal(err)
	}
	job := s.submit("jobs: [{name: job, model: net, " + train + "}]")
	s.started(job, 2)
	if was, is := s.slots(job, 1), s.slots(job, 2); was[0] != "slot-0" || is[0] != "slot-5" {
		t.Errorf("it ran on %v, then on %v, want the slow slot, then the only other one", was, is)
	}
	s.await(0, "it goes on", func(e *sched.Event) bool {
		return e.Kind == sched.Progressed && e.Job == job && e.Attempt == 2 && e.Value > 0
	})
	for _, e := range s.events() {
		if e.Kind == sched.AttemptStarted && e.Job != job && e.Attempt > 1 {
			t.Errorf("job %d moved as well", e.Job)
		}
	}
}
