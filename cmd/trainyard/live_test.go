package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
)

// heard is what a process says, which may be looked at while it says more.
type heard struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(b)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

func (h *heard) Reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text.Reset()
}

// live is a `trainyard run` that is under way.
type live struct {
	*exec.Cmd
	dir    string // of the job file
	args   []string
	stdout bytes.Buffer
	stderr heard
}

// waiting is the command of a job that says that it is up, by a file that holds its pid, and waits for the file go.
// Asked to stop, it ends with 9.
const waiting = `[sh, -c, "trap 'exit 9' TERM; echo $$ > up.$TRAINYARD_JOB_ID.tmp && mv up.$TRAINYARD_JOB_ID.tmp ` +
	`up.$TRAINYARD_JOB_ID; until [ -e go ]; do sleep 0.02; done"]`

// startLive writes a job file and runs it.
func startLive(t *testing.T, jobs string, flags ...string) *live {
	t.Helper()
	r := &live{dir: t.TempDir()}
	t.Cleanup(func() {
		if err := endJobs(r.dir); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(r.dir, "jobs.yaml")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(jobs, "WAITING", waiting)), 0o600); err != nil {
		t.Fatal(err)
	}
	r.args = append([]string{"run", path}, flags...)
	r.start(t)
	return r
}

// start starts the same command, once more perhaps.
func (r *live) start(t *testing.T) {
	t.Helper()
	r.Cmd = exec.CommandContext(t.Context(), filepath.Join(programs, "trainyard"), r.args...)
	r.stdout.Reset()
	r.stderr.Reset()
	r.Stdout, r.Stderr = &r.stdout, &r.stderr
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
}

// await waits until something is so.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(50 * time.Second); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
	}
}

// up waits until a job is up and returns its pid.
func (r *live) up(t *testing.T, job int) (pid int) {
	t.Helper()
	await(t, fmt.Sprintf("job %d is up", job), func() bool {
		b, err := os.ReadFile(filepath.Join(r.dir, fmt.Sprint("up.", job)))
		if err != nil {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(b)))
		return err == nil
	})
	return pid
}

// release lets the jobs end.
func (r *live) release(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// end waits for the end, which must be with the exit code.
func (r *live) end(t *testing.T, code int) {
	t.Helper()
	if err := r.Wait(); r.ProcessState == nil || r.ProcessState.ExitCode() != code {
		t.Fatalf("ended with %v, want exit code %d\n%s\n%s", err, code, r.stdout.String(), r.stderr.String())
	}
}

func (r *live) state() string { return filepath.Join(r.dir, "jobs.state") }

// wantSaid checks that text has all that is wanted.
func wantSaid(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("not said: %q\n%s", w, text)
		}
	}
}

// Ensure that an interrupt, and any other end of the program, harms no job: what runs goes on, the same command takes
// it up where it is, and what waited starts then.
func TestDetach(t *testing.T) {
	for _, c := range []struct {
		signal syscall.Signal
		code   int
	}{{syscall.SIGINT, term.ExitInterrupted}, {syscall.SIGTERM, term.ExitInterrupted}, {syscall.SIGKILL, -1}} {
		t.Run(c.signal.String(), func(t *testing.T) {
			t.Parallel()
			r := startLive(t, "jobs: [{command: WAITING, count: 2, name: a}, {command: ['true'], name: b}]", "--slots",
				"2")
			pids := []int{r.up(t, 0), r.up(t, 1)}
			if err := r.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			r.end(t, c.code)
			if c.code > 0 {
				wantSaid(t, r.stderr.String(), "trainyard: interrupted; jobs that go on running: 2, nothing new "+
					"starts; the same command takes up "+r.state()+" again\n")
			}
			if r.stdout.Len() > 0 {
				t.Errorf("a table of jobs that go on:\n%s", r.stdout.String())
			}
			for _, pid := range pids {
				if err := syscall.Kill(pid, 0); err != nil {
					t.Errorf("process %d: %v", pid, err)
				}
			}
			r.start(t)
			r.release(t)
			r.end(t, term.ExitOK)
			wantSaid(t, r.stderr.String(), "trainyard: going on with ", "job 0 a-1: finished",
				"job 2 b: attempt 1 runs on slot")
			wantSaid(t, r.stdout.String(), "3 of 3 jobs finished")
			if strings.Contains(r.stderr.String(), "attempt 2") {
				t.Errorf("a job was started again:\n%s", r.stderr.String())
			}
		})
	}
}

