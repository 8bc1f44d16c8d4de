package scenario

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

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

// pid waits for the number of a process that a job has written to a file.
func (s *scene) pid(name string) int {
	s.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		b, _ := os.ReadFile(filepath.Join(s.dir, name))
		if n, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
			return n
		}
	}
	s.Fatalf("no process wrote its number to %s", name)
	return 0
}

// use has processes have so much memory, in GB, of a fake GPU.
func (s *scene) use(gpu *device.Fake, of map[int]float64) {
	r := device.Reading{Use: .8, Watts: 300, Joules: device.Unknown, Listed: true}
	for pid, gb := range of {
		r.UsedMiB += 1024 * gb
		r.Processes = append(r.Processes, device.Process{PID: pid, MiB: 1024 * gb})
	}
	gpu.Set("A", r)
}

// sharer is the part of a job file of a job that states 18 GB. It writes the number of its process to a file named as
// it is, and ends, with the exit code in there, once there is a file go- and that name.
func sharer(name string) string {
	return "share: allow, gpu_use: 0.3, gpu_memory_gb: 18, epochs: 2, wall_time: 600s, command: " +
		"[sh, -c, 'echo $TRAINYARD_GPU_MEMORY_MIB; echo $$ > " + name + "; until [ -s go-" + name +
		" ]; do sleep 0.05; done; exit $(cat go-" + name + ")']"
}

// ends has a sharer end with an exit code.
func (s *scene) ends(name string, code int) {
	s.Helper()
	part := filepath.Join(s.dir, "part-"+name)
	err := os.WriteFile(part, []byte(strconv.Itoa(code)), 0o600)
	if err = errors.Join(err, os.Rename(part, filepath.Join(s.dir, "go-"+name))); err != nil {
		s.Fatal(err)
	}
}

// Ensure that two jobs share a fake GPU by the memory that they state, that the one which has more than it stated is
// taken off when all no longer fits, at no retry, while the other runs on and hears why, that it comes back alone, and
// that both answer for all that the GPU draws while they hold it.
func TestTooMuchMemoryOnSharedGPU(t *testing.T) {
	t.Parallel()
	gpu := device.NewFake(device.Device{Name: "A", Type: "h", MemoryGB: 40})
	s := newScene(t, "eaco", gpu, map[string]string{"min_run": "0", "unsaved": "stop"})
	s.options.Look = 20 * time.Millisecond
	s.run()
	use := func(of map[int]float64) { s.use(gpu, of) }
	first := s.submit("jobs: [{name: first, model: net, " + sharer("first") + "}]")
	one := s.pid("first")
	use(map[int]float64{one: 17})
	s.await(0, "the power of the machine is measured", func(e *sched.Event) bool {
		return e.Kind == sched.Measured && e.Job == sched.None && e.Value > 0
	})
	s.await(0, "the memory of the first is measured", func(e *sched.Event) bool {
		return e.Kind == sched.Measured && e.Job == first && e.MemGB == 17
	})
	second := s.submit("jobs: [{name: second, model: net2, " + sharer("second") + "}]")
	two := s.pid("second")
	joined := s.started(second, 1)
	use(map[int]float64{one: 17, two: 25})
	undone := s.await(joined, "the second is taken off", func(e *sched.Event) bool {
		return e.Kind == sched.Decided && e.Job == second && e.Target != nil && len(e.GPUs) == 0
	})
	use(map[int]float64{one: 17}) // a GPU is free once it shows no process that is gone
	noted := s.await(joined, "the first hears why", func(e *sched.Event) bool {
		return e.Kind == sched.Noted && e.Job == first
	})
	ended := s.await(undone, "the second ends", func(e *sched.Event) bool {
		return e.Kind == sched.AttemptEnded && e.Job == second
	})
	log := s.events()
	if w := log[undone].Target.Why; w.Code != sched.WhyUndone || w.Job != first || w.A != 25 {
		t.Errorf("taken off because of %+v, want 25 GB next to the first", w)
	}
	if w := log[noted].Why; w.Code != sched.WhyKept || w.Job != second || w.A != 25 {
		t.Errorf("the first hears %+v, want 25 GB of the second", w)
	}
	if log[ended].Outcome != sched.Preempted {
		t.Errorf("the second ended %v, want no failure", log[ended].Outcome)
	}
	if out := s.output(second, 1); out != "18432\n" {
		t.Errorf("the second was given %q MiB, want 18432", out)
	}
	use(nil)
	s.ends("first", 0)
	over := s.finished(first)
	if again := s.started(second, 2); again < over {
		t.Errorf("the second started again at event %d, the first ended at %d", again, over)
	}
	s.ends("second", 0)
	s.finished(second)
	s.stop()
	res, jobs := s.m.Result()
	charged := float64(jobs[first].Energy + jobs[second].Energy)
	if want := res.EnergyBusy * 3.6e6; !(want > 0) || math.Abs(charged-want) > 1e-9*want {
		t.Errorf("the jobs answer for %v J, the meter says %v", charged, want)
	}
	if jobs[first].PeakGB != 17 || jobs[second].PeakGB != 25 {
		t.Errorf("peaks of %v and %v GB, want 17 and 25", jobs[first].PeakGB, jobs[second].PeakGB)
	}
}

// Ensure that a job which fails for want of memory of a GPU, before anyone has looked, because the one next to it has
// more than it stated, spends no retry, of which it has none, hears why, and starts again once that one is gone.
func TestStarvedOnSharedGPU(t *testing.T) {
	t.Parallel()
	gpu := device.NewFake(device.Device{Name: "A", Type: "h", MemoryGB: 40})
	s := newScene(t, "eaco", gpu, map[string]string{"min_run": "0", "unsaved": "stop"})
	s.options.Look = time.Hour // after the first
	s.run()
	first := s.submit("jobs: [{name: first, model: net, " + sharer("first") + "}]")
	one := s.pid("first")
	s.use(gpu, map[int]float64{one: 17})
	second := s.submit("jobs: [{name: second, model: net2, " + sharer("second") + "}]")
	two := s.pid("second")
	s.started(second, 1)
	s.use(gpu, map[int]float64{two: 25}) // the first is gone when it is looked
	s.ends("first", 1)
	ended := s.await(0, "the first ends", func(e *sched.Event) bool {
		return e.Kind == sched.AttemptEnded && e.Job == first
	})
	if e := s.events()[ended]; e.Outcome != sched.NodeLost || !strings.HasPrefix(e.Text, "job 1 next to it had 25 GB") {
		t.Errorf("the first ended %v, %q, want it not to be its fault", e.Outcome, e.Text)
	}
	if err := os.Remove(filepath.Join(s.dir, "go-first")); err != nil {
		t.Fatal(err)
	}
	s.ends("second", 0)
	s.use(gpu, nil)
	over := s.finished(second)
	if again := s.started(first, 2); again < over {
		t.Errorf("the first started again at event %d, the second ended at %d", again, over)
	}
	s.ends("first", 0)
	s.await(ended+1, "the first has finished", func(e *sched.Event) bool {
		return e.Kind == sched.AttemptEnded && e.Job == first && e.Outcome == sched.Finished
	})
}
