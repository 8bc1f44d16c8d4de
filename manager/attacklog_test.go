package manager_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/manager/store"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that an event which cannot be read is quarantined wherever it stands, where the log can do without it: the
// folder is served, all jobs keep their numbers, the one that runs goes on, and what is lost is said, each time.
func TestAttackUnreadableEvent(t *testing.T) {
	t.Parallel()
	const flip = "update log set line = cast(replace(cast(line as text), '%s', '%s') as blob) where cast(line as " +
		"text) " +
		"like '%%%s%%'"
	for name, c := range map[string]struct {
		statement string
		sums      bool
		says      string // the problem
		kept      bool   // the second job can be run
	}{
		"a start, flipped": {fmt.Sprintf(flip, `"attempt":1`, `"attempt":3`, `"event":"started"`), false,
			"checksum", true},
		"a start, no checksum": {`update log set sum = null where cast(line as text) like '%"event":"started"%'`,
			false, "", true},
		"a start, not read": {fmt.Sprintf(flip, `"attempt":1`, `"attempt":[`, `"event":"started"`), true,
			"attempt", true},
		"an arrival, flipped": {fmt.Sprintf(flip, "second", "sec0nd", "second"), false, "job 1 arrived by it",
			false},
		"an arrival, not read": {fmt.Sprintf(flip, `"name"`, `"nome"`, "second"), true, "job 1 arrived by it", false},
		"an arrival, no kind": {fmt.Sprintf(flip, `"arrived"`, `"derived"`, "second"), true, "job 1 arrived by it",
			false},
		"an arrival, missing": {`delete from log where cast(line as text) like '%second%'`, false, "it is missing",
			false},
		"a text of 30 MB": {fmt.Sprintf(flip, `"attempt":1`, `"attempt":1,"text":"LONG"`, `"event":"started"`),
			true, "bytes", true},
		"a start, other numbers": {fmt.Sprintf(flip, `"seq":`, `"seq":1`, `"event":"started"`), true,
			"it says that it is", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := stopped(t)
			r.execute(strings.ReplaceAll(c.statement, "LONG", strings.Repeat("x", 30<<20)))
			if c.sums {
				r.execute("update log set sum = null where seq > 1")
				r.sums()
			}
			for range 2 {
				s := r.serve()
				if list := strings.Join(s.m.Problems(), "\n"); !strings.Contains(list, "was quarantined") ||
					!strings.Contains(list, c.says) {
					t.Errorf("problems %q, want one with %q", list, c.says)
				}
				if rows := s.m.Board().Rows(); len(rows) != 3 || rows[0].Name != "first" || rows[2].Name != "third" ||
					c.kept != (rows[1].Name == "second") {
					t.Errorf("%+v, want three jobs by their numbers", rows)
				}
				s.until(0, "running", runs)
				_ = s.stop()
			}
			s := r.serve()
			if err := os.WriteFile(filepath.Join(r.dir, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, id := range []sched.JobID{0, 2} {
				if row := s.until(id, "done", done); row.Outcome != sched.Finished || row.Attempts != 1 {
					t.Errorf("job %d: %+v", id, row)
				}
			}
			_ = s.stop()
			// and a repair has nothing more to do
			if done, err := manager.Repair(r.options.Dir); err != nil || done.Copy != "" {
				t.Errorf("%+v, %v, want nothing changed", done, err)
			}
		})
	}
}

// Ensure that a log which cannot do without an event is refused with the command that repairs, that this changes
// nothing while an attempt runs that the rest does not know of, and that the folder is served afterwards, with what was
// there before kept, and all that is lost said.
func TestAttackRepair(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"flipped": `update log set batch = batch + 1 where cast(line as text) like '%"ordered"%'`,
		"missing": `delete from log where cast(line as text) like '%"ordered"%'`,
		"contradiction": `update log set sum = null, line = cast(replace(cast(line as text), '"job":0', '"job":77') ` +
			`as blob) where cast(line as text) like '%"ordered"%'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := stopped(t)
			r.execute(statement)
			r.sums()
			for range 2 {
				if _, err := manager.Open(t.Context(), r.options); err == nil ||
					!strings.Contains(err.Error(), "trainyard doctor --repair") {
					t.Fatalf("%v, want the command that repairs", err)
				}
			}
			before, err := os.ReadFile(filepath.Join(r.options.Dir, store.FileName))
			if err != nil {
				t.Fatal(err)
			}
			if _, bad := manager.Repair(r.options.Dir); bad == nil || !strings.Contains(bad.Error(), "job 0 runs") {
				t.Fatalf("%v, want that job 0 runs", bad)
			}
			if bad := os.WriteFile(filepath.Join(r.dir, "go"), nil, 0o600); bad != nil {
				t.Fatal(bad)
			}
			deadline := time.Now().Add(time.Minute)
			for ; shim.State(r.options.Dir).Held(0); time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("job 0 does not end")
				}
			}
			done2, err := manager.Repair(r.options.Dir)
			if err != nil {
				t.Fatal(err)
			}
			lost := strings.Join(done2.Lost, "\n")
			if done2.Jobs != 1 || !strings.Contains(lost, "job 1 (second) arrived later") ||
				!strings.Contains(lost, "job 2 (third)") || !strings.Contains(strings.Join(done2.Done, "\n"),
				"attempts of job 0 after number 0") {
				t.Errorf("%+v", done2)
			}
			copied, err := os.ReadFile(filepath.Join(done2.Copy, store.FileName))
			if err != nil || string(copied) != string(before) {
				t.Errorf("the copy has %d bytes, %v, want those of before", len(copied), err)
			}
			if _, err := os.Stat(filepath.Join(done2.Copy, "jobs", "0", "1", "output.log")); err != nil {
				t.Error(err)
			}
			s := r.serve()
			if row := s.until(0, "done", done); row.Outcome != sched.Finished || row.Attempts != 1 {
				t.Errorf("%+v", row)
			}
			if id := s.submit("jobs: [{command: ['true']}]"); id != 1 {
				t.Errorf("the next job is %d, want 1", id)
			}
			s.until(1, "done", done)
			_ = s.stop()
			if again, err := manager.Repair(r.options.Dir); err != nil || again.Copy != "" {
				t.Errorf("%+v, %v, want nothing more to repair", again, err)
			}
		})
	}
}

// Ensure that a job which writes a number of its own into its lock keeps no one from serving: a repair puts it right.
func TestAttackLockNumber(t *testing.T) {
	t.Parallel()
	r := stopped(t)
	if err := os.WriteFile(filepath.Join(r.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := r.serve()
	s.until(2, "done", done)
	_ = s.stop()
	lock := filepath.Join(shim.State(r.options.Dir).Job(0), "lock")
	if err := os.WriteFile(lock, []byte("999\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := r.open()
	if err := m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "trainyard doctor --repair") {
		t.Errorf("%v, want the command that repairs", err)
	}
	r.close(m)
	if _, err := manager.Repair(r.options.Dir); err != nil {
		t.Fatal(err)
	}
	s = r.serve()
	s.until(s.submit("jobs: [{command: ['true']}]"), "done", done)
	_ = s.stop()
}

// Ensure that a folder without anything of use is not taken for a new one, and that nothing is made where none is.
func TestRepairRefuses(t *testing.T) {
	t.Parallel()
	none := filepath.Join(t.TempDir(), "none")
	if _, err := manager.Repair(none); !os.IsNotExist(err) {
		t.Errorf("%v, want that there is none", err)
	}
	if _, err := os.Stat(none); !os.IsNotExist(err) {
		t.Error("a folder was made")
	}
	r := stopped(t)
	r.execute("update log set batch = batch + 1")
	for range 2 {
		if _, err := manager.Repair(r.options.Dir); err == nil || !strings.Contains(err.Error(), "copy") {
			t.Errorf("%v, want that nothing can be used", err)
		}
	}
	s := newRig(t, "fifo", 1, "jobs: [{command: [x]}]").serve()
	if _, err := manager.Repair(s.options.Dir); err == nil {
		t.Error("a folder that is served is repaired")
	}
}

// Ensure that a log which a newer Trainyard wrote is left as it is, by serve and by repair, and that both versions are
// named.
func TestNewerLogIsLeft(t *testing.T) {
	t.Parallel()
	want := "schema trainyard.log/v99 was written by a newer Trainyard, want " + eventlog.Schema + " or older"
	r := stopped(t)
	r.execute("update meta set value = replace(value, '" + eventlog.Schema + "', 'trainyard.log/v99')")
	was, err := os.ReadDir(r.options.Dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = manager.Repair(r.options.Dir)
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "copy") {
		t.Errorf("repair: %v, want %q", err, want)
	}
	if is, failed := os.ReadDir(r.options.Dir); failed != nil || len(is) != len(was) {
		t.Errorf("%v, %v, want %v", is, failed, was)
	}
	if _, err = manager.Open(t.Context(), r.options); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("serve: %v, want %q", err, want)
	}
}

// Ensure that a list of devices, or a number of the manager, that cannot be read is quarantined and made again: the
// folder is served, and what runs goes on.
func TestAttackListOfDevices(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"devices.json", "epoch"} {
		for what, horror := range map[string]func(path string) error{
			"no JSON": func(path string) error { return os.WriteFile(path, []byte("[{"), 0o600) },
			"empty":   func(path string) error { return os.WriteFile(path, nil, 0o600) },
			"largest": func(path string) error { return os.WriteFile(path, []byte("9223372036854775807"), 0o600) },
			"endless": func(path string) error { return os.Symlink("/dev/zero", path) },
			"folder":  func(path string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) },
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				t.Parallel()
				r := stopped(t)
				path := filepath.Join(r.options.Dir, name)
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				if err := horror(path); err != nil {
					t.Fatal(err)
				}
				s := r.serve()
				s.until(0, "running", runs)
				if err := os.WriteFile(filepath.Join(r.dir, "go"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
				for id := range sched.JobID(3) {
					if row := s.until(id, "done", done); row.Outcome != sched.Finished || row.Attempts != 1 {
						t.Errorf("job %d: %+v", id, row)
					}
				}
				_ = s.stop()
				if _, err := os.Lstat(path + shim.Unreadable); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
