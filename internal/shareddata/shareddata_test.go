package shareddata

import (
	"path/filepath"
	"testing"

	"github.com/trainyard/trainyard/internal/witness"
)

func TestDataDirFollowsTheVariable(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(FolderVar, dir)
	if got := DataDir(t); got != dir {
		t.Errorf("DataDir = %q, want %q", got, dir)
	}
}

// Ensure that missing data skips a test, and fails it where data is required.
func TestDataDirWithoutData(t *testing.T) {
	t.Setenv(FolderVar, filepath.Join(t.TempDir(), "missing"))
	for _, required := range []string{"", "1"} {
		t.Setenv(RequireVar, required)
		w := witness.See(t, func(w testing.TB) { DataDir(w) })
		if w.Skips != (required == "") || w.Fails != (required != "") {
			t.Errorf("%s=%q: skipped %v, failed %v", RequireVar, required, w.Skips, w.Fails)
		}
	}
}
