//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/trainyard/trainyard/cli/term"
)

// Ensure that a person at a terminal is asked before an edit stops a job that would lose its work by that, that nothing
// is done without a yes, and that -y asks nothing.
func TestEditAsks(t *testing.T) {
	t.Parallel()
	r := startServing(t, "--slots", "2")
	_, _ = trainyard(t, term.ExitOK, "submit", "--state", r.state(), "--gpus", "2", "--name", "wide", "--", "sleep",
		"1000")
	await(t, "it has something to lose", func() bool {
		said, _ := trainyard(t, term.ExitOK, "why", "--state", r.state(), "wide")
		return strings.Contains(said, "would lose")
	})
	edit := func(answer string, code int, want string, more ...string) {
		t.Helper()
		args := append([]string{"edit", "--state", r.state(), "wide", "gpus=1"}, more...)
		cmd, keys, written := screenOf(t, nil, args...)
		if answer != "" {
			await(t, "it asks", func() bool { return strings.Contains(written(), "of its run. Change it? [y/N] ") })
			if _, err := keys.WriteString(answer); err != nil {
				t.Fatal(err)
			}
		}
		_ = cmd.Wait()
		await(t, want, func() bool { return strings.Contains(written(), want) })
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Errorf("exit code %d after %q, want %d: %s", got, answer, code, written())
		}
	}
	edit("\n", term.ExitInterrupted, "is not changed")
	edit("n\n", term.ExitInterrupted, "is not changed")
	_, _ = trainyard(t, term.ExitOK, "edit", "--state", r.state(), "wide", "gpus=1-2")
	said, _ := trainyard(t, term.ExitOK, "why", "--state", r.state(), "wide")
	wantSaid(t, said, "runs on 2 of 1-2 slots")
	edit("y\n", term.ExitOK, "is changed: gpus at once")
	await(t, "it runs on one, with something to lose", func() bool {
		said, _ := trainyard(t, term.ExitOK, "why", "--state", r.state(), "wide")
		return strings.Contains(said, "runs on 1 slot") && strings.Contains(said, "would lose")
	})
	edit("", term.ExitOK, "is changed: gpus at once", "-y")
}
