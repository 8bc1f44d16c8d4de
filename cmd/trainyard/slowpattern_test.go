package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/cli/term"
)

// Ensure that a progress pattern that takes too long is dropped, that `why` says so, and that neither another job nor
// the end of the job waits until its output is read.
func TestSlowPattern(t *testing.T) {
	t.Parallel()
	r := startServing(t, "--slots", "2")
	const pattern = `(.*){1000}(?P<step>\d+)$` // reads some 3 kB a second
	file := filepath.Join(r.dir, "jobs.yaml")
	text := `jobs: [{name: slow, gpus: 2, grace: 1s, progress: {regex: '` + pattern + `'},
  command: [sh, -c, 'yes "$(head -c 3000 /dev/zero | tr "\0" a)" | head -c 30000000; sleep 1000']},
  {name: next, gpus: 2, command: ['true']}]`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _ = trainyard(t, term.ExitOK, "submit", "--state", r.state(), file)
	await(t, "why says that the pattern is dropped", func() bool {
		out, _ := trainyard(t, term.ExitOK, "why", "--state", r.state(), "--ahead", "0", "slow")
		return strings.Contains(strings.Join(strings.Fields(out), " "), "pattern took more than 100ms")
	})
	_, _ = trainyard(t, term.ExitOK, "cancel", "--state", r.state(), "slow")
	_, _ = trainyard(t, term.ExitOK, "wait", "--state", r.state(), "next")
}
