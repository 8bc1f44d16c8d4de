package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/driver/local/procs"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/manager/store"
)

// checked is one finding in the document of doctor --json.
type checked struct{ Check, State, Found, Do string }

// The states of a finding, and the file that a state folder is known by.
const (
	isFine       = "ok"
	isNote       = "note"
	isWrong      = "wrong"
	databaseFile = "trainyard.db"
)

// diagnosed asks the doctor about a folder and returns the finding of a check that is not ok, if there is one, else the
// first of it.
func diagnosed(t *testing.T, dir, check string, env ...string) checked {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(programs, "trainyard"), "doctor", "--state", dir, "--json")
	cmd.Env = append(os.Environ(), env...)
	out, _ := cmd.Output()
	var doc struct {
		Schema, State string
		OK            bool
		Findings      []checked
	}
	if err := json.Unmarshal(out, &doc); err != nil || doc.Schema != "trainyard.doctor/v1" || doc.State != dir {
		t.Fatalf("%v: %s", err, out)
	}
	var found *checked
	sick := false
	for i := range doc.Findings {
		f := &doc.Findings[i]
		sick = sick || f.State == isWrong
		if f.State != isFine && f.Do == "" {
			t.Errorf("%+v: nothing to do", *f)
		}
		if f.Check == check && (found == nil || found.State == isFine) {
			found = f
		}
	}
	code := map[bool]int{true: term.ExitGeneral, false: term.ExitOK}[sick]
	if got := cmd.ProcessState.ExitCode(); got != code || doc.OK == sick {
		t.Errorf("exit code %d, ok %t, want %d\n%s", got, doc.OK, code, out)
	}
	if found == nil {
		t.Fatalf("no check %s:\n%s", check, out)
	}
	return *found
}

