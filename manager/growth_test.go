package manager_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that slots which joined later are given to jobs by each kind of system, those that score GPUs by their numbers
// among them, and that what may be submitted follows the slots there are.
func TestJoinedSlotsAreUsed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"fifo", "tiresias-las", "pal", "pm-first", "elastic", "pollux", "eaco"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, name, 1, "jobs: [{command: [x]}]")
			if name != "eaco" { // which has no rounds
				r.options.Round = 20 * time.Millisecond
			}
			s := r.serve()
			wide := r.list("jobs: [{command: ['true'], gpus: 2}]")
			if _, err := s.m.Submit(t.Context(), wide); !errors.Is(err, api.ErrRefused) ||
				!strings.Contains(err.Error(), "there are 1") {
				t.Errorf("%v, want it refused: there is one slot", err)
			}
			s.submit("jobs: [{command: [sh, -c, 'until [ -e " + r.dir + "/go ]; do sleep 0.02; done']}]")
			s.until(0, "running", runs)
			_ = s.stop()

			r.options.Devices = device.Slots(2)
			s = r.serve()
			s.submit("jobs: [{command: ['true']}]")
			if row := s.until(1, "done", done); row.Outcome != sched.Finished {
				t.Errorf("%+v", row)
			}
			r.goOn()
			s.until(0, "done", done)
			if _, err := s.m.Submit(t.Context(), wide); err != nil {
				t.Fatal(err)
			}
			if row := s.until(2, "done", done); row.Outcome != sched.Finished {
				t.Errorf("%+v", row)
			}
			_ = s.stop()

			r.options.Devices = device.Slots(1)
			s = r.serve()
			if err := s.m.ForgetGPUs(t.Context(), []sched.GPUID{0}); !errors.Is(err, api.ErrInUse) {
				t.Errorf("%v, want in use", err)
			}
			if err := s.m.ForgetGPUs(t.Context(), []sched.GPUID{1}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.m.Submit(t.Context(), wide); !errors.Is(err, api.ErrRefused) {
				t.Errorf("%v, want it refused", err)
			}
		})
	}
}

// goOn lets the jobs end that wait for the file go.
func (r *rig) goOn() {
	r.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, "go"), nil, 0o600); err != nil {
		r.Fatal(err)
	}
}
