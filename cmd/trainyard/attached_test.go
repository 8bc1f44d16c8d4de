//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/cli/term"
)

// attachedTo is a command that uses the terminal of a job, in a terminal of its own.
type attachedTo struct {
	*exec.Cmd
	t       *testing.T
	keys    *os.File
	written func() string
	before  unix.Termios
}

// attachedBy starts a command about the folder in a terminal, and waits until that is the job's.
func (r *live) attachedBy(t *testing.T, args ...string) *attachedTo {
	t.Helper()
	args = append([]string{args[0], "--state", r.state()}, args[1:]...)
	cmd, keys, written := screenOf(t, nil, args...)
	a := &attachedTo{Cmd: cmd, t: t, keys: keys, written: written, before: settings(t, keys)}
	await(t, "keys go to the job", func() bool {
		now := settings(t, keys)
		return now.Lflag&unix.ICANON == 0
	})
	return a
}

// settings are those of a terminal.
func settings(t *testing.T, keys *os.File) unix.Termios {
	t.Helper()
	s, err := unix.IoctlGetTermios(int(keys.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	s.Lflag |= unix.ECHOKE // as the first reader leaves it
	return *s
}

// types types a line and waits for what is to come of it.
func (a *attachedTo) types(line, want string) {
	a.t.Helper()
	if _, err := a.keys.WriteString(line); err != nil {
		a.t.Fatal(err)
	}
	await(a.t, fmt.Sprintf("%q comes of %q", want, line), func() bool { return strings.Contains(a.written(), want) })
}

// ends waits for its end with an exit code, with the terminal as it was.
func (a *attachedTo) ends(code int) {
	a.t.Helper()
	err := a.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) || a.ProcessState.ExitCode() != code {
		a.t.Fatalf("ended with %v, want exit code %d\n%s", err, code, a.written())
	}
	if now := settings(a.t, a.keys); now != a.before && code >= 0 {
		a.t.Errorf("the terminal is %+v, and was %+v", now, a.before)
	}
}

// Ensure that a job has a terminal: keys, Ctrl-C and sizes reach it, who is attached leaves by Ctrl-] and comes back,
// and neither the end of a client nor that of the manager ends it. Its exit code is that of the command, and the
// terminal of the user is as it was each time.
func TestTerminalOfJob(t *testing.T) {
	t.Parallel()
	r := startServing(t, "--slots", "2")
	a := r.attachedBy(t, "run", "--pty", "--name", "shell", "--", "bash", "--norc")
	a.types("echo one$((1+1))\n", "one2")
	if err := unix.IoctlSetWinsize(int(a.keys.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 132}); err != nil {
		t.Fatal(err)
	}
	a.types("until [ \"$(stty size)\" = '50 132' ]; do sleep 0.05; done; echo sized$((1+1))\n", "sized2")
	a.types("echo go$((1+1)); sleep 1000; echo not$((1+1))\n", "go2")
	await(t, "Ctrl-C ends what runs", func() bool { // a shell that is about to start it goes on, as in any terminal
		_, _ = a.keys.WriteString("\x03")
		_, _ = a.keys.WriteString("echo code=$?=$((1+1))\n")
		for range 50 {
			if strings.Contains(a.written(), "code=130=2") {
				return true
			}
			time.Sleep(10 * time.Millisecond)
		}
		return false
	})
	if strings.Contains(a.written(), "not2") {
		t.Error("Ctrl-C ended nothing")
	}
	if err := r.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = r.Wait()
	a.types("echo still$((1+1))\n", "still2")
	a.types("\x1d", "goes on; `trainyard attach 0` comes back")
	a.ends(term.ExitOK)
	r.start(t)
	await(t, "it answers", func() bool {
		return exec.CommandContext(t.Context(), programs+"/trainyard", "nodes", "--state", r.state()).Run() == nil
	})
	killed := r.attachedBy(t, "attach", "shell")
	killed.types("", "still2") // what was written last
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	left := r.attachedBy(t, "attach", "shell")
	left.types("echo again$((1+1))\n", "again2")
	if err := left.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	await(t, "it leaves", func() bool { return strings.Contains(left.written(), "goes on") })
	left.ends(term.ExitOK)
	last := r.attachedBy(t, "attach", "shell")
	last.types("exit 7\n", "failed with exit code 7")
	last.ends(7)
	idle := r.attachedBy(t, "run", "--pty", "--idle", "2s", "--", "bash", "--norc")
	idle.types("", "this ends]")
	idle.ends(term.ExitJobFailed)
	await(t, "it says why", func() bool {
		return strings.Contains(idle.written(), "no key was typed, and nothing written, for 2s")
	})
	_, said := trainyard(t, term.ExitUsage, "attach", "shell", "--state", r.state())
	wantSaid(t, said, "standard input is no terminal")
	_, said = trainyard(t, term.ExitUsage, "run", "--pty", "--state", r.state(), "--name", "orphan", "--", "bash")
	wantSaid(t, said, "standard input is no terminal")
	_, _ = trainyard(t, term.ExitNotFound, "why", "--state", r.state(), "orphan")
	_, _ = trainyard(t, term.ExitOK, "submit", "--state", r.state(), "--name", "plain", "--", "sleep", "1000")
	none, _, written := screenOf(t, nil, "attach", "--state", r.state(), "plain")
	if err := none.Wait(); none.ProcessState.ExitCode() != term.ExitRefused {
		t.Errorf("%v: %s", err, written())
	}
	_, _ = trainyard(t, term.ExitOK, "cancel", "--state", r.state(), "plain")
}
