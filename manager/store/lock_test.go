package store

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Ensure that a folder can be taken whose manager died, although its lock is held a moment longer, by a process that
// the manager was about to start.
func TestLockOutlivesManager(t *testing.T) {
	dir := t.TempDir()
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "lock")
	held, err := take(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err = os.WriteFile(path, []byte(strconv.Itoa(dead.Process.Pid)), 0o600); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { _ = held.Close() })
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Ensure that whoever holds on to the lock is believed in the end, named or not.
func TestLockOfNobody(t *testing.T) {
	dir := t.TempDir()
	held, err := take(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := held.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); !errors.Is(err, ErrBusy) {
		t.Errorf("%v, want ErrBusy", err)
	}
}
