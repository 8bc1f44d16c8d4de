package ui

import (
	"os"
	"path/filepath"
	"testing"
)

// Ensure that the file with the secret of a link that a browser opens does not outlive the verb, whether it is opened
// or not.
func TestOpenLinkLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	for _, program := range []string{"", "#!/bin/sh\n"} {
		bin := t.TempDir()
		t.Setenv("PATH", bin)
		for _, name := range []string{"xdg-open", "open"} {
			if program == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(bin, name), []byte(program), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		clean, err := openLink(t.Context(), "http://127.0.0.1:1/#k=secret")
		if (err == nil) != (program != "") {
			t.Errorf("program %q: %v", program, err)
		}
		clean()
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("program %q: %v is left, %v", program, left, err)
		}
	}
}
