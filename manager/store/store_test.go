package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/trace"
)

// header is that of the logs here.
var header = eventlog.Header{Version: "test", Origin: "2026-01-02T03:04:05Z", Zone: "UTC", Trace: "jobs 1234",
	Cluster: "here", System: "fifo",
	Settings: map[string]string{"min_run": "300"}, ShareLimit: 1}

// open opens a folder until the test ends.
func open(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// begin opens a new folder with a log of a header.
func begin(t testing.TB, dir string) *Store {
	t.Helper()
	s := open(t, dir)
	if err := s.Begin(header); err != nil {
		t.Fatal(err)
	}
	return s
}

func closed(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// batchEvents returns how many events the n-th batch of these tests has, so that half a batch shows.
func batchEvents(n uint64) int { return 1 + int(n*7%5) }

// write writes batches first to last; seq is that of the last event before them, and then of the last one written.
func write(w *Writer, seq *uint64, first, last uint64) error {
	for n := first; n <= last; n++ {
		w.BeginBatch()
		for range batchEvents(n) {
			*seq++
			w.Log(nil, &sched.Event{Seq: *seq, Time: sched.Time(n), Kind: sched.Ticked})
		}
		if err := w.EndBatch(); err != nil {
			return err
		}
	}
	return nil
}

// text returns the log as a file.
func text(s *Store) (string, error) {
	lines, err := s.Lines()
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(lines)
	return string(b), errors.Join(err, lines.Close())
}

var errHalf = errors.New("half a batch")

// wholeBatches returns the number of the last batch of a log, if it is batches 1 to that one, each of them whole, else
// errHalf.
func wholeBatches(log string) (last uint64, err error) {
	r, err := eventlog.NewReader(strings.NewReader(log), "log")
	if err != nil {
		return 0, err
	}
	events := 0
	for rec, err := range r.Records() {
		if err != nil {
			return 0, err
		}
		if rec.Batch != last {
			if last > 0 && events != batchEvents(last) || rec.Batch != last+1 {
				return 0, fmt.Errorf("%w: batch %d after %d events of batch %d", errHalf, rec.Batch, events, last)
			}
			last, events = rec.Batch, 0
		}
		events++
	}
	if last > 0 && events != batchEvents(last) {
		return 0, fmt.Errorf("%w: the log ends after %d events of batch %d", errHalf, events, last)
	}
	return last, nil
}

// Ensure that the log reads back as the file that LogWriter writes, to the byte, within a run and after it.
func TestReadsBackWhatLogWriterWrites(t *testing.T) {
	jobs := trace.Testbed(1)
	jobs.Jobs = jobs.Jobs[:60]
	machine, err := cluster.Load("4x4")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := open(t, dir)
	if begun, err := s.Begun(); begun || err != nil {
		t.Errorf("a new log has started: %v, %v", begun, err)
	}
	if err := s.Begin(header); err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	file := eventlog.NewWriter(&want, header)
	sim := simulate.Request{Trace: jobs, Cluster: machine, System: "tiresias-las",
		Sinks: []eventlog.Sink{file, s.Writer(0)}}
	if _, err := sim.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"within a run", "after it"} {
		if begun, err := s.Begun(); !begun || err != nil {
			t.Errorf("%s: started %v, %v", when, begun, err)
		}
		if got, err := text(s); err != nil || got != want.String() {
			t.Errorf("%s: %d bytes that are not the %d of LogWriter, %v", when, len(got), want.Len(), err)
		}
		closed(t, s)
		s = open(t, dir)
	}
}

// Ensure that each epoch is higher than all before it, in this process and in those to come.
func TestEpochRises(t *testing.T) {
	dir := t.TempDir()
	for want := int64(1); want < 7; want++ {
		s := open(t, dir)
		for range 2 {
			if got, err := s.NextEpoch(0); got != want || err != nil {
				t.Fatalf("epoch %d, %v, want %d", got, err, want)
			}
			want++
		}
		want--
		closed(t, s)
	}
}

// Ensure that one process at a time has a folder, and that the other hears which.
func TestBusy(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "open")
	s := begin(t, dir)
	_, err := Open(dir)
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), fmt.Sprintf("(process %d)", os.Getpid())) {
		t.Errorf("got %v, want ErrBusy with process %d", err, os.Getpid())
	}
	closed(t, s)
	closed(t, open(t, dir))
}

