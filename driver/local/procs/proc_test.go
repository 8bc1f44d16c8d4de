//go:build linux

package procs

import (
	"errors"
	"io/fs"
	"os"
	"regexp"
	"syscall"
	"testing"
	"time"
)

// Ensure that a command's name, which a process may choose, does not confuse the fields.
func TestParseStat(t *testing.T) {
	const tail = " 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 12345 100 200"
	for _, c := range []struct {
		line string
		want proc
	}{
		{"70 (sleep) S" + tail, proc{parent: 7, group: 8, session: 9, start: 12345}},
		{"70 (a) R 1 1 (b) ) S" + tail, proc{parent: 7, group: 8, session: 9, start: 12345}},
		{"70 () Z" + tail, proc{parent: 7, group: 8, session: 9, start: 12345, headless: true}},
		{"70 (x) Z 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 0",
			proc{parent: 7, group: 8, session: 9, start: 12345, zombie: true}},
	} {
		if got, err := parseStat(c.line); err != nil || got != c.want {
			t.Errorf("%s: got %+v, error %v, want %+v", c.line, got, err, c.want)
		}
	}
	for _, bad := range []string{"", "70 (sleep)", "70 (sleep) S 7 8 9", "70 (sleep) S x" + tail[2:]} {
		if _, err := parseStat(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestStartTime(t *testing.T) {
	a, errA := StartTime(os.Getpid())
	b, errB := StartTime(os.Getpid())
	if errA != nil || errB != nil || a == 0 || a != b {
		t.Errorf("own start time %d, then %d, errors %v, %v", a, b, errA, errB)
	}
	cmd := bash("exit 0", newMarker())
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := StartTime(cmd.Process.Pid); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a dead process: error %v, want ErrNotExist", err)
	}
}

// Ensure that a process which has ended does not live, be it waited for or not.
func TestLives(t *testing.T) {
	start, err := StartTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	cmd := bash("read", newMarker())
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err = cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	began, err := StartTime(pid)
	if err != nil {
		t.Fatal(err)
	}
	want := func(what string, pid int, start uint64, want bool) {
		t.Helper()
		if got, err := Lives(pid, start); err != nil || got != want {
			t.Errorf("%s: lives %t, %v, want %t", what, got, err, want)
		}
	}
	want("this one", os.Getpid(), start, true)
	want("another that had the pid", os.Getpid(), start+1, false)
	want("a child", pid, began, true)
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	for zombie := false; !zombie; {
		p, err := readProc(pid)
		if err != nil {
			t.Fatal(err)
		}
		zombie = p.zombie
	}
	want("a zombie", pid, began, false)
	_ = cmd.Wait() // its exit code is that of read at the end of its input
	want("one that is gone", pid, began, false)
}

func TestBootID(t *testing.T) {
	id, err := BootID()
	if err != nil || !regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(id) {
		t.Errorf("boot id %q, error %v, want a UUID", id, err)
	}
}

// Ensure that a pid that another process has now is not signalled.
func TestSignalComparesStartTimes(t *testing.T) {
	cmd := zoo("nap", newMarker())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := readProc(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	before := p
	before.start--
	if ended, err := before.signal(syscall.SIGKILL); !ended || err != nil {
		t.Errorf("the process before: ended %v, error %v, want true", ended, err)
	}
	time.Sleep(10 * time.Millisecond)
	if _, err := p.signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGTERM {
		t.Errorf("ended by %v, want SIGTERM only", cmd.ProcessState)
	}
	if ended, err := p.signal(syscall.SIGKILL); !ended || err != nil {
		t.Errorf("a dead process: ended %v, error %v, want true", ended, err)
	}
}

// Ensure that an assertion stands before the worst of mistakes.
func TestSignalPanicsOnInitAndSelf(t *testing.T) {
	for _, pid := range []int{-1, 0, 1, os.Getpid()} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("pid %d: no panic", pid)
				}
			}()
			_, _ = proc{pid: pid}.signal(syscall.Signal(0))
		}()
	}
}

func TestContains(t *testing.T) {
	const environ = "A=1\x00COOKIE=abc\x00B=2\x00"
	for s, want := range map[string]bool{"COOKIE=abc": true, "COOKIE=ab": false, "OOKIE=abc": false, "B=2": true,
		"A=1\x00COOKIE=abc": false} {
		if got := contains([]byte(environ), s); got != want {
			t.Errorf("contains %q: %v, want %v", s, got, want)
		}
	}
}
