package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/cli/term"
)

// moveSocket makes a folder whose socket leads to that of r, and says when something was answered over it.
func (r *live) moveSocket(t *testing.T) (state string, answered <-chan struct{}) {
	t.Helper()
	state = t.TempDir()
	l, err := net.Listen("unix", filepath.Join(state, "control"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	first := make(chan struct{}, 1)
	go func() {
		for {
			near, bad := l.Accept()
			if bad != nil {
				return
			}
			go relay(near, filepath.Join(r.state(), "control"), first)
		}
	}()
	return state, first
}

// relay leads a connection to a socket until either ends, and reports the first answer.
func relay(near net.Conn, to string, answered chan<- struct{}) {
	defer near.Close()
	far, err := net.Dial("unix", to)
	if err != nil {
		return
	}
	defer far.Close()
	go func() { _, _ = io.Copy(far, near) }()
	buf := make([]byte, 4096)
	for {
		n, err := far.Read(buf)
		if _, bad := near.Write(buf[:n]); bad != nil || err != nil {
			return
		}
		select {
		case answered <- struct{}{}:
		default:
		}
	}
}

// reader is a command that is under way, of which the first line of stdout was read.
type reader struct {
	*live
	out io.Reader
	got []byte
}

// firstLine starts a command and returns once it has written a line.
func (r *live) firstLine(t *testing.T, args ...string) *reader {
	t.Helper()
	x := &reader{live: &live{dir: r.dir, args: append([]string{args[0], "--state", r.state()}, args[1:]...)}}
	x.Cmd = exec.CommandContext(t.Context(), filepath.Join(programs, "trainyard"), x.args...)
	x.Cmd.Stderr = &x.stderr
	out, err := x.StdoutPipe()
	if err == nil {
		err = x.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	x.out = out
	x.until(t, "\n")
	return x
}

// until reads on to the end of a line that has text.
func (x *reader) until(t *testing.T, text string) {
	t.Helper()
	begun := 0
	for b := make([]byte, 1); ; {
		if _, err := x.out.Read(b); err != nil {
			t.Fatalf("%v: it ended without %q: %s", x.args, text, x.got)
		}
		if x.got = append(x.got, b[0]); b[0] != '\n' {
			continue
		}
		if strings.Contains(string(x.got[begun:]), text) {
			return
		}
		begun = len(x.got)
	}
}

// rest returns all that the command has written once it ends, which must be with the exit code.
func (x *reader) rest(t *testing.T, code int) string {
	t.Helper()
	b, err := io.ReadAll(x.out)
	if err != nil {
		t.Error(err)
	}
	x.end(t, code)
	return string(x.got) + string(b)
}

// Ensure that what follows a job goes on with the next manager where it was when one is killed, to the end of the job
// and with its code.
func TestFollowPastManager(t *testing.T) {
	t.Parallel()
	r := startServing(t, "--slots", "2")
	const script = `echo one; until [ -e go ]; do sleep 0.02; done; echo two; exit 3`
	path := filepath.Join(r.dir, "jobs.yaml")
	if err := os.WriteFile(path, []byte("jobs: [{name: a, command: [sh, -c, '"+script+"']}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	ran := r.firstLine(t, "run", path)
	logs := r.firstLine(t, "logs", "-f", "0")
	events := r.firstLine(t, "events", "-f", "--from", "0")
	listed := r.firstLine(t, "ps", "-w", "-o", "name")
	quarantined, answered := r.moveSocket(t)
	waits := &live{dir: r.dir, args: []string{"wait", "--state", quarantined, "a"}}
	waits.start(t)
	<-answered
	if err := r.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	r.end(t, -1)
	r.start(t)
	r.release(t)
	waits.end(t, 3)
	if got := strings.Count(waits.stderr.String(), "trainyard: the manager is away; waiting for it\n"); got > 1 {
		t.Errorf("said %d times, want once at most, as a connection that ends is tried again first:\n%s", got,
			waits.stderr.String())
	}
	for _, x := range []*reader{ran, logs} {
		want := 0
		if x == ran {
			want = 3
		}
		if got := x.rest(t, want); got != "one\ntwo\n" {
			t.Errorf("%v: %q", x.args, got)
		}
	}
	for _, x := range []*reader{events, listed} {
		if x == events {
			x.until(t, `"outcome":"failed"`)
		}
		if err := x.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		_ = x.rest(t, term.ExitOK)
	}
	for i, line := range strings.Split(strings.TrimSuffix(string(events.got), "\n"), "\n") {
		wantSaid(t, line[:min(len(line), 20)], fmt.Sprintf(`"seq":%d,`, i+1))
	}
}
