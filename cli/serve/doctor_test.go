package serve

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/manager/store"
)

// Ensure that what cannot be planted is judged as it should.
func TestDoctorJudges(t *testing.T) {
	const gib = 1 << 30
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name  string
		found []finding
		state string
	}{
		{"much", diskFinding("/d", 90*gib, 100*gib, false), fine},
		{"little", diskFinding("/d", 1*gib, 100*gib, false), note},
		{"full", diskFinding("/d", 1<<20, 100*gib, false), wrong},
		{"no inodes", diskFinding("/d", 90*gib, 100*gib, true), wrong},
		{"cgroup", cgroupFinding("/sys/fs/cgroup/x"), fine},
		{"no cgroup", cgroupFinding(""), note},
		{"clock", clockFinding(at, at.Add(-time.Hour), true), fine},
		{"clock a little late", clockFinding(at, at.Add(time.Second), true), fine},
		{"clock late", clockFinding(at, at.Add(time.Hour), true), wrong},
		{"clock late, on its own", clockFinding(at, at.Add(time.Hour), false), wrong},
		{"clock on its own", clockFinding(at, time.Time{}, false), note},
		{"stuck", gpuFinding(&api.GPU{State: "stuck", Why: "4 GiB are not given back"}), wrong},
		{"missing", gpuFinding(&api.GPU{State: "missing"}), wrong},
		{"quarantined", gpuFinding(&api.GPU{State: "quarantined"}), wrong},
		{"drained", gpuFinding(&api.GPU{State: "drained"}), note},
		{"idle", gpuFinding(&api.GPU{State: "in-use", HeldIdle: true, By: "jupyter"}), note},
	} {
		f := c.found[0]
		if len(c.found) != 1 || f.State != c.state || (f.Do == "") != (c.state == fine) || f.Found == "" {
			t.Errorf("%s: %+v, want one that is %s", c.name, c.found, c.state)
		}
	}
	if all := gpuFinding(&api.GPU{State: "in-use"}); all != nil {
		t.Errorf("%+v of a GPU that is well", all)
	}
}

// Ensure that the log of a folder that no one serves is read to its end: one that cannot be is wrong.
func TestDoctorReadsTheLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s, err := store.Open(dir)
	if err == nil {
		err = errors.Join(s.Begin(eventlog.Header{System: "fifo"}), s.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if f := (&patient{dir: dir}).folder(); f[0].State != fine {
		t.Fatalf("%+v, want all to be well", f)
	}
	path := filepath.Join(dir, database)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 2048; i < len(b); i++ { // behind what says that it is a database
		b[i] = 'x'
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if f := (&patient{dir: dir}).folder(); f[0].State != wrong || !strings.Contains(f[0].Do, "--repair") {
		t.Errorf("%+v, want the log to be wrong", f)
	}
}
