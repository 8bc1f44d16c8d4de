package jobs

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that a program or folder that is not there is reported when a job is submitted, by the job's own PATH, each
// kind once, and that nothing is said of what is there or known only later.
func TestWarnMissing(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"there": 0o700, "plain": 0o600} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	job := func(dir, path string, command ...string) jobfile.Job {
		j := jobfile.Job{Spec: sched.JobSpec{Name: "j"}, Task: task.Task{Command: command, Dir: dir}}
		if path != "" {
			j.Task.Env = map[string]string{"PATH": path}
		}
		return j
	}
	for _, c := range []struct {
		jobs []jobfile.Job
		want []string // in its lines
	}{
		{[]jobfile.Job{job(dir, "", "sh", "-c", "true"), job(dir, dir, "there"), job(dir, "", "./there"),
			job(dir, "", "$TRAINYARD_RUN_DIR/x")}, nil},
		{[]jobfile.Job{job(dir, "", "no-such-program-1"), job(dir, "", "no-such-program-1")},
			[]string{"job j will fail as things are: command no-such-program-1: not found in PATH"}},
		{[]jobfile.Job{job(dir, dir, "sh")}, []string{"command sh: not found in PATH (" + dir}},
		{[]jobfile.Job{job(dir, "", "./plain")}, []string{"is not executable"}},
		{[]jobfile.Job{job(dir, "", "./gone")}, []string{"gone: no such file or directory, want a program"}},
		{[]jobfile.Job{job(dir+"/gone", "", "sh")}, []string{"folder to run in: "}},
		{[]jobfile.Job{job(dir, "", "./1"), job(dir, "", "./2"), job(dir, "", "./3"), job(dir, "", "./4"),
			job(dir, "", "./5")}, []string{"/1", "/2", "/3", "so it is with others"}},
		{[]jobfile.Job{{Task: task.Task{Command: []string{"sh"}, Dir: dir, Notify: []task.Notify{{Webhook: dir + "/no"},
			{Run: dir + "/there"}, {Run: dir + "/plain"}}}}},
			[]string{"/no: no such file", "/plain\": permission denied"}},
	} {
		var said bytes.Buffer
		cmd := newSubmit()
		cmd.SetErr(&said)
		warnMissing(cmd, c.jobs)
		lines := strings.Split(strings.TrimSuffix(said.String(), "\n"), "\n")
		if said.Len() == 0 {
			lines = nil
		}
		if len(lines) != len(c.want) {
			t.Errorf("%q, want %d lines", lines, len(c.want))
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(lines[i], want) {
				t.Errorf("%q, want %q", lines[i], want)
			}
		}
	}
}
