package shareddata

import (
	"path/filepath"
	"testing"
)

func TestDataDirFollowsTheVariable(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(FolderVar, dir)
	if got := DataDir(t); got != dir {
		t.Errorf("DataDir = %q, want %q", got, dir)
	}
}

func TestDataDirSkipsWithoutData(t *testing.T) {
	t.Setenv(FolderVar, filepath.Join(t.TempDir(), "missing"))
	t.Setenv(RequireVar, "")
	skipped := false
	t.Run("inner", func(t *testing.T) {
		defer func() { skipped = t.Skipped() }()
		DataDir(t)
		t.Error("DataDir returned without data")
	})
	if !skipped {
		t.Error("DataDir did not skip")
	}
}
