//go:build !invariants

// What these tests run is Python, of which the tag changes nothing: once is enough.

package pytorch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/trainyard/internal/linestest"
)

const python = "/usr/bin/python3"

// torch returns what keeps this machine from running the example, "" for nothing.
var torch = sync.OnceValue(func() string {
	out, err := exec.Command(python, "-c", "import torch.distributed as d; assert d.is_available(), 'no "+
		"torch.distributed'").CombinedOutput()
	if err == nil {
		return ""
	}
	return fmt.Sprintf("%s has no PyTorch: apt-get install --no-install-recommends python3-torch (%v)\n%s", python, err,
		out)
})

func needTorch(t *testing.T) {
	t.Helper()
	if missing := torch(); missing != "" {
		t.Skip(missing)
	}
}

// place is where the attempts of a job find what they need.
type place struct{ checkpoints, run string }

func newPlace(t *testing.T) place {
	t.Helper()
	p := place{filepath.Join(t.TempDir(), "checkpoint"), filepath.Join(t.TempDir(), "run")}
	if err := os.Mkdir(p.run, 0o700); err != nil {
		t.Fatal(err)
	}
	return p
}

// ready returns the step and the file that the ready file of the attempt names, and removes it; false if there is none.
func (p place) ready(t *testing.T) (step int, file string, ok bool) {
	t.Helper()
	path := filepath.Join(p.run, ".ckpt-done")
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, "", false
	}
	var r struct {
		Step       int
		Checkpoint string
	}
	if err = errors.Join(err, json.Unmarshal(text, &r), os.Remove(path)); err != nil {
		t.Fatal(err)
	}
	return r.Step, r.Checkpoint, true
}

// job is an attempt that runs, in a process group of its own.
type job struct {
	*linestest.Process
	t *testing.T
}

// start runs the example by torchrun, on so many ranks.
func start(t *testing.T, p place, ranks int, env []string, args ...string) *job {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return launch(t, p, append([]string{"./run.sh"}, args...),
		append(env, fmt.Sprint("TRAINYARD_NUM_GPUS=", ranks), fmt.Sprint("MASTER_PORT=", port))...)
}

// alone runs the example on one rank, without torchrun: quicker, and it keeps its exit code.
func alone(t *testing.T, p place, args ...string) *job {
	t.Helper()
	return launch(t, p, append([]string{python, "train.py"}, args...))
}

func launch(t *testing.T, p place, command []string, env ...string) *job {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "OMP_NUM_THREADS=1", "PYTHONDONTWRITEBYTECODE=1",
		"TRAINYARD_CHECKPOINT_DIR=" + p.checkpoints, "TRAINYARD_RUN_DIR=" + p.run}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return &job{linestest.Start(t, cmd), t}
}

// reach reads until step n is reported.
func (j *job) reach(n int) *job {
	j.t.Helper()
	for j.Next() {
		if step, err := strconv.Atoi(field(j.Lines[len(j.Lines)-1], "step")); err == nil && step >= n {
			return j
		}
	}
	j.t.Fatalf("it ended (%v) before step %d:\n%s\n%s", j.Cmd.Wait(), n, strings.Join(j.Lines, "\n"), j.Stderr.String())
	return j
}

// signal sends s to the first process or, negative, to all of the group.
func (j *job) signal(pid int, s syscall.Signal) *job {
	j.t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		j.t.Fatal(err)
	}
	return j
}

func (j *job) first() int { return j.Cmd.Process.Pid }
func (j *job) all() int   { return -j.Cmd.Process.Pid }

// wantCode waits for the end; -1 is that of SIGKILL.
func (j *job) wantCode(want int) *job {
	j.t.Helper()
	for j.Next() {
	}
	_ = j.Cmd.Wait()
	if got := j.Cmd.ProcessState.ExitCode(); got != want {
		j.t.Fatalf("exit code %d, want %d:\n%s\n%s", got, want, strings.Join(j.Lines, "\n"), j.Stderr.String())
	}
	return j
}

// field returns the value of key=value in the line, or "".
func field(line, key string) string {
	for word := range strings.FieldsSeq(line) {
		if value, ok := strings.CutPrefix(word, key+"="); ok {
			return value
		}
	}
	return ""
}

// number is a field of the last line that has it.
func (j *job) number(key string) float64 {
	j.t.Helper()
	for i := len(j.Lines) - 1; i >= 0; i-- {
		if x, err := strconv.ParseFloat(field(j.Lines[i], key), 64); err == nil {
			return x
		}
	}
	j.t.Fatalf("no %s in\n%s", key, strings.Join(j.Lines, "\n"))
	return 0
}

// done returns the hash of a run that finished.
func (j *job) done() string {
	j.t.Helper()
	last := j.Lines[len(j.Lines)-1]
	if hash := field(last, "hash"); strings.HasPrefix(last, "TRAINYARD done ") && len(hash) == 64 {
		return hash
	}
	j.t.Fatalf("last line %q, want that of a finished run", last)
	return ""
}

// curve returns the loss of every step reported, by the samples seen after it.
func (j *job) curve() map[string]float64 {
	points := map[string]float64{}
	for _, line := range j.Lines {
		if loss, err := strconv.ParseFloat(field(line, "loss"), 64); err == nil && field(line, "samples") != "" {
			points[field(line, "samples")] = loss
		}
	}
	return points
}
