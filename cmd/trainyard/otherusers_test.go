package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/cli/term"
)

// Ensure that no one serves a folder that another user owns or can write, or in the place of which he can put another,
// nor opens what runs as root to a group; and that each is named.
func TestServeRefusesOthersFolders(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to give folders away")
	}
	t.Parallel()
	const stranger = 12345
	jobs := filepath.Join(t.TempDir(), "jobs.yaml")
	if err := os.WriteFile(jobs, []byte("jobs: [{command: ['true']}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spoil func(parent, state string) error
		says  string
		run   bool // refused to `run` as well
	}{
		"owner": {func(_, state string) error {
			return os.Chown(state, stranger, -1)
		}, "belongs to uid:12345", true},
		"mode": {func(_, state string) error { return os.Chmod(state, 0o777) }, "all may write it", true},
		"parent": {func(parent, _ string) error {
			return os.Chown(parent, stranger, -1)
		}, "belongs to uid:12345", false},
	} {
		parent := t.TempDir()
		state := filepath.Join(parent, "state")
		_, _ = trainyard(t, term.ExitOK, "run", jobs, "--slots", "1", "--state", state)
		if err := c.spoil(parent, state); err != nil {
			t.Fatal(err)
		}
		_, said := trainyard(t, term.ExitPermission, "serve", "--slots", "1", "--state", state)
		if !strings.Contains(said, c.says) {
			t.Errorf("%s: %s, want %q", name, said, c.says)
		}
		if c.run {
			_, _ = trainyard(t, term.ExitPermission, "run", jobs, "--slots", "1", "--state", state)
		}
	}
	_, said := trainyard(t, term.ExitRefused, "serve", "--slots", "1", "--group", "100", "--state", t.TempDir())
	if !strings.Contains(said, "serves as root") {
		t.Error(said)
	}
}
