package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
)

// startServing serves a folder until the test is over, in a folder of its own.
func startServing(t *testing.T, flags ...string) *live {
	t.Helper()
	r := &live{dir: t.TempDir()}
	t.Cleanup(func() {
		if err := endJobs(r.dir); err != nil {
			t.Error(err)
		}
	})
	r.args = append([]string{"serve", "--state", r.state()}, flags...)
	r.start(t)
	await(t, "it answers", func() bool {
		return exec.CommandContext(t.Context(), filepath.Join(programs, "trainyard"), "nodes", "--state",
			r.state()).Run() == nil
	})
	return r
}

// partner starts another command about the same folder.
func (r *live) partner(t *testing.T, args ...string) *live {
	t.Helper()
	other := &live{dir: r.dir, args: append([]string{args[0], "--state", r.state()}, args[1:]...)}
	other.start(t)
	return other
}

// Ensure that an interrupt of a verb that follows ends the verb with 130, says so, and leaves the jobs alone.
func TestInterruptServed(t *testing.T) {
	t.Parallel()
	r := startServing(t, "--slots", "2")
	file := filepath.Join(r.dir, "jobs.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll("jobs: [{command: WAITING, name: a}, {command: WAITING, "+
		"name: b}]", "WAITING", waiting)), 0o600); err != nil {
		t.Fatal(err)
	}
	followed := r.partner(t, "run", file)
	r.up(t, 0)
	r.up(t, 1)
	for _, x := range []struct {
		verb *live
		code int
		says string
	}{
		{followed, term.ExitInterrupted, "trainyard: interrupted; job 0 to 1 goes on\n"},
		{r.partner(t, "run", "--", "true"), term.ExitInterrupted,
			"\njob 2 goes on; `trainyard logs -f 2` comes back, Ctrl-C once more asks to cancel\n"},
		{r.partner(t, "logs", "-f", "a"), term.ExitInterrupted, "trainyard: interrupted; job a goes on\n"},
		{r.partner(t, "wait", "a", "b"), term.ExitInterrupted, "trainyard: interrupted; job a goes on\n"},
		{r.partner(t, "events", "-f", "--from", "0"), term.ExitOK, ""},
		{r.partner(t, "ps", "-w", "-o", "name"), term.ExitOK, ""},
	} {
		await(t, "it follows", func() bool {
			return follows(x.verb) && (x.verb.args[0] != "run" ||
				strings.Contains(x.verb.stderr.String(), "submitted as job "))
		})
		if err := x.verb.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		x.verb.end(t, x.code)
		wantSaid(t, x.verb.stderr.String(), x.says)
	}
	_, _ = trainyard(t, term.ExitTimeout, "wait", "--state", r.state(), "--timeout", "1ms", "a", "b")
	r.release(t)
	_, _ = trainyard(t, term.ExitOK, "wait", "--state", r.state(), "0", "1", "2")
}

// follows reports whether a verb has its connection, by its open files.
func follows(r *live) bool {
	dir := fmt.Sprintf("/proc/%d/fd", r.Process.Pid)
	files, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, f := range files {
		if to, err := os.Readlink(filepath.Join(dir, f.Name())); err == nil && strings.HasPrefix(to, "socket:") {
			return true
		}
	}
	return false
}

// Ensure that a second interrupt asks, and cancels only who says yes.
func TestInterruptTwice(t *testing.T) {
	t.Parallel()
	r := startServing(t, "--slots", "2")
	for i, c := range []struct{ answer, says string }{{"n\n", "goes on"}, {"y\n", "cancelled"}} {
		f := &live{dir: r.dir, args: []string{"run", "--state", r.state(), "--", "sleep", "1000"}}
		f.Cmd = exec.CommandContext(t.Context(), filepath.Join(programs, "trainyard"), f.args...)
		said, err := f.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		f.Stdin = strings.NewReader(c.answer)
		if err := f.Start(); err != nil {
			t.Fatal(err)
		}
		var text string
		for _, until := range []string{"comes back\n", "asks to cancel\n"} {
			for b := make([]byte, 1); !strings.HasSuffix(text, until); text += string(b) {
				if _, err := said.Read(b); err != nil {
					t.Fatalf("%v: %s", err, text)
				}
			}
			if err := f.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
		}
		rest := make([]byte, 4096)
		for n := 1; n > 0; {
			n, _ = said.Read(rest)
			text += string(rest[:n])
		}
		f.end(t, term.ExitInterrupted)
		wantSaid(t, text, fmt.Sprintf("cancel job %d? [y/N] ", i), c.says)
	}
	_, _ = trainyard(t, term.ExitJobFailed, "wait", "--state", r.state(), "1")
	out, _ := trainyard(t, term.ExitOK, "ps", "--state", r.state(), "-o", "name")
	if out != "0\n" {
		t.Errorf("jobs that are not done: %q, want 0 alone", out)
	}
}

// Ensure that every answer of a manager has its exit code.
func TestAnswerCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
	}{
		{api.ErrNoManager, term.ExitUnreachable}, {api.ErrStopped, term.ExitUnreachable},
		{api.ErrNoJob, term.ExitNotFound}, {api.ErrNoGPU, term.ExitNotFound},
		{api.ErrDone, term.ExitConflict}, {api.ErrEarly, term.ExitRefused}, {api.ErrRefused, term.ExitRefused},
		{api.ErrFixed, term.ExitConflict},
		{api.ErrForbidden, term.ExitPermission}, {fs.ErrPermission, term.ExitPermission},
		{api.ErrTimeout, term.ExitTimeout}, {api.ErrBusy, term.ExitTimeout},
		{api.ErrNoNode, term.ExitNotFound}, {api.ErrNotHere, term.ExitRefused}, {api.ErrGone, term.ExitRefused},
		{api.ErrNotLeading, term.ExitUnreachable},
		{api.ErrMalformed, term.ExitMalformed}, {context.Canceled, term.ExitInterrupted},
		{fs.ErrInvalid, term.ExitGeneral}, {nil, term.ExitOK},
	} {
		got := term.ExitOK
		if err := client.ApiError(c.err); err != nil {
			got = term.ExitCode(err)
		}
		if got != c.code {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.code)
		}
	}
}
