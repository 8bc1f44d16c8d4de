package store

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// versionOne makes the folder of a log as version 1 of the database had it, and returns its text.
func versionOne(t *testing.T) (dir, log string) {
	t.Helper()
	dir = t.TempDir()
	s, seq := begin(t, dir), uint64(0)
	if err := write(s.Writer(0), &seq, 1, 40); err != nil {
		t.Fatal(err)
	}
	log, err := text(s)
	if err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	execute(t, filepath.Join(dir, FileName), "alter table log drop column sum; drop table aside; "+
		"delete from meta where name = 'unsummed'; pragma user_version = 1")
	return dir, log
}

// shape says of which version a database is, by its tables: it may not say one and be the other.
func shape(path string) (version int, err error) {
	db, err := sql.Open("sqlite", "file:"+uri(path))
	if err != nil {
		return 0, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	sums, asides := 0, 0
	err = errors.Join(db.QueryRow("pragma user_version").Scan(&version),
		db.QueryRow("select count(*) from pragma_table_info('log') where name = 'sum'").Scan(&sums),
		db.QueryRow("select count(*) from sqlite_schema where name = 'aside'").Scan(&asides))
	if err == nil && (version == 2) != (sums == 1) || (version == 2) != (asides == 1) {
		err = fmt.Errorf("version %d with %d columns of checksums, %d tables aside", version, sums, asides)
	}
	return version, err
}

// Promise 25: a manager that is killed while it brings a log of an earlier version to the present one leaves it as it
// was, or as it is to be, after every write and in the middle of each: the write-ahead log ends anywhere, or the
// database has some of its pages already. Whoever comes next has every event.
func TestPromise25KilledMigration(t *testing.T) {
	dir, log := versionOne(t)
	path := filepath.Join(dir, FileName)
	old := contents(t, path)
	if v, err := shape(path); v != 1 || err != nil {
		t.Fatalf("version %d, %v, want 1", v, err)
	}
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir) // brings it to the present version, which is in the write-ahead log until it is closed
	wal := contents(t, path+"-wal")
	closed(t, s)
	moved := contents(t, path)
	if len(wal) == 0 || string(old) == string(moved) {
		t.Fatalf("%d bytes in the write-ahead log, want a migration in it", len(wal))
	}
	versions := make(map[int]int)
	killed := func(what string, database, ahead []byte) {
		t.Helper()
		home := t.TempDir()
		path := filepath.Join(home, FileName)
		lay(t, path, database, ahead)
		v, err := shape(path)
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		versions[v]++
		lay(t, path, database, ahead)
		s := open(t, home)
		if now, err := text(s); err != nil || now != log {
			t.Errorf("%s: %d bytes of log, %v, want %d", what, len(now), err, len(log))
		}
		closed(t, s)
		if v, err := shape(path); v != version || err != nil {
			t.Errorf("%s: later version %d, %v", what, v, err)
		}
	}
	const step = 509 // prime: in the middle of frames, their heads and pages
	for n := 0; n <= len(wal); n += step {
		killed(fmt.Sprintf("the first %d bytes ahead", n), old, wal[:n])
	}
	killed("all ahead", old, wal)
	for n := 0; n <= len(moved); n += page / 2 { // into the database, while all of it is still ahead
		part := append(append([]byte(nil), moved[:n]...), old[min(n, len(old)):]...)
		killed(fmt.Sprintf("the first %d bytes of the database", n), part, wal)
	}
	if versions[1] == 0 || versions[2] == 0 {
		t.Errorf("versions that kills left: %v, want both", versions)
	}
	t.Logf("kills left versions %v; write-ahead log %d bytes, database %d", versions, len(wal), len(moved))
}

// lay makes a database with its write-ahead log.
func lay(t *testing.T, path string, database, ahead []byte) {
	t.Helper()
	err := errors.Join(os.WriteFile(path, database, 0o600), os.WriteFile(path+"-wal", ahead, 0o600))
	if err != nil {
		t.Fatal(err)
	}
}

func contents(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
