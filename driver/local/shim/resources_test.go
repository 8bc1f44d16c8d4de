package shim

import (
	"strings"
	"testing"

	"github.com/trainyard/trainyard/driver/local/procs"
)

// Ensure that a job that takes more memory than it may ends, and says how much it had of what, that one within its
// limits does not notice them, and that one that must be held to them does not run where it cannot be.
func TestResources(t *testing.T) {
	t.Parallel()
	can := procs.CanLimit(procs.Root())
	state := State(t.TempDir())
	o := sh(state, "head -c 300000000 /dev/zero | tail -c 299999999 > /dev/null; exit 3")
	o.Limits = &Resources{CPUs: 1, Memory: 64 << 20}
	over := begin(t, o).over()
	if over.Code != 3 || can != strings.HasPrefix(over.Text, "out of memory: used 6") ||
		can != strings.HasSuffix(over.Text, " MiB of 64.0 MiB") {
		t.Errorf("limits %v: %+v", can, over)
	}
	o = sh(state, "exit 3")
	o.Attempt, o.Limits = 2, &Resources{CPUs: 0.5, Memory: 1 << 30, Must: true}
	if over = begin(t, o).over(); can && (over.Code != 3 || over.Text != "") || !can && over.Code != 126 {
		t.Errorf("limits %v: %+v", can, over)
	}
}
