package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// records returns the lines of the ledger, each cut into its words.
func records(t *testing.T, dir string) [][]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "ledger.log"))
	if err != nil {
		t.Fatal(err)
	}
	var lines [][]string
	for line := range strings.Lines(string(data)) {
		lines = append(lines, strings.Fields(line))
	}
	return lines
}

// Ensure that two runs with one device, or one job, in common are found while the first lives, and that neither others
// nor later ones are.
func TestLedgerFindsOverlap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := func(job, devices string) []string {
		return []string{"TRAINER_LEDGER=" + dir, "TRAINYARD_JOB_ID=" + job, "TRAINYARD_ATTEMPT=2",
			"TRAINYARD_DEVICES=" + devices}
	}
	short := []string{"--steps", "1", "--batch", "1"}
	first := start(t, env("a", "gpu0,node 1/gpu1"), "--step-time", "1h").begun()
	start(t, env("b", "gpu2,node 1/gpu1"), short...).wantCode(exitOverlap)
	start(t, env("a", "gpu3"), short...).wantCode(exitOverlap)
	other := start(t, env("c", "gpu2,gpu3"), short...).wantCode(exitDone)
	first.signal(syscall.SIGKILL).wantCode(-1)
	later := start(t, env("a", "gpu0"), short...).wantCode(exitDone)

	pid := func(p *process) string { return strconv.Itoa(p.Cmd.Process.Pid) }
	want := []string{
		"start a 2 " + pid(first) + " START BOOT NANOS gpu0,node%201%2Fgpu1",
		"overlap b 2 PID device-node%201%2Fgpu1.lock NANOS",
		"overlap a 2 PID job-a.lock NANOS",
		"start c 2 " + pid(other) + " START BOOT NANOS gpu2,gpu3",
		"end c 2 " + pid(other) + " 0 1 NANOS",
		"start a 2 " + pid(later) + " START BOOT NANOS gpu0",
		"end a 2 " + pid(later) + " 0 1 NANOS",
	}
	got := records(t, dir)
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d: %v", len(got), len(want), got)
	}
	for i, line := range want {
		wantRecord(t, got[i], strings.Fields(line))
	}
}

// wantRecord compares word by word. Words in capitals stand for any number, or id.
func wantRecord(t *testing.T, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("record %v, want %v", got, want)
		return
	}
	for i, w := range want {
		switch w {
		case "START", "NANOS", "PID":
			if n, err := strconv.ParseInt(got[i], 10, 64); err != nil || n <= 0 {
				t.Errorf("record %v has %s %q, want a number > 0", got, w, got[i])
			}
		case "BOOT":
			if len(got[i]) != 36 {
				t.Errorf("record %v has boot id %q, want 36 characters", got, got[i])
			}
		default:
			if got[i] != w {
				t.Errorf("record %v has %q, want %q", got, got[i], w)
			}
		}
	}
}

// Ensure that resuming is recorded, and that every end that is not a kill is, with its code and step.
func TestLedgerRecordsEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := []string{"TRAINER_LEDGER=" + dir, "TRAINYARD_JOB_ID=5", checkpoints(t.TempDir())}
	args := []string{"--steps", "30", "--batch", "4", "--checkpoint-every", "10", "--fail-at", "15", "--fail-once"}
	start(t, env, args...).wantCode(exitFailed)
	start(t, env, append(args, "--step-time", "1h")...).begun().signal(syscall.SIGTERM).wantCode(exitPreempted)
	start(t, env, append(args, "--seed", "2")...).wantCode(exitError)
	start(t, env, args...).wantCode(exitDone)
	want := []string{
		"start 5 - PID START BOOT NANOS -", "end 5 - PID 3 15 NANOS",
		"start 5 - PID START BOOT NANOS -", "resume 5 - PID 10 NANOS", "end 5 - PID 75 10 NANOS",
		"start 5 - PID START BOOT NANOS -", "end 5 - PID 1 0 NANOS",
		"start 5 - PID START BOOT NANOS -", "resume 5 - PID 10 NANOS", "end 5 - PID 0 30 NANOS",
	}
	got := records(t, dir)
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d: %v", len(got), len(want), got)
	}
	for i, line := range want {
		wantRecord(t, got[i], strings.Fields(line))
	}
}

// Ensure that field 22 is found whatever the command is called.
func TestStartTicks(t *testing.T) {
	rest := "S"
	for i := 4; i <= 52; i++ {
		rest += fmt.Sprint(" ", i)
	}
	for _, name := range []string{"trainer", "a b", "a) S 1 2 (b"} {
		if got, err := startTicks("77 (" + name + ") " + rest + "\n"); err != nil || got != "22" {
			t.Errorf("command %q: %q, %v, want 22", name, got, err)
		}
	}
	if _, err := startTicks("77 (trainer) S 1"); err == nil {
		t.Error("a short line: no error")
	}
}
