package store

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that a log is read as its manager would, by one who manages nothing, while it is managed and afterwards, and
// that a folder without one stays as it is.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want that there is no log", err)
	}
	if list, _ := os.ReadDir(dir); len(list) > 0 {
		t.Errorf("left behind: %v", list)
	}
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if bad := s.Begin(eventlog.Header{Version: "v"}); bad != nil {
		t.Fatal(bad)
	}
	w := s.Writer(0)
	w.BeginBatch()
	w.Log(nil, &sched.Event{Seq: 1, Time: 1, Kind: sched.Ticked})
	if bad := w.EndBatch(); bad != nil {
		t.Fatal(bad)
	}
	own, err := s.Lines()
	if err != nil {
		t.Fatal(err)
	}
	want, err := io.ReadAll(own)
	if err != nil || own.Close() != nil || len(want) == 0 {
		t.Fatal(err)
	}
	same := func(when string) {
		t.Helper()
		r, err := Read(dir)
		if err != nil {
			t.Fatal(when, err)
		}
		got, err := io.ReadAll(r)
		if err != nil || string(got) != string(want) || r.Close() != nil {
			t.Errorf("%s: %q, %v, want %q", when, got, err, want)
		}
	}
	same("while it is managed")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	same("afterwards")
}

// Ensure that who may ask can be said in a folder before it has a log, and that nothing else may lie there.
func TestTokensFirst(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tokens.json"), []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
