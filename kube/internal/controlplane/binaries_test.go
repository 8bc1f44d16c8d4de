package controlplane

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trainyard/trainyard/internal/witness"
)

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
		w := witness.See(t, func(w testing.TB) { Binaries(w, c.more) })
		if w.Skips != c.skipped || w.Fails != c.failed {
			t.Errorf("%+v: skipped %v, failed %v", c, w.Skips, w.Fails)
		}
	}
}