// Ensure that a job is cancelled by number or name, whatever it does, and that what cannot be cancelled is
// distinguished; that a second run cannot have the folder meanwhile.
func TestCancel(t *testing.T) {
	t.Parallel()
	r := startLive(t, `jobs: [{command: WAITING, name: a, count: 2}, {command: ['true'], name: b}, {command: `+
		`WAITING, name: c}, {command: ['true'], name: d, submit: 1h}]`,
		"--slots", "3", "--quiet", "--json")
	r.up(t, 0)
	r.up(t, 1)
	r.up(t, 3)
	_, said := trainyard(t, term.ExitConflict, "run", filepath.Join(r.dir, "jobs.yaml"))
	wantSaid(t, said, "in use by another trainyard (process "+strconv.Itoa(r.Process.Pid)+")")
	_, said = trainyard(t, term.ExitOK, "cancel", "--state", r.state(), "a-2")
	wantSaid(t, said, "job 1 (a-2) is cancelled\n")
	_, _ = trainyard(t, term.ExitOK, "cancel", "--state", r.state(), "3")
	_, said = trainyard(t, term.ExitNotFound, "cancel", "--state", r.state(), "unknown")
	wantSaid(t, said, `job "unknown": no such job`)
	_, said = trainyard(t, term.ExitRefused, "cancel", "--state", r.state(), "d")
	wantSaid(t, said, `job "d": not submitted yet`)
	_, _ = trainyard(t, term.ExitNotFound, "cancel", "--state", r.state(), "--", "-1")
	_, _ = trainyard(t, term.ExitNotFound, "cancel", "--state", r.state(), "99999999999")
	await(t, "b is done", func() bool {
		err := exec.CommandContext(t.Context(), filepath.Join(programs, "trainyard"), "cancel", "--state", r.state(),
			"b").Run()
		exit := (*exec.ExitError)(nil)
		return errors.As(err, &exit) && exit.ExitCode() == term.ExitConflict
	})
	_, said = trainyard(t, term.ExitConflict, "cancel", "--state", r.state(), "b")
	wantSaid(t, said, `job "b": done already`)
	if err := r.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	r.end(t, -1)
	_, said = trainyard(t, term.ExitUnreachable, "cancel", "--state", r.state(), "a-1")
	wantSaid(t, said, fmt.Sprintf("no trainyard runs there; what started it takes it up again: `trainyard serve "+
		"--state %s`, or the same `trainyard run` with --state %[1]s\n", r.state()))
	_, _ = trainyard(t, term.ExitUnreachable, "cancel", "--state", filepath.Join(r.dir, "nowhere"), "a-1")
}

// Ensure that a command which is interrupted says the command line that takes its folder up again, and that this does:
// the job runs once.
func TestDetachCommand(t *testing.T) {
	t.Parallel()
	r := &live{dir: t.TempDir()}
	t.Cleanup(func() {
		if err := endJobs(r.dir); err != nil {
			t.Error(err)
		}
	})
	script := "echo x >> started; until [ -e go ]; do sleep 0.02; done; echo \"it's over\""
	r.args = []string{"run", "--slots", "2", "--gpus=1-2", "--set", "*.min_run=0", "--", "sh", "-c", script}
	within := func(cmd *exec.Cmd) {
		cmd.Dir, cmd.Stdout, cmd.Stderr = r.dir, &r.stdout, &r.stderr
		cmd.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), client.StateVariable+"=")
		r.Cmd = cmd
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	within(exec.CommandContext(t.Context(), filepath.Join(programs, "trainyard"), r.args...))
	await(t, "the job is up", func() bool { _, err := os.Stat(filepath.Join(r.dir, "started")); return err == nil })
	if err := r.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	r.end(t, term.ExitInterrupted)
	folders, err := filepath.Glob(filepath.Join(r.dir, "sh-*.state"))
	if err != nil || len(folders) != 1 {
		t.Fatalf("%v, %v", folders, err)
	}
	folder := filepath.Base(folders[0])
	line := fmt.Sprintf(`trainyard run --slots=2 --gpus=1-2 '--set=*.min_run=0' --state=%s -- sh -c '%s'`, folder,
		strings.ReplaceAll(script, "'", `'\''`))
	wantSaid(t, r.stderr.String(), "\n"+line+"\ntrainyard: interrupted; jobs that go on running: 1, nothing new "+
		"starts; the command above takes up "+folder+" again\n")
	r.release(t)
	within(exec.CommandContext(t.Context(), "sh", "-c", line))
	r.end(t, term.ExitOK)
	wantSaid(t, r.stderr.String(), "trainyard: going on with "+folder)
	if began, err := os.ReadFile(filepath.Join(r.dir, "started")); err != nil || string(began) != "x\n" {
		t.Errorf("it started %q, %v", began, err)
	}
}

// Ensure that each start of a command without --state has a folder of its own, and runs it, however soon they follow
// each other.
func TestCommandFolders(t *testing.T) {
	t.Parallel()
	const starts = 6
	dir := t.TempDir()
	var all sync.WaitGroup
	for range starts {
		all.Go(func() {
			cmd := exec.CommandContext(t.Context(), filepath.Join(programs, "trainyard"), "run", "--slots", "1",
				"--quiet", "--", "sh", "-c", "echo x >> ran")
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	all.Wait()
	folders, err := filepath.Glob(filepath.Join(dir, "sh-*.state"))
	if err != nil || len(folders) != starts {
		t.Errorf("folders %v, %v, want %d", folders, err, starts)
	}
	if ran, err := os.ReadFile(filepath.Join(dir, "ran")); err != nil || len(ran) != 2*starts {
		t.Errorf("it ran %d times, %v, want %d", len(ran)/2, err, starts)
	}
}

// Ensure that a job which waits is cancelled at once and never starts, that the others go on, and that it is reported
// in the table and the document.
func TestCancelWaiting(t *testing.T) {
	t.Parallel()
	r := startLive(t, "jobs: [{command: WAITING, name: a}, {command: WAITING, name: b}, {command: ['true'], name: c}]",
		"--slots", "1")
	r.up(t, 0)
	_, said := trainyard(t, term.ExitOK, "cancel", "--state", r.state(), "b", "1")
	wantSaid(t, said, "job 1 (b) is cancelled\njob 1 (b) is cancelled\n")
	r.release(t)
	r.end(t, term.ExitOK)
	wantSaid(t, r.stdout.String(), "2 of 3 jobs finished", "cancelled")
	if _, err := os.Stat(filepath.Join(r.dir, "up.1")); err == nil ||
		strings.Contains(r.stderr.String(), "job 1 b: attempt") {
		t.Errorf("b was started:\n%s", r.stderr.String())
	}
}