// Ensure that a folder of something else is refused and left as it is, and so is one that lost its log.
func TestForeign(t *testing.T) {
	foreign, lost := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "thesis.tex"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	closed(t, begin(t, lost))
	for _, name := range []string{FileName, "lock"} {
		if err := os.Remove(filepath.Join(lost, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(lost, "jobs"), 0o700); err != nil {
		t.Fatal(err)
	}
	for dir, there := range map[string]string{foreign: "thesis.tex", lost: "jobs"} {
		_, err := Open(dir)
		if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "there is "+there) {
			t.Errorf("got %v, want ErrForeign with %s", err, there)
		}
		if _, err := os.Stat(filepath.Join(dir, FileName)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("there is a database now: %v", err)
		}
	}
}

// Ensure that a database without a header is not taken for new in a folder in which a manager has been at work.
func TestHeaderLost(t *testing.T) {
	dir := t.TempDir()
	closed(t, open(t, dir))
	if err := os.WriteFile(filepath.Join(dir, "epoch"), []byte("3"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	if err := s.Begin(header); !errors.Is(err, ErrForeign) {
		t.Errorf("got %v, want ErrForeign", err)
	}
}

// Ensure that what a crash leaves of a folder before it has a log does not stand in the way of the next manager.
func TestCrashWhileMade(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"lock", newName, newName + "-journal"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, open(t, dir)) // and dies here, before it has started
	s := begin(t, dir)
	if last := batches(t, s); last != 0 {
		t.Errorf("%d batches in a new log", last)
	}
	if _, err := os.Stat(filepath.Join(dir, newName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", newName, err)
	}
}

// Ensure that a database of a newer Trainyard, of something else, or empty is refused, and not changed.
func TestNotOurs(t *testing.T) {
	for _, c := range []struct {
		name, want string
		make       func(t *testing.T, path string)
	}{
		{"newer", "newer Trainyard (version 3, this one knows 2)",
			func(t *testing.T, path string) { execute(t, path, "pragma user_version = 3") }},
		{"of something else", "no log of a Trainyard",
			func(t *testing.T, path string) { execute(t, path, "pragma user_version = 0") }},
		{"empty", "is empty", func(t *testing.T, path string) { truncate(t, path, 0) }},
		{"text", "not a database (26); put a copy of the file from before back, or go on from a backup in an empty " +
			"folder by `trainyard serve --restore FILE`", func(t *testing.T, path string) {
			if err := os.WriteFile(path, bytes.Repeat([]byte("once upon a time "), 1000), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			closed(t, begin(t, dir))
			path := filepath.Join(dir, FileName)
			c.make(t, path)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s, err := Open(dir)
			if err == nil {
				closed(t, s)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), FileName) {
				t.Errorf("got %v, want an error about %s with %q", err, FileName, c.want)
			}
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
				t.Errorf("the file has changed: %v", err)
			}
		})
	}
}

func execute(t testing.TB, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec(statement)
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

func truncate(t testing.TB, path string, size int64) {
	t.Helper()
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

// Ensure that the name of a folder is taken as it is, whatever it would mean in the address of a database.
func TestPaths(t *testing.T) {
	for _, name := range []string{"a b", "50%", "%41", "why?mode=ro", "x#y", "a?b#c%3f d", "ü&=;'\""} {
		dir := filepath.Join(t.TempDir(), name)
		s := begin(t, dir)
		seq := uint64(0)
		if err := write(s.Writer(0), &seq, 1, 2); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		closed(t, s)
		if info, err := os.Stat(filepath.Join(dir, FileName)); err != nil || info.Size() == 0 {
			t.Errorf("%q: %v", name, err)
		}
		if last := batches(t, open(t, dir)); last != 2 {
			t.Errorf("%q: %d batches, want 2", name, last)
		}
	}
}

// batches returns the number of batches in a log that must be whole.
func batches(t testing.TB, s *Store) uint64 {
	t.Helper()
	log, err := text(s)
	if err != nil {
		t.Fatal(err)
	}
	last, err := wholeBatches(log)
	if err != nil {
		t.Fatal(err)
	}
	return last
}
