package local

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that a process of a job on a GPU that the job does not hold is reported with its likely cause, whether the GPU
// is free or another job's, and no longer once it has left; and that none is on its own.
func TestTrespass(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ start, want string }{
		"dropped": {"env -u CUDA_VISIBLE_DEVICES sleep 1000", "it was started without CUDA_VISIBLE_DEVICES"},
		"kept":    {"CUDA_VISIBLE_DEVICES=x sleep 1000", "CUDA_VISIBLE_DEVICES was as given when it was started"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := pair()
			pid := filepath.Join(t.TempDir(), "pid")
			list, _ := jobs(t, time.Second, c.start+" & echo $! > "+pid+".new; mv "+pid+".new "+pid+"; wait")
			d, err := New(Options{State: stateOf(folder(t)), Epoch: 1, Origin: time.Now(), Node: "here", Devices: f,
				Jobs: list, Shim: shimOf(t)})
			if err != nil {
				t.Fatal(err)
			}
			d.hurry()
			t.Cleanup(d.Close)
			h := take(t, d, sched.View{})
			h.arrivals(1)
			h.apply(start(0, 1, 0))
			h.await(sched.AttemptStarted, 0)
			h.until("its process", func() bool { _, missing := os.Stat(pid); return missing == nil })
			text, err := os.ReadFile(pid)
			if err != nil {
				t.Fatal(err)
			}
			child, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			h.until("its program", func() bool { // the shell has become it
				comm, _ := os.ReadFile("/proc/" + strconv.Itoa(child) + "/comm")
				return string(comm) == "sleep\n"
			})
			f.Set("A", by(child))
			f.Set("B", by(child))
			seen := func() []device.Trespasser { return d.Status()[1].Trespassers }
			h.until("the report", func() bool { return len(seen()) == 1 })
			if got := seen()[0]; got.Job != 0 || got.PID != child || !strings.HasPrefix(got.Cause, c.want) {
				t.Errorf("%+v, want %s", got, c.want)
			}
			if own := d.Status()[0].Trespassers; len(own) > 0 {
				t.Errorf("%+v on its own GPU", own)
			}
			f.Set("B", by())
			h.until("the end of the report", func() bool { return len(seen()) == 0 })
		})
	}
}
