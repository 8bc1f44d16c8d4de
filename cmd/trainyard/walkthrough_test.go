package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
)

// Ensure that docs/start/machine.md holds, word for word: each of its commands is typed into a shell, in an empty
// folder,
// with what the text around it promises.
func TestWalkThrough(t *testing.T) {
	t.Parallel()
	w := &walk{T: t, live: live{dir: t.TempDir()}, left: stepsOf(t)}
	t.Cleanup(func() {
		if err := endJobs(w.dir); err != nil {
			t.Error(err)
		}
	})
	w.serve("trainyard serve")
	w.types("trainyard submit --name hello -- sh -c 'echo hello from job $TRAINYARD_JOB_ID'", term.ExitOK, "0\n")
	w.types("trainyard submit --name slow -- sleep 1000", term.ExitOK, "1\n")
	w.types("trainyard ps", term.ExitOK, "slow")
	w.types("trainyard wait hello", term.ExitOK, "")
	w.types("trainyard logs hello", term.ExitOK, "hello from job 0\n")
	await(t, "slow runs", func() bool { out, _ := w.shell("trainyard ps"); return strings.Contains(out, "running") })
	if err := w.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	w.end(t, term.ExitOK)
	wantSaid(t, w.stderr.String(), "1 job goes on")
	w.serve("trainyard serve")
	w.types("trainyard ps", term.ExitOK, "running")
	w.types("trainyard cancel slow", term.ExitOK, "")
	w.types("trainyard wait slow", term.ExitJobFailed, "")
	w.types("trainyard ps --all", term.ExitOK, "cancelled")
	if len(w.left) > 0 {
		t.Errorf("the text has more: %q", w.left)
	}
	if err := w.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	w.end(t, term.ExitOK)
}

// walk follows the text.
type walk struct {
	*testing.T
	live
	left []string // commands that were not typed yet
}

// stepsOf returns the commands of the text.
func stepsOf(t *testing.T) (steps []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/start/machine.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, part := range strings.Split(string(text), "```\n") {
		if i%2 == 1 {
			steps = append(steps, strings.Split(strings.TrimSuffix(part, "\n"), "\n")...)
		}
	}
	return steps
}

// next checks that the text goes on with a command.
func (w *walk) next(line string) {
	w.Helper()
	if len(w.left) == 0 || w.left[0] != line {
		w.Fatalf("the text goes on with %q, want %q", w.left, line)
	}
	w.left = w.left[1:]
}

// command is a line as a shell of the reader takes it.
func (w *walk) command(line string) *exec.Cmd {
	cmd := exec.CommandContext(w.Context(), "sh", "-c", "exec "+line)
	cmd.Dir = w.dir
	cmd.Env = []string{"PATH=" + programs + string(filepath.ListSeparator) + os.Getenv("PATH"),
		client.StateVariable + "=" + w.state()}
	return cmd
}

// serve types the command of the first terminal.
func (w *walk) serve(line string) {
	w.Helper()
	w.next(line)
	w.Cmd = w.command(line)
	w.stderr.Reset()
	w.Stderr = &w.stderr
	if err := w.Start(); err != nil {
		w.Fatal(err)
	}
	await(w.T, "it answers", func() bool { _, code := w.shell("trainyard nodes"); return code == term.ExitOK })
}

// shell runs a line and returns its stdout and exit code.
func (w *walk) shell(line string) (string, int) {
	cmd := w.command(line)
	out, _ := cmd.Output()
	return string(out), cmd.ProcessState.ExitCode()
}

// types types the next command of the second terminal, which must end with a code and say something.
func (w *walk) types(line string, code int, says string) {
	w.Helper()
	w.next(line)
	out, got := w.shell(line)
	if got != code || !strings.Contains(out, says) {
		w.Fatalf("%s: exit code %d, %q; want %d, %q", line, got, out, code, says)
	}
}
