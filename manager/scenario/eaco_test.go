package scenario

import (
	"testing"

	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that EaCO puts a job on a slot that another uses, takes it off when an epoch there takes longer than its limit
// allows, at the end of an epoch, and lets it run there once it is alone. The job is slow next to others on purpose.
// The first one has a wall time so long that nothing is slow for it.
func TestEaCOUndoesTrial(t *testing.T) {
	t.Parallel()
	slot := device.NewFake(device.Device{Name: "slot-0", Type: "cpu", MemoryGB: 16})
	s := newScene(t, "eaco", slot, map[string]string{"min_run": "0"}).run()
	first := s.submit(`defaults: {share: allow, gpu_use: 0.3, gpu_memory_gb: 2, model: net}
jobs: [{name: first, epochs: 12, wall_time: 60s, command: [TRAINER, --steps, 60, --epoch-steps, 5, --report-every, 1, --step-time, 100ms]}]`)
	s.started(first, 1)
	second := s.submit(`defaults: {share: allow, gpu_use: 0.3, gpu_memory_gb: 2, model: net2}
jobs: [{name: second, epochs: 4, wall_time: 4s, command: [sh, -c, 'pace=600ms; if [ -e alone ]; then pace=50ms; fi; exec "$0" --steps 20 --epoch-steps 5 --report-every 1 --step-time $pace', TRAINER]}]`)
	joined := s.started(second, 1)
	epoch := s.await(joined, "an epoch of the second ended", func(e *sched.Event) bool {
		return e.Kind == sched.EpochEnded && e.Job == second
	})
	undone := s.await(joined, "the second is taken off", func(e *sched.Event) bool {
		return e.Kind == sched.Decided && e.Job == second && e.Target != nil && len(e.GPUs) == 0
	})
	s.let("alone")
	ended := s.finished(first)
	again := s.started(second, 2)
	s.finished(second)
	if !(joined < epoch && epoch < undone && undone < ended && ended < again) {
		t.Errorf("joined at event %d, an epoch ended at %d, undone at %d, the first ended at %d, alone from %d on: "+
			"want that order", joined, epoch, undone, ended, again)
	}
	log := s.events()
	if d := log[undone]; d.Target.Why.Code != sched.WhyUndone || d.Time != log[epoch].Time {
		t.Errorf("taken off at %v because of %v, want it undone at the end of the epoch at %v", d.Time, d.Target.Why,
			log[epoch].Time)
	}
	if slots := s.slots(second, 1); len(slots) != 1 || slots[0] != "slot-0" {
		t.Errorf("the second ran on %v, want the slot of the first", slots)
	}
}

// Ensure that EaCO has jobs share a plain slot of this machine, of whose memory each takes a part.
func TestEaCOSharesSlots(t *testing.T) {
	t.Parallel()
	s := newScene(t, "eaco", device.Host(1), map[string]string{"min_run": "0"}).run()
	const job = "share: allow, gpu_use: 0.3, gpu_memory_gb: 0.1, epochs: 2, wall_time: 60s, command: "
	first := s.submit("jobs: [{name: first, model: net, " + job + until("go") + "}]")
	s.started(first, 1)
	second := s.submit("jobs: [{name: second, model: net2, " + job + until("go") + "}]")
	s.started(second, 1)
	s.let("go")
	s.finished(first)
	s.finished(second)
}
