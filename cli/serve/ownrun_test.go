package serve

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Ensure that a new folder is never one that is there, and that what hinders it is reported.
func TestNewFolder(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a-1")
	for _, want := range []string{name + ".state", name + "-2.state", name + "-3.state"} {
		if dir, err := newFolder(name); err != nil || dir != want {
			t.Errorf("%s, %v, want %s", dir, err, want)
		}
	}
	if info, err := os.Stat(name + "-3.state"); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v, want mode 0700", info, err)
	}
	if _, err := newFolder(filepath.Join(name, "nowhere", "b")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in no folder: %v", err)
	}
}
