package shim

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestMain makes this binary a shim, or a racer for locks, where a test starts it as one.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 3 && os.Args[1] == "shim":
		if _, err := os.Stat(filepath.Join(os.Args[2], "..", "..", "..", busy)); err == nil {
			mostNewborn = mostPatience
		}
		os.Exit(Main(RunDir(os.Args[2])))
	case len(os.Args) > 2 && os.Args[1] == "standin":
		standin(os.Args[2:])
		os.Exit(0)
	case len(os.Args) == 4 && os.Args[1] == "race":
		race(State(os.Args[2]), os.Args[3])
		os.Exit(0)
	}
	for name, value := range map[string]string{"GORACE": "atexit_sleep_ms=0", "SECRET": "canary"} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// busy is a file in the folder of a test whose processes may stay between fork and exec for long.
const busy = "busy"

// raced is how many attempts racers race for.
const raced = 40

// race tries to start one attempt after the other and prints those that it started.
func race(s State, job string) {
	id, err := strconv.Atoi(job)
	if err != nil {
		panic(err)
	}
	for n := int32(1); n <= raced; n++ {
		lock, err := insist(s, int32(id), n)
		if err == nil {
			fmt.Println(n)
			_ = lock.Close()
		}
	}
}

// insist tries to start an attempt until it is known who did.
func insist(s State, job, n int32) (*os.File, error) {
	for {
		if lock, err := s.Begin(job, n); !errors.Is(err, ErrHeld) {
			return lock, err
		}
		time.Sleep(time.Millisecond)
	}
}

// Ensure that of many who start one attempt at once exactly one does, and that no one holds the lock next to another.
func TestBeginRaces(t *testing.T) {
	t.Parallel()
	s := State(t.TempDir())
	var wins [raced + 1]atomic.Int32
	var holders atomic.Int32
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for n := int32(1); n <= raced; n++ {
				lock, err := insist(s, 0, n)
				if errors.Is(err, ErrBegun) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if h := holders.Add(1); h != 1 {
					t.Errorf("%d hold the lock", h)
				}
				wins[n].Add(1)
				holders.Add(-1)
				_ = lock.Close()
			}
		})
	}
	all.Wait()
	for n := 1; n <= raced; n++ {
		if w := wins[n].Load(); w > 1 {
			t.Errorf("attempt %d was started %d times", n, w)
		}
	}
	if wins[raced].Load() != 1 || !s.Begun(0, raced) || s.Begun(0, raced+1) {
		t.Errorf("the last attempt was started %d times", wins[raced].Load())
	}
}

// Ensure the same between processes.
func TestBeginRacesOfProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var racers []*exec.Cmd
	var outs []*strings.Builder
	for range 6 {
		cmd := exec.Command(os.Args[0], "race", dir, "7")
		out := new(strings.Builder)
		cmd.Stdout, cmd.Stderr = out, os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		racers, outs = append(racers, cmd), append(outs, out)
	}
	won := make(map[string]int)
	for i, cmd := range racers {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		for sc := bufio.NewScanner(strings.NewReader(outs[i].String())); sc.Scan(); {
			won[sc.Text()]++
		}
	}
	for n, times := range won {
		if times != 1 {
			t.Errorf("attempt %s was started %d times", n, times)
		}
	}
	if won[strconv.Itoa(raced)] != 1 {
		t.Errorf("the last attempt was not started: %v", won)
	}
}

