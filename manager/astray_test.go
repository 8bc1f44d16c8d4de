package manager_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/manager"
)

// Ensure that a process of a job on a GPU that the job does not hold is among the problems and in what is said of the
// job, from the first look of a manager on.
func TestAstrayIsReported(t *testing.T) {
	t.Parallel()
	r := newRig(t, "fifo", 2, "jobs: [{command: [x]}]")
	f := device.NewFake(device.Device{Name: "A", Type: "h"}, device.Device{Name: "B", Type: "h"})
	r.options.Devices = f
	s := r.serve()
	id := s.submit("jobs: [{command: WAITING}]")
	s.until(id, "running", runs)
	alive, err := shim.State(r.options.Dir).RunDir(int32(id), 1).Alive()
	if err != nil {
		t.Fatal(err)
	}
	if list := s.m.Problems(); len(list) > 0 {
		t.Errorf("problems before: %q", list)
	}
	_ = s.stop()
	f.Set("B", device.Reading{Listed: true, Processes: []device.Process{{PID: childOf(t, alive.PID), MiB: 1}}})
	s = r.serve()
	for end := time.Now().Add(time.Minute); len(s.m.Problems()) == 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // until its driver has looked
	}
	const want = "is on B, which the job does not hold: it was started without CUDA_VISIBLE_DEVICES"
	if list := s.m.Problems(); len(list) != 1 || !strings.Contains(list[0], want) {
		t.Errorf("problems %q, want one with %q", list, want)
	}
	site := manager.NewSite(s.m, nil)
	if said := site.Remark(id); !strings.Contains(said, want) || site.Astray()[id] != said {
		t.Errorf("remark %q, want %q", said, want)
	}
}

// childOf returns the process that another one started.
func childOf(t *testing.T, parent int) int {
	t.Helper()
	var text []byte
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range tasks {
		if more, failed := os.ReadFile(path); failed == nil {
			text = append(text, more...)
		}
	}
	child := 0
	if _, err = fmt.Sscan(string(text), &child); err != nil {
		t.Fatal(err, tasks)
	}
	return child
}
