//go:build handover

package freeze

import (
	"maps"
	"os"
	"testing"
)

// OldBinaryVar names the program that state folders are handed over from, and back to: an older build of cmd/trainyard.
const OldBinaryVar = "TRAINYARD_OLD_BINARY"

// Ensure that a manager of the present program takes over the running jobs of an older one without a restart, and that
// the older one takes all of them back, with what was submitted meanwhile and every byte of the log.
func TestHandBack(t *testing.T) {
	old := os.Getenv(OldBinaryVar)
	if old == "" {
		t.Fatalf("%s is not set, want the path of an older program; make handover BASE=COMMIT builds one", OldBinaryVar)
	}
	dir := unpackState(t, oldState)
	m := dir.serve(t, old, sameSystem...)
	m.stands(t, inOldState)
	log := m.keeps(t, dir.read(t, "log.jsonl"))
	m.stop(t)

	m = dir.serve(t, program, sameSystem...)
	m.stands(t, inOldState)
	m.do(t, "submit", "--name", "added", "--", "true")
	want := maps.Clone(inOldState)
	want["added"] = job{ID: len(want), State: "done", Outcome: "finished", Attempt: 1}
	m.do(t, "cancel", "elastic")
	want["elastic"] = job{ID: 9, State: "done", Outcome: "cancelled", Attempt: 2}
	m.stands(t, want)
	log = m.keeps(t, log)
	m.stop(t)

	m = dir.serve(t, old, sameSystem...)
	m.stands(t, want)
	m.keeps(t, log)
	m.end(t)
}
