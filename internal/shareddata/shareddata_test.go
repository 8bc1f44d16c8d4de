package shareddata

import (
	"path/filepath"
	"runtime"
	"testing"
)

func TestDataDirFollowsTheVariable(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(FolderVar, dir)
	if got := DataDir(t); got != dir {
		t.Errorf("DataDir = %q, want %q", got, dir)
	}
}

// witness is a testing.TB that notes how a test would have ended, instead of ending.
type witness struct {
	testing.TB
	skipped, failed bool
}

func (w *witness) Helper() {}

func (w *witness) Skipf(string, ...any) {
	w.skipped = true
	runtime.Goexit()
}

func (w *witness) Fatalf(string, ...any) {
	w.failed = true
	runtime.Goexit()
}

// end runs DataDir to its end on a goroutine of its own.
func (w *witness) end() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		DataDir(w)
	}()
	<-done
}

// Ensure that missing data skips a test, and fails it where data is required.
func TestDataDirWithoutData(t *testing.T) {
	t.Setenv(FolderVar, filepath.Join(t.TempDir(), "missing"))
	for _, required := range []string{"", "1"} {
		t.Setenv(RequireVar, required)
		w := &witness{TB: t}
		w.end()
		if w.skipped != (required == "") || w.failed != (required != "") {
			t.Errorf("%s=%q: skipped %v, failed %v", RequireVar, required, w.skipped, w.failed)
		}
	}
}
