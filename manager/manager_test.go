package manager_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/driver/local/shim/shimtest"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/sched"
)

// TestMain makes this binary a shim where the driver starts it as one, and a manager where TestDoneJobsAreSmall does.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "shim" {
		os.Exit(shim.Main(shim.RunDir(os.Args[2])))
	}
	if len(os.Args) == 3 && os.Args[1] == "hold" {
		os.Exit(hold(os.Args[2]))
	}
	os.Exit(m.Run())
}

// rig is a state folder, the jobs it is for, and what its managers say.
type rig struct {
	*testing.T
	dir     string
	options manager.Options
	said    *bytes.Buffer
}

// newRig returns a folder for jobs, in which WAITING is a command that ends once there is a file go.
func newRig(t *testing.T, system string, slots int, jobs string) *rig {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	jobs = strings.ReplaceAll(jobs, "WAITING", "[sh, -c, 'until [ -e go ]; do sleep 0.02; done']")
	file, err := jobfile.Parse([]byte(jobs), filepath.Join(dir, "jobs.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, dir: dir, said: &bytes.Buffer{}}
	r.options = manager.Options{Dir: filepath.Join(dir, "state"), Jobs: file, Devices: device.Slots(slots),
		Place: "slots", System: system,
		Shim: []string{exe, "shim"},
		Log:  slog.New(slog.NewTextHandler(r.said, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	t.Cleanup(func() { shimtest.EndAll(t, shim.State(r.options.Dir)) })
	return r
}

// open opens the folder; the manager is closed when the test ends, if it is not before.
func (r *rig) open() *manager.Manager {
	r.Helper()
	m, err := manager.Open(r.Context(), r.options)
	if err != nil {
		r.Fatal(err)
	}
	return m
}

// runUntil runs a manager until the log has an event of a kind about a job, and lets go of the folder.
func (r *rig) runUntil(kind sched.EventKind, job sched.JobID) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
	defer cancel()
	r.options.Sinks = []eventlog.Sink{sinkFunc(func(_ *sched.View, e *sched.Event) {
		if e.Kind == kind && e.Job == job {
			cancel()
		}
	})}
	m := r.open()
	r.options.Sinks = nil
	if err := m.Run(ctx); !errors.Is(err, context.Canceled) {
		r.Fatalf("the run ended with %v", err)
	}
	r.close(m)
}

// finish lets the jobs end and runs a manager to the end.
func (r *rig) finish(m *manager.Manager) {
	r.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, "go"), nil, 0o600); err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
	defer cancel()
	if err := m.Run(ctx); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) close(m *manager.Manager) {
	r.Helper()
	if err := m.Close(); err != nil {
		r.Error(err)
	}
}

// log returns the log of a manager.
func (r *rig) log(m *manager.Manager) string {
	r.Helper()
	var b bytes.Buffer
	if err := m.WriteLog(&b); err != nil {
		r.Fatal(err)
	}
	return b.String()
}

// rows says how the jobs stand.
func rows(m *manager.Manager) string {
	var words []string
	for _, row := range m.Board().Rows() {
		words = append(words, fmt.Sprintf("%s %v %v %d", row.Name, row.State, row.Outcome, row.Attempts))
	}
	return strings.Join(words, ", ")
}

type sinkFunc func(v *sched.View, e *sched.Event)

func (f sinkFunc) Log(v *sched.View, e *sched.Event) { f(v, e) }
