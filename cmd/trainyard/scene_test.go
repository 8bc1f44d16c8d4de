package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/cli/term"
)

// bystander is one at another machine: it knows a lab by a context alone, whose command is the connection.
type bystander struct {
	t   *testing.T
	env []string
	dir string
}

func newBystander(t *testing.T, state string) *bystander {
	t.Helper()
	b := &bystander{t: t, dir: t.TempDir()}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "TRAINYARD_") && !strings.HasPrefix(v, "XDG_") {
			b.env = append(b.env, v)
		}
	}
	b.env = append(b.env, "XDG_CONFIG_HOME="+t.TempDir(), "XDG_STATE_HOME="+t.TempDir())
	connect := filepath.Join(programs, "trainyard") + " connect --state " + state
	b.types(term.ExitOK, "context", "add", "lab", "--command", connect)
	return b
}

func (b *bystander) command(args []string) *exec.Cmd {
	cmd := exec.CommandContext(b.t.Context(), filepath.Join(programs, "trainyard"), args...)
	cmd.Dir, cmd.Env = b.dir, b.env
	return cmd
}

// types runs a command to its end, which must be with the code, and returns what it says.
func (b *bystander) types(code int, args ...string) string {
	b.t.Helper()
	cmd := b.command(args)
	text, err := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != code {
		b.t.Fatalf("%q: %v, want code %d:\n%s", args, err, code, text)
	}
	return string(text)
}

// lab is types of a verb about the lab.
func (b *bystander) lab(args ...string) string {
	b.t.Helper()
	return b.types(term.ExitOK, append([]string{"--context", "lab"}, args...)...)
}

// follows starts a verb about the lab, and returns once it has written a line.
func (b *bystander) follows(args ...string) *reader {
	b.t.Helper()
	x := &reader{live: &live{dir: b.dir, args: append([]string{"--context", "lab"}, args...)}}
	x.Cmd = b.command(x.args)
	x.Cmd.Stderr = &x.stderr
	out, err := x.StdoutPipe()
	if err == nil {
		err = x.Start()
	}
	if err != nil {
		b.t.Fatal(err)
	}
	x.out = out
	x.until(b.t, "\n")
	return x
}

// Ensure that one at another machine submits jobs to a lab by a context, sees them, asks why one waits, and follows
// output and list while the server is killed and started again.
func TestSceneByContext(t *testing.T) {
	t.Parallel()
	r := startServing(t, "--slots", "4")
	b := newBystander(t, r.state())
	const job = `echo one; until [ -e go ]; do sleep 0.02; done; echo two`
	jobs := "jobs: [{name: t, count: 10, command: [sh, -c, '" + job + "']}]"
	if err := os.WriteFile(filepath.Join(b.dir, "jobs.yaml"), []byte(jobs), 0o600); err != nil {
		t.Fatal(err)
	}
	wantSaid(t, b.lab("submit", "jobs.yaml"), "10 jobs")
	wantSaid(t, b.lab("ps"), "t-10", "waiting")
	wantSaid(t, b.lab("why", "7"), "job 7 (t-8) needs 1 slot, none is free")
	wantSaid(t, b.lab("top"), "slot", "t-10")
	logs, listed := b.follows("logs", "3", "-f"), b.follows("ps", "-w", "-o", "csv")
	if err := r.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	r.end(t, -1)
	r.start(t)
	if err := os.WriteFile(filepath.Join(b.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := logs.rest(t, term.ExitOK); got != "one\ntwo\n" {
		t.Errorf("logs 3 -f: %q, want each line once", got)
	}
	b.lab("wait", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
	if err := listed.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	wantSaid(t, listed.rest(t, term.ExitOK), "waiting", "running")
	if list := b.lab("ps", "-a", "-o", "csv"); strings.Count(list, ",finished,") != 10 {
		t.Errorf("not all have finished, each once:\n%s", list)
	}
	wantSaid(t, b.types(term.ExitUsage, "--context", "lap", "ps"), `did you mean "lab"?`)
}
