package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cli/term"
)

// Ensure that no one serves a folder that another user owns or can write, or in the place of which he can put another,
// nor opens what runs as root to a group; and that each is named.
func TestServeRefusesOthersFolders(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to give folders away")
	}
	t.Parallel()
	const stranger = 12345
	jobs := filepath.Join(t.TempDir(), "jobs.yaml")
	if err := os.WriteFile(jobs, []byte("jobs: [{command: ['true']}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spoil func(parent, state string) error
		says  string
		run   bool // refused to `run` as well
	}{
		"owner": {func(_, state string) error {
			return os.Chown(state, stranger, -1)
		}, "belongs to uid:12345", true},
		"mode": {func(_, state string) error { return os.Chmod(state, 0o777) }, "all may write it", true},
		"parent": {func(parent, _ string) error {
			return os.Chown(parent, stranger, -1)
		}, "belongs to uid:12345", false},
	} {
		parent := t.TempDir()
		state := filepath.Join(parent, "state")
		_, _ = trainyard(t, term.ExitOK, "run", jobs, "--slots", "1", "--state", state)
		if err := c.spoil(parent, state); err != nil {
			t.Fatal(err)
		}
		_, said := trainyard(t, term.ExitPermission, "serve", "--slots", "1", "--state", state)
		if !strings.Contains(said, c.says) {
			t.Errorf("%s: %s, want %q", name, said, c.says)
		}
		if c.run {
			_, _ = trainyard(t, term.ExitPermission, "run", jobs, "--slots", "1", "--state", state)
		}
	}
	_, said := trainyard(t, term.ExitRefused, "serve", "--slots", "1", "--group", "100", "--state", t.TempDir())
	if !strings.Contains(said, "serves as root") {
		t.Error(said)
	}
}

// startLimited serves a folder, with so many open files at most.
func startLimited(t *testing.T, files int, flags ...string) *live {
	t.Helper()
	r := &live{dir: t.TempDir()}
	t.Cleanup(func() {
		if err := endJobs(r.dir); err != nil {
			t.Error(err)
		}
	})
	program := filepath.Join(programs, "trainyard")
	r.args = append([]string{"serve", "--state", r.state()}, flags...)
	r.Cmd = exec.CommandContext(t.Context(), "sh", append([]string{"-c",
		fmt.Sprintf(`ulimit -n %d; exec "$0" "$@"`, files), program}, r.args...)...)
	r.Stdout, r.Stderr = &r.stdout, &r.stderr
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "it answers", func() bool {
		return exec.CommandContext(t.Context(), program, "nodes", "--state", r.state()).Run() == nil
	})
	return r
}

// Ensure that `ps` answers although someone holds as many connections to the socket as he can, and makes more all the
// time, where the manager may open 256 files; and that who follows goes on.
func TestPsUnderFlood(t *testing.T) {
	t.Parallel()
	const files = 256
	r := startLimited(t, files, "--slots", "2")
	until := "until [ -e " + filepath.Join(r.dir, "go") + " ]; do sleep 0.1; done"
	followed := r.partner(t, "run", "--", "sh", "-c", until)
	await(t, "it runs", func() bool {
		out, _ := trainyard(t, term.ExitOK, "ps", "--state", r.state())
		return strings.Contains(out, "running")
	})
	ctx, stop := context.WithCancel(t.Context())
	var flooding sync.WaitGroup
	var tried atomic.Int32
	for range 4 {
		flooding.Go(func() {
			var mine []net.Conn
			for ctx.Err() == nil {
				tried.Add(1)
				c, err := new(net.Dialer).DialContext(ctx, "unix", filepath.Join(r.state(), "control"))
				if err != nil { // none can wait any more
					time.Sleep(time.Millisecond)
					continue
				}
				if mine = append(mine, c); len(mine) > 4*files {
					_ = mine[0].Close()
					mine = mine[1:]
				}
			}
			for _, c := range mine {
				_ = c.Close()
			}
		})
	}
	t.Cleanup(func() { stop(); flooding.Wait() })
	await(t, "it is flooded", func() bool { return tried.Load() > 8*files })
	for i := range 10 {
		out, _ := trainyard(t, term.ExitOK, "ps", "--state", r.state())
		if !strings.Contains(out, "running") {
			t.Errorf("ps %d: %s", i, out)
		}
	}
	r.release(t)
	followed.end(t, term.ExitOK)
}

// Ensure that 40 `run` at once by one user all end, and as many `wait` and `logs -f`, though there are places for fewer
// streams than that.
func TestManyRuns(t *testing.T) {
	t.Parallel()
	const many = 40
	r := startLimited(t, 256, "--slots", "4")
	until := "until [ -e " + filepath.Join(r.dir, "go") + " ]; do sleep 0.2; done"
	var all []*live
	for range many {
		all = append(all, r.partner(t, "run", "--", "sh", "-c", until))
	}
	await(t, "all are submitted", func() bool {
		n := 0
		for _, x := range all {
			if strings.Contains(x.stderr.String(), "leaves it alone") {
				n++
			}
		}
		return n == many
	})
	for _, verb := range [][]string{{"wait", "39"}, {"logs", "39", "-f"}} {
		for range many / 2 {
			all = append(all, r.partner(t, verb...))
		}
	}
	r.release(t)
	for _, x := range all {
		x.end(t, term.ExitOK)
	}
}
