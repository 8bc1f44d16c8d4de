package freeze

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// oldState is the state folder of a manager, packed after the manager stopped and while two of its jobs ran. log.jsonl
// in it is what `trainyard events` printed before. Four jobs were submitted under fifo, and six more after
// tiresias-gittins had taken over. Jobs finished, failed, were preempted, paused, cancelled, and waited for another; a
// slot was drained. Wherever the folder is unpacked, the processes of the jobs that ran are gone.
const oldState = "testdata/state/state.tar.gz"

// inOldState is how its jobs must stand, once those that ran were started again.
var inOldState = map[string]job{
	"done-1":    {ID: 0, State: "done", Outcome: "finished", Attempt: 1},
	"done-2":    {ID: 1, State: "done", Outcome: "finished", Attempt: 1},
	"done-3":    {ID: 2, State: "done", Outcome: "finished", Attempt: 1},
	"failed":    {ID: 3, State: "done", Outcome: "failed", Attempt: 1},
	"runs":      {ID: 4, State: "running", Attempt: 3},
	"wide":      {ID: 5, State: "waiting", Attempt: 1},
	"paused":    {ID: 6, State: "held", Attempt: 1},
	"cancelled": {ID: 7, State: "done", Outcome: "cancelled", Attempt: 1},
	"held":      {ID: 8, State: "held", Attempt: 0},
	"elastic":   {ID: 9, State: "running", Attempt: 2},
}

// sameSystem are the flags of the manager that wrote oldState last. It knew none of the last three keys.
var sameSystem = []string{"--slots", "4", "--system", "tiresias-gittins",
	"--set", "*.min_run=0", "--set", "*.thresholds=2,6"}

// asBefore are the keys that it did not know, as it decided.
var asBefore = []string{"--set", "*.unsaved=stop", "--set", "*.loss_rail=off", "--set", "*.keep_free=off"}

// Ensure that the present program takes over a state folder of an older one, under the same system and another, knows
// all jobs, keeps every byte of the log, and replays it.
func TestTakeOver(t *testing.T) {
	for name, flags := range map[string][]string{
		"same":  slices.Concat(sameSystem, asBefore),
		"newer": sameSystem,
		"other": {"--slots", "4", "--system", "las", "--set", "*.min_run=0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := unpackState(t, oldState)
			m := dir.serve(t, program, flags...)
			m.stands(t, inOldState)
			m.keeps(t, dir.read(t, "log.jsonl"))
			if name == "same" {
				for _, seq := range decisions(t, dir.read(t, "log.jsonl")) {
					m.do(t, "explain", fmt.Sprint(seq))
				}
			}
			if out := m.do(t, "logs", "done-1"); string(out) != "TRAINYARD step=1\nTRAINYARD done\n" {
				t.Errorf("logs done-1: %q", out)
			}
			m.end(t)
		})
	}
}

// oldSchemas are state folders as oldState, one of each schema that was released: of the database, whose rows had no
// checksum in version 1, and of the log. Their write-ahead logs are as the manager left them.
var oldSchemas = map[string]string{
	"database 1, log v1": "testdata/state/schema1.tar.gz",
	"database 2, log v2": "testdata/state/schema2.tar.gz",
	"database 2, log v3": "testdata/state/schema3.tar.gz",
}

// inOldSchemas is how their jobs must stand.
var inOldSchemas = map[string]job{
	"done-1": {ID: 0, State: "done", Outcome: "finished", Attempt: 1},
	"failed": {ID: 1, State: "done", Outcome: "failed", Attempt: 1},
	"runs":   {ID: 2, State: "running", Attempt: 2},
	"wide":   {ID: 3, State: "held", Attempt: 0},
	"held":   {ID: 4, State: "done", Outcome: "finished", Attempt: 1},
}

// Promise 25: the present program takes over a folder of each schema that was released: all jobs are known, each byte
// of the log is kept and replays, and what is backed up of it is restored.
func TestPromise25EachSchema(t *testing.T) {
	for name, archive := range oldSchemas {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flags := []string{"--slots", "2", "--system", "fifo-skip"}
			dir := unpackState(t, archive)
			if out, code, stderr := dir.exit(t, program, "backup", "--state", "state", "x.backup"); code != 0 {
				t.Fatalf("backup before it is served: exit code %d\n%s%s", code, out, stderr)
			}
			m := dir.serve(t, program, flags...)
			m.stands(t, inOldSchemas)
			m.keeps(t, dir.read(t, "log.jsonl"))
			if out := m.do(t, "logs", "done-1"); string(out) != "TRAINYARD step=1\nTRAINYARD done\n" {
				t.Errorf("logs done-1: %q", out)
			}
			m.end(t)
			if err := os.RemoveAll(filepath.Join(string(dir), "state")); err != nil {
				t.Fatal(err)
			}
			m = dir.serve(t, program, append(flags, "--restore", "x.backup")...)
			m.stands(t, inOldSchemas)
			m.keeps(t, dir.read(t, "log.jsonl"))
			m.end(t)
		})
	}
}

// stands waits until all jobs stand as they must.
func (m *manager) stands(t *testing.T, want map[string]job) {
	t.Helper()
	m.until(t, fmt.Sprintf("jobs stand as %v", want), func() bool {
		got := m.jobs(t)
		for name, j := range want {
			if j.Name = name; got[name] != j {
				return false
			}
		}
		return len(got) == len(want)
	})
}

// keeps reports a log that does not start with the events of an earlier one, or does not replay.
func (m *manager) keeps(t *testing.T, earlier []byte) []byte {
	t.Helper()
	log := m.do(t, "events")
	if events := behindHeader(t, earlier); !bytes.HasPrefix(behindHeader(t, log), events) {
		t.Errorf("the log does not start with the %d events that were there", bytes.Count(events, []byte("\n")))
	}
	if err := os.WriteFile(filepath.Join(string(m.folder), "now.jsonl"), log, 0o666); err != nil {
		t.Fatal(err)
	}
	if out, code, stderr := m.exit(t, m.program, "replay", "now.jsonl"); code != 0 {
		t.Errorf("replay: exit code %d\n%s%s", code, out, stderr)
	}
	return log
}

// behindHeader returns the events of a log.
func behindHeader(t *testing.T, log []byte) []byte {
	t.Helper()
	_, events, ok := bytes.Cut(log, []byte("\n"))
	if !ok || len(events) == 0 {
		t.Fatalf("no events in the log %.200q", log)
	}
	return events
}

// decisions returns the numbers of the last two decisions in a log.
func decisions(t *testing.T, log []byte) (seqs []int) {
	t.Helper()
	for line := range strings.Lines(string(behindHeader(t, log))) {
		var e struct {
			Seq   int
			Event string
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Event == "decided" {
			seqs = append(seqs, e.Seq)
		}
	}
	if len(seqs) < 6 {
		t.Fatalf("%d decisions in the log, want at least 6", len(seqs))
	}
	return seqs[len(seqs)-2:]
}
