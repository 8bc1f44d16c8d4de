package controlplane

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

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

// Ensure that missing binaries skip a test, and fail it where they are required; that all of them are looked for.
func TestBinaries(t *testing.T) {
	all := t.TempDir()
	for _, name := range append(servers, "kubectl") {
		if err := os.WriteFile(filepath.Join(all, name), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		dir, more       string
		required        string
		skipped, failed bool
	}{
		{dir: all, more: "kubectl", required: "1"},
		{dir: all, more: "kubelet", skipped: true},
		{dir: all, more: "kubelet", required: "1", failed: true},
		{dir: t.TempDir(), more: "kubectl", skipped: true},
	} {
		t.Setenv(FolderVar, c.dir)
		t.Setenv(RequireVar, c.required)
		w, done := &witness{TB: t}, make(chan struct{})
		go func() {
			defer close(done)
			Binaries(w, c.more)
		}()
		<-done
		if w.skipped != c.skipped || w.failed != c.failed {
			t.Errorf("%+v: skipped %v, failed %v", c, w.skipped, w.failed)
		}
	}
}
