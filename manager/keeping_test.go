package manager_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/local/shim"
)

// Ensure that a manager which keeps runs for a time removes those that are older by itself, again and again, and
// neither what runs nor checkpoints; and that one which was not asked to removes nothing.
func TestKeepRemoves(t *testing.T) {
	t.Parallel()
	r := newRig(t, "fifo", 2, "jobs: [{command: [x]}]")
	run := func(id int32) string { return string(shim.State(r.options.Dir).RunDir(id, 1)) }
	there := func(path string) bool {
		_, missing := os.Lstat(path)
		return missing == nil
	}
	s := r.serve()
	s.submit("jobs: [{command: [sh, -c, 'until [ -e " + r.dir + "/go ]; do sleep 0.02; done']}, " +
		"{command: [sh, -c, 'echo kept > $TRAINYARD_CHECKPOINT_DIR/x']}]")
	s.until(0, "running", runs)
	s.until(1, "done", done)
	_ = s.stop()
	if !there(run(1)) {
		t.Error("removed although nothing says so")
	}
	r.options.Keep = time.Millisecond
	s = r.serve()
	gone := func(id int32) {
		for deadline := time.Now().Add(time.Minute); there(run(id)); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the run of job %d is there still", id)
			}
		}
	}
	gone(1)
	if !there(run(0)) {
		t.Error("the run of a job that runs was removed")
	}
	if kept, _ := filepath.Glob(filepath.Join(r.options.Dir, "jobs", "1", "*", "x")); len(kept) != 1 {
		t.Errorf("checkpoints %q, want the one", kept)
	}
	r.goOn()
	s.until(0, "done", done)
	gone(0) // at a later turn of the loop
}
