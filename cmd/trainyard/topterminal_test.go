//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/cli/term"
)

// screenOf starts a program in a terminal of 80x24 and returns what is typed into it, and what it has written so far.
func screenOf(t *testing.T, env []string, args ...string) (cmd *exec.Cmd, keys *os.File, written func() string) {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	t.Cleanup(func() { _ = keys.Close() })
	fd := int(keys.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80})
	}
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	tty, err := os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	cmd = exec.CommandContext(t.Context(), filepath.Join(programs, "trainyard"), args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	cmd.Env = append(append(os.Environ(), "TERM=xterm-256color"), env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var text strings.Builder
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := keys.Read(b)
			mu.Lock()
			text.Write(b[:n])
			mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return cmd, keys, func() string {
		mu.Lock()
		defer mu.Unlock()
		return text.String()
	}
}

// Ensure that the screen works in a real terminal: it shows jobs, obeys keys, gives the terminal back, and has no
// colour where none is wanted.
func TestTopTerminal(t *testing.T) {
	t.Parallel()
	r := startServing(t, "--slots", "1")
	_, _ = trainyard(t, term.ExitOK, "submit", "--state", r.state(), "--name", "long", "--", "sleep", "1000")
	for _, c := range []struct {
		env      []string
		flags    []string
		coloured bool
	}{{[]string{"NO_COLOR="}, nil, true}, {[]string{"NO_COLOR=1"}, nil, false},
		{[]string{"NO_COLOR="}, []string{"--no-color"}, false}} {
		top, keys, written := screenOf(t, c.env, append([]string{"top", "--state", r.state()}, c.flags...)...)
		press := func(key, until string) {
			t.Helper()
			if _, err := keys.WriteString(key); err != nil {
				t.Fatal(err)
			}
			await(t, fmt.Sprintf("%q shows %q", key, until), func() bool { return strings.Contains(written(), until) })
		}
		press("", "long")
		press("k", "cancel job 0 long?")
		press("n", "q quit")
		press("w", "stands as it does")
		press("?", "after a question")
		press("q", "\x1b[?1049l") // the screen before is back
		if err := top.Wait(); err != nil {
			t.Errorf("%v: %v", c, err)
		}
		if got := strings.Contains(written(), "38;5;"); got != c.coloured {
			t.Errorf("%v: coloured %t", c, got)
		}
	}
	top, keys, written := screenOf(t, nil, "top", "--state", r.state())
	await(t, "it is shown", func() bool { return strings.Contains(written(), "long") })
	if _, err := keys.WriteString("ky"); err != nil {
		t.Fatal(err)
	}
	_, _ = trainyard(t, term.ExitJobFailed, "wait", "--state", r.state(), "long")
	if _, err := keys.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	await(t, "the cursor is back", func() bool { return strings.Contains(written(), "\x1b[?25h") })
	if err := top.Wait(); err != nil {
		t.Error(err)
	}
	if hidden, drawn := strings.Index(written(), "\x1b[?25l"), strings.Index(written(), "busy; jobs"); hidden < 0 ||
		hidden > drawn {
		t.Errorf("the cursor is hidden at %d, and something drawn at %d", hidden, drawn)
	}
}

// Ensure that submit says at a terminal, after the number, that a job has its slot, or waits and behind how many, and
// nothing of it elsewhere.
func TestSubmitTerminal(t *testing.T) {
	t.Parallel()
	r := startServing(t, "--slots", "1")
	_, said := trainyard(t, term.ExitOK, "submit", "--state", r.state(), "--name", "long", "--", "sleep", "1000")
	if strings.Contains(said, "job 0 has") || strings.Contains(said, "job 0 waits") {
		t.Errorf("said %q, which no one reads", said)
	}
	for i, want := range []string{"job 1 waits: no idea yet", "job 2 waits; 1 ahead: no idea yet"} {
		submit, _, written := screenOf(t, nil, "submit", "--state", r.state(), "--", "sleep", "1000")
		if err := submit.Wait(); err != nil {
			t.Error(err)
		}
		await(t, want, func() bool { return strings.Contains(written(), want) })
		if text := written(); !strings.HasPrefix(text, fmt.Sprint(i+1, "\r\n")) {
			t.Errorf("said %q, want the number first", text)
		}
	}
}
