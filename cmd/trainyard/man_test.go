package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Ensure that each command has a man page with its flags, and that man has nothing to say against them, where it is.
func TestManPages(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "man1")
	var out, errs strings.Builder
	if code := run(t.Context(), []string{"man", dir}, &out, &errs); code != 0 {
		t.Fatal(errs.String())
	}
	pages, err := filepath.Glob(dir + "/*.1")
	if err != nil || len(pages) < 40 {
		t.Fatal(pages, err)
	}
	b, err := os.ReadFile(dir + "/trainyard-submit.1")
	if err != nil || !strings.Contains(string(b), "\n.TP\n\\fB\\-\\-gpu\\-type\\fR \\fINAME") {
		t.Errorf("%s, %v, want --gpu-type", b, err)
	}
	man, err := exec.LookPath("man")
	if err != nil {
		return // it is no part of what is needed to build
	}
	cmd := exec.CommandContext(t.Context(), man, append([]string{"--warnings", "-P", "cat", "-l"}, pages...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "MANWIDTH=80", "MAN_KEEP_FORMATTING=")
	cmd.Stderr = &errs
	text, err := cmd.Output()
	if err != nil || errs.Len() > 0 || !strings.Contains(string(text), "--gpu-type") {
		t.Errorf("man: %v: %s; %d bytes", err, errs.String(), len(text))
	}
}
