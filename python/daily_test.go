//go:build !invariants

package python

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Ensure that a day of a user ends as it should: launchers, an array of Slurm, a terminal, and a training that is
// stopped while the manager is killed.
func TestDaily(t *testing.T) {
	if missing := lacking(); missing != "" {
		t.Skip(missing)
	}
	binary, err := builds()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "/bin/sh", "../examples/daily/daily.sh", filepath.Dir(binary),
		t.TempDir(), interpreter).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "all is as it should be") {
		t.Errorf("%v\n%s", err, out)
	}
}
