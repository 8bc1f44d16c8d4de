package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/manager/store"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that a manager whose lock was lost cannot write any more once another has numbered itself, also if that one
// has nothing to write.
func TestWriterIsFenced(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir)
	if err := first.Begin(eventlog.Header{}); err != nil {
		t.Fatal(err)
	}
	if _, err := first.NextEpoch(0); err != nil {
		t.Fatal(err)
	}
	w := first.Writer(0)
	put := func(seq uint64) error {
		w.BeginBatch()
		w.Log(nil, &sched.Event{Seq: seq, Kind: sched.Ticked})
		return w.EndBatch()
	}
	if err := put(1); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "lock")); err != nil {
		t.Fatal(err)
	}
	second := open(t, dir)
	if _, err := second.NextEpoch(0); err != nil {
		t.Fatal(err)
	}
	if err := put(2); !errors.Is(err, store.ErrFenced) {
		t.Errorf("the first manager writes on: %v, want ErrFenced", err)
	}
}

func open(t *testing.T, dir string) *store.Store {
	t.Helper()
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