// Ensure that a lock that does not name the last attempt lets this one count as started, and the next start.
func TestTornLock(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		content string
		begun   bool // attempt 3
	}{
		{"", false}, {"\n", true}, {"\x00\x00", true}, {"2", false}, {"2\n", false}, {"3\n", true}, {"12\n", true},
		{"3garbage of a disk", true},
		{"99999999999999\n", true}, {strings.Repeat("x", 1<<16), true},
	} {
		s, job := State(t.TempDir()), int32(i)
		if err := os.MkdirAll(s.Job(job), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s.Job(job), "lock"), []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		lock, err := s.Begin(job, 3)
		if c.begun != errors.Is(err, ErrBegun) || !c.begun && err != nil {
			t.Errorf("%.20q: %v, want started %v", c.content, err, c.begun)
		}
		if err == nil {
			_ = lock.Close()
		}
		if _, err = insist(s, job, 3); !errors.Is(err, ErrBegun) {
			t.Errorf("%.20q: again: %v, want ErrBegun", c.content, err)
		}
		next := int32(4)
		if c.content == "12\n" {
			next = 13
		}
		if lock, err = insist(s, job, next); err != nil {
			t.Errorf("%.20q: next: %v", c.content, err)
			continue
		}
		_ = lock.Close()
		if !s.Begun(job, next) || s.Begun(job, next+1) {
			t.Errorf("%.20q: attempt %d is not the last started", c.content, next)
		}
	}
}

// unheld takes a lock that no one holds, but perhaps a process that was just forked for a test next to this one, until
// that has become another program.
func unheld(t *testing.T, path string, shared bool) *os.File {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		lock, err := Lock(path, shared)
		if err == nil {
			return lock
		}
		if !errors.Is(err, ErrHeld) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// Ensure that a lock is one owner's, or of many who share it, and free once it is closed.
func TestLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "GPU-a")
	for i, c := range []struct{ first, second, free bool }{{false, false, false}, {false, true, false},
		{true, false, false}, {true, true, true}} {
		one := unheld(t, path, c.first)
		two, err := Lock(path, c.second)
		if c.free != (err == nil) || !c.free && !errors.Is(err, ErrHeld) {
			t.Errorf("case %d: %v, want free %v", i, err, c.free)
		}
		_ = one.Close()
		if err == nil {
			_ = two.Close()
		}
	}
	if _, err := Lock(filepath.Join(path, "x"), false); err == nil || errors.Is(err, ErrHeld) {
		t.Errorf("%v, want another error than ErrHeld", err)
	}
}

// Ensure that a file is whole whenever it is read, and that one that cannot be written leaves nothing behind.
func TestFilesAreWhole(t *testing.T) {
	t.Parallel()
	dir := RunDir(t.TempDir())
	path := filepath.Join(string(dir), "over.json")
	if _, err := dir.Over(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want fs.ErrNotExist", err)
	}
	if err := writeJSON(path, Over{Code: 1}); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for range 20 {
				if err := writeJSON(path, Over{Code: i, Text: strings.Repeat("x", 1000*i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		if over, err := dir.Over(); err != nil || over.Code*1000 != len(over.Text) && over.Code != 1 {
			t.Fatalf("%+v, %v", over, err)
		}
	}
	if err := writeJSON(filepath.Join(string(dir), "alive.json"), make(chan int)); err == nil {
		t.Error("a channel was written")
	}
	if list, err := os.ReadDir(string(dir)); err != nil || len(list) != 1 {
		t.Errorf("%v, %v are left, want over.json alone", list, err)
	}
	if err := os.WriteFile(path, []byte(`{"code":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Over(); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("%v, want the file named", err)
	}
}

// Ensure that the epoch of a folder only rises.
func TestEpochRises(t *testing.T) {
	t.Parallel()
	s := State(t.TempDir())
	for _, c := range []struct {
		epoch  int64
		fenced bool
	}{{1, false}, {3, false}, {3, false}, {2, true}, {4, false}} {
		if err := s.SetEpoch(c.epoch); c.fenced != errors.Is(err, ErrFenced) || !c.fenced && err != nil {
			t.Errorf("epoch %d: %v, want fenced %v", c.epoch, err, c.fenced)
		}
	}
	if now, err := s.Epoch(); now != 4 || err != nil {
		t.Errorf("epoch %d, %v, want 4", now, err)
	}
}