func write(t *testing.T, text string, mode os.FileMode, path ...string) {
	t.Helper()
	file := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// writeScript makes a script. Another process writes it: a process that another test starts at the same time could
// inherit a file that this one has open for writing, and the script cannot run as long as that is so.
func writeScript(t *testing.T, path, text string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `cat > "$0" && chmod 700 "$0"`, path)
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// emptyLog returns a database as a manager leaves it that had no jobs.
func emptyLog(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s, err := store.Open(dir)
	if err == nil {
		err = errors.Join(s.Begin(eventlog.Header{System: "fifo"}), s.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, databaseFile))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Ensure that each fault planted in a state folder or the machine is found by its check, and that a healthy one has
// none.
func TestDoctorFaults(t *testing.T) {
	t.Parallel()
	log := emptyLog(t)
	for name, c := range map[string]struct {
		plant       func(t *testing.T, dir string) (env []string)
		check       string
		state, says string
	}{
		"healthy": {func(t *testing.T, dir string) []string { write(t, log, 0o600, dir, databaseFile); return nil },
			"state", isFine, ""},
		"nowhere": {func(t *testing.T, dir string) []string { return nil }, "state", isFine, "is not there yet"},
		"a file": {func(t *testing.T, dir string) []string { write(t, "", 0o600, dir); return nil }, "state", isWrong,
			"is no folder"},
		"open to all": {func(t *testing.T, dir string) []string {
			write(t, log, 0o600, dir, databaseFile)
			if err := os.Chmod(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			return nil
		}, "state", isWrong, "has mode 777: others see or change what is in it"},
		"open to a group": {func(t *testing.T, dir string) []string {
			write(t, log, 0o600, dir, databaseFile)
			if err := os.Chmod(dir, 0o710); err != nil { // as serve --group makes it
				t.Fatal(err)
			}
			return nil
		}, "state", isFine, ""},
		"foreign": {func(t *testing.T, dir string) []string { write(t, "x", 0o600, dir, "thesis.tex"); return nil },
			"state", isWrong, "holds something, but no log"},
		"no log": {func(t *testing.T, dir string) []string { write(t, "1", 0o600, dir, "epoch"); return nil },
			"state", isWrong, "holds something, but no log"},
		"cut log": {func(t *testing.T, dir string) []string { write(t, "SQL", 0o600, dir, databaseFile); return nil },
			"state", isWrong, "is no database"},
		"empty log": {func(t *testing.T, dir string) []string { write(t, "", 0o600, dir, databaseFile); return nil },
			"state", isWrong, "is no database"},
		"stuck manager": {func(t *testing.T, dir string) []string {
			write(t, log, 0o600, dir, databaseFile)
			write(t, "4711", 0o600, dir, "lock")
			f, err := os.Open(filepath.Join(dir, "lock"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = f.Close() })
			if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
				t.Fatal(err)
			}
			return nil
		}, "manager", isWrong, "process 4711 has the folder and does not answer"},
		"dead manager": {func(t *testing.T, dir string) []string {
			write(t, log, 0o600, dir, databaseFile)
			write(t, "4711", 0o600, dir, "lock")
			l, err := net.Listen("unix", filepath.Join(dir, "control"))
			if err != nil {
				t.Fatal(err)
			}
			l.(*net.UnixListener).SetUnlinkOnClose(false)
			_ = l.Close()
			return nil
		}, "manager", isNote, "none serves the folder"},
		"clock": {func(t *testing.T, dir string) []string {
			write(t, log, 0o600, dir, databaseFile)
			ahead := time.Now().Add(time.Hour)
			if err := os.Chtimes(filepath.Join(dir, databaseFile), ahead, ahead); err != nil {
				t.Fatal(err)
			}
			return nil
		}, "clock", isWrong, "but the log was written to at"},
		"tokens": {func(t *testing.T, dir string) []string {
			write(t, log, 0o600, dir, databaseFile)
			write(t, "[{", 0o600, dir, "tokens.json")
			return nil
		}, "tokens", isWrong, "tokens.json: line 1: the list ends early"},
		"driver": {func(t *testing.T, dir string) []string {
			bin := t.TempDir()
			writeScript(t, filepath.Join(bin, "nvidia-smi"),
				"#!/bin/sh\necho Failed to initialize NVML: Driver/library version mismatch\nexit 18\n")
			return []string{"PATH=" + bin + ":" + os.Getenv("PATH")}
		}, "driver", isWrong, "version mismatch"},
		"orphans": {func(t *testing.T, dir string) []string {
			write(t, log, 0o600, dir, databaseFile)
			attempt(t, dir, 0, 1, os.Getpid())
			return nil
		}, "leftovers", isNote, "1 job running, managed by no one"},
		"recycled pid": {func(t *testing.T, dir string) []string {
			write(t, log, 0o600, dir, databaseFile)
			attempt(t, dir, 0, 1, 1)
			return nil
		}, "leftovers", isFine, "1 attempt, 0 running"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			f := diagnosed(t, dir, c.check, c.plant(t, dir)...)
			if f.State != c.state || !strings.Contains(f.Found, c.says) {
				t.Errorf("%+v, want %s that says %q", f, c.state, c.says)
			}
		})
	}
}

// attempt plants the run directory of an attempt that runs as this process, as far as pid is ours.
func attempt(t *testing.T, dir string, job, n, pid int) {
	t.Helper()
	began, err := procs.StartTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	boot, err := procs.BootID()
	if err != nil {
		t.Fatal(err)
	}
	alive, err := json.Marshal(shim.Alive{PID: pid, StartTime: began, BootID: boot})
	if err != nil {
		t.Fatal(err)
	}
	run := string(shim.State(dir).RunDir(int32(job), int32(n)))
	write(t, "{}", 0o600, run, "order.json")
	write(t, string(alive), 0o600, run, "alive.json")
}

// Ensure that a manager that answers is reported with what it knows: drained slots, leftovers of jobs that are done,
// strange ones.
func TestDoctorServed(t *testing.T) {
	t.Parallel()
	r := startServing(t, "--slots", "2")
	_, _ = trainyard(t, term.ExitOK, "submit", "--state", r.state(), "--", "true")
	_, _ = trainyard(t, term.ExitOK, "wait", "--state", r.state(), "0")
	first, err := shim.State(r.state()).RunDir(0, 1).Alive()
	if err != nil {
		t.Fatal(err)
	}
	await(t, "its shim has gone as well", func() bool {
		lives, err := procs.Lives(first.PID, first.StartTime)
		return err == nil && !lives
	})
	want := func(check, state, says string) {
		t.Helper()
		if f := diagnosed(t, r.state(), check); f.State != state || !strings.Contains(f.Found, says) {
			t.Errorf("%+v, want %s that says %q", f, state, says)
		}
	}
	for check, says := range map[string]string{"manager": fmt.Sprintf("process %d under tiresias-las", r.Process.Pid),
		"version": "the manager as well",
		"devices": "2 slots in use", "leftovers": "1 attempt, 0 running", "shim": "trainyard", "state": r.state()} {
		want(check, isFine, says)
	}
	out, _ := trainyard(t, term.ExitOK, "doctor", "--state", r.state())
	wantSaid(t, out, "ok     devices       2 slots in use\n")
	_, _ = trainyard(t, term.ExitOK, "drain", "--state", r.state(), "slot-1")
	want("devices", isNote, "slot-1 is drained")
	_, _ = trainyard(t, term.ExitOK, "undrain", "--state", r.state(), "slot-1")
	_, _ = trainyard(t, term.ExitOK, "drain", "--state", r.state())
	want("devices", isNote, "is drained: nothing new starts")
	output := shim.State(r.state()).RunDir(0, 1).Output()
	if err := os.Truncate(output, 10<<30+1<<30); err != nil { // a hole takes no disk
		t.Fatal(err)
	}
	want("leftovers", isNote, "the output of jobs that are done takes 11.0 GiB")
	if err := os.Truncate(output, 0); err != nil {
		t.Fatal(err)
	}
	attempt(t, r.state(), 7, 1, 1)
	want("leftovers", isNote, "is of no job that the manager knows")
	attempt(t, r.state(), 7, 1, os.Getpid())
	want("leftovers", isWrong, fmt.Sprintf("process %d runs job 7, which the manager does not know", os.Getpid()))
	if err := os.RemoveAll(shim.State(r.state()).Job(7)); err != nil {
		t.Fatal(err)
	}
	attempt(t, r.state(), 0, 2, 1)
	want("leftovers", isNote, "does not say how it ended, although job 0 (true) is done")
	attempt(t, r.state(), 0, 2, os.Getpid())
	want("leftovers", isWrong, fmt.Sprintf("process %d goes on although job 0 (true) is done", os.Getpid()))
	write(t, "{}", 0o600, string(shim.State(r.state()).RunDir(0, 2)), "over.json") // its shim is on its way out
	want("leftovers", isFine, "2 attempts, 1 running")
	if err := os.Remove(filepath.Join(string(shim.State(r.state()).RunDir(0, 2)), "over.json")); err != nil {
		t.Fatal(err)
	}
	out, said := trainyard(t, term.ExitGeneral, "doctor", "--state", r.state())
	wantSaid(t, out, "wrong  leftovers     process ")
	wantSaid(t, said, "trainyard: 1 check wrong: leftovers\n")
	if err := os.RemoveAll(string(shim.State(r.state()).RunDir(0, 2))); err != nil { // endJobs would stop what it names
		t.Fatal(err)
	}
	if err := r.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	want("manager", isWrong, "does not answer: no answer within 5s")
	if err := r.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// Ensure that another version, and what a manager itself finds wrong, is reported.
func TestDoctorOtherVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "control"))
	if err != nil {
		t.Skip(err) // a folder with a long name
	}
	s := &http.Server{ReadHeaderTimeout: time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch r.URL.Path {
			case "/v1/info":
				_ = json.NewEncoder(w).Encode(api.Info{Version: "v0.1.0", PID: os.Getpid(),
					Problems: []string{"record 12 was quarantined"}})
			case "/v1/nodes":
				_ = json.NewEncoder(w).Encode(api.Nodes{GPUs: []api.GPU{{Name: "GPU-a", State: "foreign",
					Why: "python of ann"}}})
			default:
				http.Error(w, "no", http.StatusInternalServerError)
			}
		})}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Shutdown(context.Background()) })
	for check, want := range map[string]string{"version": "the manager is v0.1.0",
		"devices": "GPU-a is foreign: python of ann", "manager": "it does not report all: "} {
		if f := diagnosed(t, dir, check); !strings.Contains(f.Found, want) {
			t.Errorf("%+v, want %q", f, want)
		}
	}
	out, _ := trainyard(t, term.ExitGeneral, "doctor", "--state", dir)
	wantSaid(t, out, "record 12 was quarantined")
}
