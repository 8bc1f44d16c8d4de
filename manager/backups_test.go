package manager_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/driver/local/shim/shimtest"
	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/manager/access"
	"github.com/trainyard/trainyard/manager/backup"
	"github.com/trainyard/trainyard/manager/store"
	"github.com/trainyard/trainyard/sched"
)

// sound is a backup that was made, and its parts.
type sound struct {
	*rig
	bytes, log, tokens []byte
}

// newSound makes the backup of a folder with jobs and tokens.
func newSound(t *testing.T) *sound {
	r := newRig(t, "fifo", 2, blocked)
	r.runUntil(sched.AttemptStarted, 0)
	if err := os.WriteFile(filepath.Join(r.options.Dir, access.TokensName), []byte("[]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &sound{rig: r}
	s.bytes = s.made()
	if _, err := backup.Read(bytes.NewReader(s.bytes), func(name string, r io.Reader) error {
		b, err := io.ReadAll(r)
		if name == backup.Log {
			s.log = b
		} else {
			s.tokens = b
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return s
}

// made returns the bytes of a new backup.
func (s *sound) made() []byte {
	s.Helper()
	file := filepath.Join(s.TempDir(), "backup")
	b, err := manager.Backup(s.Context(), s.options.Dir, file, "test")
	if err != nil {
		s.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode() != 0o600 || info.Size() != b.Bytes || b.Jobs != 3 || b.Running != 1 || !b.Tokens {
		s.Errorf("%+v, %v %v, want a file of mode 0600 with three jobs, one of them running", b, info, err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		s.Fatal(err)
	}
	return text
}

// of writes a backup of other parts, as the program would.
func (s *sound) of(parts ...any) []byte {
	s.Helper()
	var out bytes.Buffer
	w, err := backup.NewWriter(&out, backup.Head{Version: "test"})
	for i := 0; err == nil && i < len(parts); i += 2 {
		err = w.Add(parts[i].(string), bytes.NewReader(parts[i+1].([]byte)))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		s.Fatal(err)
	}
	return out.Bytes()
}

// logWith returns the log changed by a statement.
func (s *sound) logWith(statement string) []byte {
	s.Helper()
	path := filepath.Join(s.TempDir(), "log.db")
	if err := os.WriteFile(path, s.log, 0o600); err != nil {
		s.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path)
	if err == nil {
		_, err = db.Exec(statement)
		err = errors.Join(err, db.Close())
	}
	b, bad := os.ReadFile(path)
	if err = errors.Join(err, bad); err != nil || bytes.Equal(b, s.log) {
		s.Fatalf("%s: %v", statement, err)
	}
	return b
}

// swapped returns b with the n-th byte of a text in it changed.
func swapped(b []byte, text string, n int) []byte {
	b = slices.Clone(b)
	b[bytes.Index(b, []byte(text))+n] ^= 1
	return b
}

// Promise 25: a backup that is not what was written is refused, with the place and what is wanted, and the folder stays
// as it was: not there, or empty.
func TestPromise25BrokenBackups(t *testing.T) {
	s := newSound(t)
	second := bytes.Index(s.bytes, []byte(`{"part":"tokens`))
	last := bytes.Index(s.bytes, []byte(`{"parts"`))
	replaced := func(old, new string) []byte { return bytes.Replace(s.bytes, []byte(old), []byte(new), 1) }
	broken := map[string]struct {
		bytes []byte
		says  string
	}{
		"empty":              {nil, "byte 0: it ends before its last line"},
		"of another program": {[]byte("PK\x03\x04 and more\n"), `byte 0: it does not start with {"trainyard_backup":1`},
		"no line":            {bytes.Repeat([]byte("x"), 1<<20), "byte 0: a line longer than 4096 bytes"},
		"of a later format": {replaced(`{"trainyard_backup":1`, `{"trainyard_backup":2`),
			"format 2, this Trainyard reads 1"},
		"a strange first line": {replaced(`"made":`, `"mode":`), "byte 0: its first line: json: unknown field"},
		"cut in the log":       {s.bytes[:second-100], fmt.Sprintf("byte %d: it ends after ", second-100)},
		"cut before the end":   {s.bytes[:last], fmt.Sprintf("byte %d: it ends before its last line", last)},
		"cut in a line":        {s.bytes[:last-len(s.tokens)-20], "it ends within a line"},
		"a bit of the log": {swapped(s.bytes, "SQLite format 3", 3000),
			"bytes of trainyard.db are not those that were written"},
		"a bit of the tokens": {swapped(s.bytes, `{"parts"`, -2),
			"bytes of tokens.json are not those that were written"},
		"a bit of a line": {swapped(s.bytes, `"version":"`, 12),
			"what stands before the last line is not what was written"},
		"more behind the end": {append(slices.Clone(s.bytes), 'x'),
			fmt.Sprintf("byte %d: it goes on after its last line", len(s.bytes))},
		"a part twice": {s.of(backup.Log, s.log, backup.Log, s.log), "trainyard.db a second time"},
		"an unknown part": {s.of(backup.Log, s.log, "../../etc/passwd", s.log),
			`an unknown part "../../etc/passwd"`},
		"a part that leads out": {s.of(backup.Log, s.log, backup.Script(shim.EnvDigest(nil), ".."), s.log),
			"an unknown part"},
		"an environment of no digest": {s.of(backup.Log, s.log, backup.Env("../"+store.FileName), s.log),
			"an unknown part"},
		"another environment": {s.of(backup.Log, s.log, backup.Env(shim.EnvDigest(nil)), []byte("{}\n")),
			"not what has this SHA-256"},
		"another script": {s.of(backup.Log, s.log, backup.Script(shim.EnvDigest(nil), "a.py"), []byte("x")),
			"not what has this SHA-256"},
		"no log": {s.of(backup.Tokens, s.tokens), "it has no trainyard.db"},
		"another database": {s.of(backup.Log, []byte(strings.Repeat("once upon a time ", 500))),
			"trainyard.db in it: store: the log: "},
		"a newer log": {s.of(backup.Log, s.logWith("pragma user_version = 99")),
			"written by a newer Trainyard (version 99"},
		"a damaged event": {s.of(backup.Log, s.logWith("update log set line = replace(line, 'first', 'fir5t')")),
			"damaged"},
		"an event missing": {s.of(backup.Log, s.logWith("delete from log where seq = 3")), "log: "},
	}
	for name, x := range broken {
		for _, there := range []bool{false, true} {
			home := t.TempDir()
			file, dir := filepath.Join(home, "backup"), filepath.Join(home, "state")
			if err := os.WriteFile(file, x.bytes, 0o600); err != nil {
				t.Fatal(err)
			}
			if there {
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			_, err := manager.Restore(file, dir)
			if !errors.Is(err, backup.ErrBroken) || !strings.Contains(err.Error(), x.says) ||
				!strings.Contains(err.Error(), file) {
				t.Errorf("%s: %v, want %q", name, err, x.says)
			}
			list, err := os.ReadDir(dir)
			if there != (err == nil) || len(list) > 0 {
				t.Errorf("%s: the folder has %v, %v", name, list, err)
			}
		}
	}
}

// Promise 25: what was restored is the folder whose backup it is, job by job, and the manager goes on from there; no
// folder with anything in it is restored, nor one that is served, and no file is overwritten.
func TestPromise25Restored(t *testing.T) {
	s := newSound(t)
	home := t.TempDir()
	file, dir := filepath.Join(home, "backup"), filepath.Join(home, "state")
	if err := os.WriteFile(file, s.bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := manager.Backup(t.Context(), s.options.Dir, file, "test"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a backup onto a file: %v", err)
	}
	if _, err := manager.Backup(t.Context(), home, file+"2", "test"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a backup of a folder without a log: %v", err)
	}
	if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, s.bytes) {
		t.Errorf("the file that was there has changed: %v", err)
	}
	if list, err := os.ReadDir(home); err != nil || len(list) != 1 {
		t.Errorf("backups that failed leave %v, %v", list, err)
	}
	if _, err := manager.Restore(file, s.options.Dir); !errors.Is(err, store.ErrNotEmpty) {
		t.Errorf("a restore over a folder: %v", err)
	}
	before := s.log0()
	b, err := manager.Restore(file, dir)
	if err != nil || b.Jobs != 3 || b.Running != 1 || !b.Tokens {
		t.Fatalf("%+v, %v", b, err)
	}
	if tokens, err := os.ReadFile(filepath.Join(dir, access.TokensName)); err != nil || !bytes.Equal(tokens, s.tokens) {
		t.Errorf("tokens %q, %v", tokens, err)
	}
	if at := store.RestoredAsOf(dir); at.IsZero() || !at.Equal(b.Made) {
		t.Errorf("restored as of %v, want %v", at, b.Made)
	}
	for _, name := range []string{store.FileName, access.TokensName} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v, want mode 0600", name, info, err)
		}
	}
	if err := access.CheckFolder(dir); err != nil {
		t.Error(err)
	}
	old := shim.State(s.options.Dir)
	t.Cleanup(func() { shimtest.EndAll(t, old) })
	s.options.Dir = dir
	m := s.open()
	if log := s.rig.log(m); log != before || rows(m) != firstUp {
		t.Errorf("the log is %s, want %s; jobs %s", log, before, rows(m))
	}
	if _, err := manager.Restore(file, dir); !errors.Is(err, store.ErrNotEmpty) {
		t.Errorf("a restore over a served folder: %v", err)
	}
	s.finish(m)
	if got := rows(m); got != "first done finished 2, wide done finished 1, slim done finished 1" {
		t.Errorf("in the end %s", got)
	}
	s.close(m)
}

// log0 returns the log of the folder as it is.
func (s *sound) log0() string {
	s.Helper()
	m := s.open()
	defer s.close(m)
	return s.rig.log(m)
}

// Ensure that a backup that another user owns or can write is not restored: what is in it runs as whoever serves.
func TestOthersBackup(t *testing.T) {
	s := newSound(t)
	home := t.TempDir()
	file, dir := filepath.Join(home, "backup"), filepath.Join(home, "state")
	if err := os.WriteFile(file, s.bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := manager.Restore(file, dir); !errors.Is(err, access.ErrOthers) {
		t.Errorf("%v, want it refused", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want no folder", err)
	}
}

// Ensure that a log that no manager can start from is not backed up: who relies on the backup would find out too late.
func TestDamagedIsNotBackedUp(t *testing.T) {
	r := newRig(t, "fifo", 2, blocked)
	r.runUntil(sched.AttemptStarted, 0)
	r.execute("update log set line = replace(line, 'first', 'fir5t') where seq = 2")
	file := filepath.Join(t.TempDir(), "backup")
	_, err := manager.Backup(t.Context(), r.options.Dir, file, "test")
	if err == nil || !strings.Contains(err.Error(), "doctor --repair") {
		t.Errorf("%v, want it refused with what repairs", err)
	}
	if list, _ := os.ReadDir(filepath.Dir(file)); len(list) > 0 {
		t.Errorf("it leaves %v", list)
	}
}
