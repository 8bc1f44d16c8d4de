//go:build linux

package procs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// Ensure that a look knows who handles a signal: by a handler or by blocking it, but neither by ignoring it nor by
// default; what a script is run by, whatever its name; who is stopped; and of the environment the variables asked for.
func TestLook(t *testing.T) {
	eachMode(t, func(t *testing.T, g *Group, marker string) {
		dir := t.TempDir()
		script := filepath.Join(dir, "a (script) x")
		if err := os.WriteFile(script, []byte("#!/bin/bash\ntrap : TERM; while :; do sleep 0.1; done\n"),
			0o700); err != nil { //nolint:gosec // it is run
			t.Fatal(err)
		}
		waiter := exec.Command("/usr/bin/env", "--block-signal=TERM", "sleep", marker)
		waiter.Env = []string{"LOCAL_RANK=3", "RANK=1", "LOCAL_RANKS=7"}
		hard := bash("kill -STOP $$; sleep $1", marker)
		commands := []*exec.Cmd{exec.Command(script), waiter, bash(`trap "" TERM; exec sleep $1`, marker), hard,
			zoo("nap", marker)}
		for _, cmd := range commands {
			start(t, g, cmd)
		}
		want := []string{"bash handles [a (script) x] map[]", "sleep handles [sleep] map[LOCAL_RANK:3]",
			"sleep [sleep] map[]", "bash stopped [bash] map[]", "procs.test handles [procs.test] map[]"}
		for i, cmd := range commands {
			got := ""
			await(t, want[i], func() bool {
				got = ""
				members, err := g.Look(syscall.SIGTERM, "LOCAL_RANK", "OMPI_COMM_WORLD_RANK")
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range members {
					if m.PID == cmd.Process.Pid {
						got = described(&m)
					}
				}
				return got == want[i]
			})
			members, err := g.Look(syscall.SIGUSR2)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range members {
				if m.PID == cmd.Process.Pid && m.Handles != (i == 4) { // Go's runtime handles all there are
					t.Errorf("%s: handles SIGUSR2 %v", want[i], m.Handles)
				}
			}
		}
	})
}

func described(m *Member) string {
	text := m.Program
	if m.Handles {
		text += " handles"
	}
	if m.Stopped {
		text += " stopped"
	}
	return fmt.Sprintf("%s [%s] %v", text, m.Name, m.Env)
}
