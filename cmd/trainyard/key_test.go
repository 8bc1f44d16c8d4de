package main

import (
	"errors"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/cli/term"
)

// deafFolder makes a folder whose socket passes requests on to r, and no answers back.
func (r *live) deafFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "control"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			near, bad := l.Accept()
			if bad != nil {
				return
			}
			far, bad := net.Dial("unix", filepath.Join(r.state(), "control"))
			if bad != nil {
				_ = near.Close()
				continue
			}
			go func() { _, _ = io.Copy(far, near) }()
			_, _ = far.Read(make([]byte, 1)) // it has answered
			_ = near.Close()
			_ = far.Close()
		}
	}()
	return dir
}

// Ensure that jobs are submitted once under a key, that their outcome is said to be unknown where a request was sent
// and not answered, with a command that says it, and that what makes no sense as a key is refused.
func TestSubmitKey(t *testing.T) {
	t.Parallel()
	r := startServing(t, "--slots", "1")
	in := func(verb string, flags ...string) []string {
		return append([]string{verb, "--state", r.state()}, flags...)
	}
	for _, bad := range [][]string{
		in("submit", "--key", "", "--", "true"), in("submit", "--key", strings.Repeat("k", 65), "--", "true"),
		in("submit", "--key", "a b", "--", "true"), in("submit", "--patience", "-1s", "--", "true"),
		in("submit", "--patience", "soon", "--", "true"), in("run", "--key", "", "--", "true"),
		in("run", "--key", "k", "--slots", "1", "--", "true"), in("sbatch", "--key", "", "script"),
		in("sbatch", "--patience", "-1ns", "script"),
	} {
		_, said := trainyard(t, term.ExitUsage, bad...)
		if !strings.Contains(said, "--key") && !strings.Contains(said, "--patience") {
			t.Errorf("%v: %s", bad, said)
		}
	}
	for range 2 {
		if out, _ := trainyard(t, term.ExitOK, in("submit", "--key", "k1", "--", "sleep", "1h")...); out != "0\n" {
			t.Errorf("under a key: %q", out)
		}
	}
	_, said := trainyard(t, term.ExitConflict, in("submit", "--key", "k1", "--", "sleep", "2h")...)
	if !strings.Contains(said, "the key was used for other jobs: job 0") {
		t.Errorf("for other jobs: %s", said)
	}
	_, said = trainyard(t, term.ExitUnknown, "submit", "--state", r.deafFolder(t), "--patience", "0", "--gpus=1", "--",
		"sleep", "3h", "it's one")
	_, command, found := strings.Cut(said, "\n  trainyard submit ")
	command, _, _ = strings.Cut(command, "\n")
	if !found || !strings.Contains(command, "--key=") {
		t.Fatalf("no command that asks again: %s", said)
	}
	_, rest, _ := strings.Cut(command, " ") // its first word is another --state
	command = filepath.Join(programs, "trainyard") + " submit --state=" + r.state() + " " + rest
	for range 2 {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", command).Output()
		exit := (*exec.ExitError)(nil)
		if errors.As(err, &exit) {
			t.Fatalf("%s: %v: %s", command, err, exit.Stderr)
		}
		if string(out) != "1\n" {
			t.Errorf("asked again by %s: %q", command, out)
		}
	}
	if out, _ := trainyard(t, term.ExitOK, in("ps", "--all", "-o", "name")...); out != "0\n1\n" {
		t.Errorf("jobs: %q, want two", out)
	}
	_, _ = trainyard(t, term.ExitUnreachable, "submit", "--state", t.TempDir(), "--", "true") // no log, no wait
	if err := r.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	r.end(t, -1)
	_, said = trainyard(t, term.ExitUnreachable, in("submit", "--patience", "0", "--", "true")...)
	if strings.Contains(said, "--key") {
		t.Errorf("nothing was sent: %s", said)
	}
	_, said = trainyard(t, term.ExitUnreachable, in("submit", "--patience", "600ms", "--", "true")...)
	if !strings.Contains(said, "asking again for up to 600ms") {
		t.Errorf("it does not say that it asks again: %s", said)
	}
	_, _ = trainyard(t, term.ExitUnreachable, in("run", "--key", "k1", "--", "sleep", "1h")...)
}
