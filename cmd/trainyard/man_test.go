package main

import (
	"errors"
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
	shown := func(pages ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), man, append([]string{"--warnings", "-P", "cat", "-l"}, pages...)...)
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "MANWIDTH=80", "MAN_KEEP_FORMATTING=")
		var text, errs strings.Builder
		cmd.Stdout, cmd.Stderr = &text, &errs
		err := cmd.Run()
		if errs.Len() > 0 {
			err = errors.Join(err, errors.New(errs.String()))
		}
		return text.String(), err
	}
	plain := filepath.Join(t.TempDir(), "plain.1")
	if err := os.WriteFile(plain, []byte(".TH PLAIN 1\n.SH NAME\nplain \\- sesquipedalian\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := shown(plain); err != nil || !strings.Contains(text, "sesquipedalian") {
		return // a stub of a small system
	}
	if text, err := shown(pages...); err != nil || !strings.Contains(text, "--gpu-type") {
		t.Errorf("man: %v; %d bytes", err, len(text))
	}
}
