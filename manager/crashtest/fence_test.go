package crashtest

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/driver/local/shim/shimtest"
)

// exitConflict is the exit code of a manager whose folder is another's.
const exitConflict = 4

// pair is a folder with two jobs that want all slots: the first until it is cancelled, the second then.
func pair(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	first, second := victim("first", whileRunning, "0s"), finishes("second", 4, 5, "0s")
	first.gpus, second.extra = 4, "after: [first]"
	writeJobs(t, dir, []job{first, second})
	t.Cleanup(func() { shimtest.EndAll(t, shim.State(filepath.Join(dir, "state"))) })
	return dir
}

// await returns a function for the lines of a life, and a channel that is closed when one of them has text.
func await(text string) (line func(string), seen <-chan struct{}) {
	c, done := make(chan struct{}), false
	return func(s string) {
		if !done && strings.Contains(s, text) {
			done = true
			close(c)
		}
	}, c
}

// need fails the test if c is not closed in time.
func need(t *testing.T, c <-chan struct{}, what string, l *life) {
	t.Helper()
	select {
	case <-c:
	case <-l.over:
		t.Fatalf("a manager ended, want %s:\n%s", what, &l.stderr)
	case <-time.After(patience):
		t.Fatalf("no sign of %s in %v", what, patience)
	}
}

// Ensure that a second manager is refused while the first lives, even if that one is stopped.
func TestOneManager(t *testing.T) {
	dir := pair(t)
	line, runs := await("first: attempt 1 runs")
	one := begin(t, dir, "", line)
	need(t, runs, "the job's start", one)
	one.signal(syscall.SIGSTOP)
	two := begin(t, dir, "", nil)
	if !two.within(patience) {
		t.Fatal("the second manager does not give up")
	}
	if code := two.cmd.ProcessState.ExitCode(); code != exitConflict ||
		!strings.Contains(two.stderr.String(), "in use") {
		t.Errorf("the second manager: code %d, want %d: %s", code, exitConflict, &two.stderr)
	}
	one.signal(syscall.SIGCONT)
	if code, said := command(t, dir, "cancel", "--state", "state", "first"); code != 0 {
		t.Errorf("cancel: code %d: %s", code, said)
	}
	if !one.within(patience) || one.cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("the first manager: %v\n%s", one.cmd.ProcessState, &one.stderr)
	}
}

// Ensure that a manager that was stopped, and whose lock was lost meanwhile, as on a file system that forgets locks,
// can do no harm once it goes on: its orders are refused, what it decides never becomes part of the log, and it ends.
func TestStaleManager(t *testing.T) {
	dir := pair(t)
	line, runs := await("first: attempt 1 runs")
	stale := begin(t, dir, "", line)
	need(t, runs, "the job's start", stale)
	stale.signal(syscall.SIGSTOP)
	if err := os.Remove(filepath.Join(dir, "state", "lock")); err != nil {
		t.Fatal(err)
	}
	line, ends := await("second: finished")
	now := begin(t, dir, "", line, "--events-out", "events.jsonl")
	alive, err := shim.State(filepath.Join(dir, "state")).RunDir(0, 1).Alive()
	if err != nil {
		t.Fatal(err)
	}
	for over := false; !over && sockets(alive.PID) < 3; { // its own, one of either manager
		over = now.within(time.Millisecond)
	}
	if code, said := command(t, dir, "cancel", "--state", "state", "first"); code != 0 {
		t.Fatalf("cancel: code %d: %s\n%s", code, said, &now.stderr)
	}
	stale.signal(syscall.SIGCONT)
	need(t, ends, "the end of the second job", now)
	if !now.within(patience) || now.cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("the new manager: %v\n%s", now.cmd.ProcessState, &now.stderr)
	}
	if !stale.within(patience) || stale.cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("the stale manager: %v\n%s", stale.cmd.ProcessState, &stale.stderr)
	}
	book, log := readLedger(t, dir), readLog(t, dir)
	book.check(t)
	log.check(t)
	if len(book.runs) != 2 || len(log.runs) != 2 || len(log.lost) > 0 {
		t.Errorf("attempts: %d by the ledger, %d by the log, want 2; lost: %v", len(book.runs), len(log.runs), log.lost)
	}
}
