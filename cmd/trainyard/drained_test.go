package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/term"
)

// losing is what drain says of the work that a job loses if it is put back in the queue.
var losing = regexp.MustCompile(` \(loses \d+ s of its run\)`)

// Ensure that drain names the jobs that go on, those that may not be stopped for others first, and that with --wait it
// returns once none of them is left, not before.
func TestDrainWaits(t *testing.T) {
	t.Parallel()
	r := startServing(t, "--slots", "3")
	for _, args := range [][]string{{"--name", "yields", "--preemptible", "true"}, {"--name", "plain"},
		{"--name", "apart"}} {
		args = append(append([]string{"submit", "--state", r.state()}, args...), "--", "sleep", "300")
		_, _ = trainyard(t, term.ExitOK, args...)
	}
	var slot string
	await(t, "the jobs are up", func() bool {
		out, _ := trainyard(t, term.ExitOK, "ps", "--state", r.state(), "--json")
		var doc api.Jobs
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Fatal(err)
		}
		up := 0
		for i := range doc.Jobs {
			if doc.Jobs[i].State == "running" {
				up++
			}
		}
		if up == 3 {
			slot = doc.Jobs[0].GPUs[0]
		}
		return up == 3
	})
	drain := func(gpus ...string) (said string, loses bool) {
		_, said = trainyard(t, term.ExitOK, append([]string{"drain", "--state", r.state()}, gpus...)...)
		bare := losing.ReplaceAllString(said, "")
		return bare, bare != said
	}
	await(t, "it says what is lost", func() bool { _, loses := drain(slot); return loses })
	said, _ := drain(slot)
	if !strings.Contains(said, "\njob 0 (yields) goes on; `trainyard requeue 0` ends it here\n") ||
		strings.Contains(said, "plain") {
		t.Errorf("of one slot it says %q, want its job named, and no other", said)
	}
	said, _ = drain()
	const protected = " may not be stopped for others, so that drain waits for its end; `trainyard requeue "
	wantSaid(t, said, "\njob 1 (plain)"+protected+"1` ends it here\njob 2 (apart)"+protected+"2` ends it here\n"+
		"job 0 (yields) goes on; ")

	cmd := exec.CommandContext(t.Context(), filepath.Join(programs, "trainyard"), "drain", "--wait", "--state",
		r.state())
	out := new(strings.Builder)
	cmd.Stderr = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	_, _ = trainyard(t, term.ExitOK, "requeue", "--state", r.state(), "0")
	_, _ = trainyard(t, term.ExitOK, "cancel", "--state", r.state(), "1")
	_, _ = trainyard(t, 10, "wait", "--state", r.state(), "1")
	select {
	case err := <-over:
		t.Errorf("it returned while job 2 was left: %v, %s", err, out)
	default:
	}
	_, _ = trainyard(t, term.ExitOK, "cancel", "--state", r.state(), "2")
	if err := <-over; err != nil || !strings.Contains(out.String(), "no job is left on it\n") {
		t.Errorf("%v, %s", err, out)
	}
	_, _ = trainyard(t, term.ExitOK, "cancel", "--state", r.state(), "0")
}
