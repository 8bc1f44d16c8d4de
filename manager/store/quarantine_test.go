package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// Promise 9: an event that is not what was written is quarantined where the log ends with it, and kept; in the middle
// of the log, or where nothing else is left, it is an error that says which event, each time.
func TestPromise09DamagedRows(t *testing.T) {
	const flip = "update log set line = cast(replace(cast(line as text), '\"time\":', '\"time\":1') as blob) where seq "
	for _, c := range []struct {
		name, damage string
		left         uint64 // events in the log; 0 = refused
		says         string
	}{
		{"the last", flip + "= 18", 17, "quarantined [18]"},
		{"the last three", flip + ">= 16", 15, "quarantined [16 17 18]"},
		{"its number of a batch", "update log set batch = 2 where seq = 18", 17, "quarantined [18]"},
		{"its batch, a word", "update log set batch = 'x' where seq = 18", 17, "quarantined [18]"},
		{"its batch, bytes", "update log set batch = x'00ff' where seq >= 17", 16, "quarantined [17 18]"},
		{"its line, a number", "update log set line = 3 where seq = 18", 17, "quarantined [18]"},
		{"its checksum, a word", "update log set sum = 'x' where seq = 18", 17, "quarantined [18]"},
		{"a word in the middle", "update log set sum = 'x' where seq = 7", 0, "event 7 in trainyard.db is damaged"},
		{"in the middle", flip + "= 7", 0, "event 7 in trainyard.db is damaged"},
		{"in the middle and the last", flip + "in (7, 18)", 0, "event 7 in"},
		{"all", flip + "> 0", 0, "event 1 in"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			s, seq := begin(t, dir), uint64(0)
			if err := write(s.Writer(0), &seq, 1, 6); err != nil || seq != 18 {
				t.Fatal(seq, err)
			}
			closed(t, s)
			execute(t, filepath.Join(dir, FileName), c.damage)
			for range 2 {
				s, err := Open(dir)
				log := ""
				if err == nil {
					log, err = text(s)
				}
				if c.left == 0 {
					if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), c.says) ||
						!strings.Contains(err.Error(), "another folder") {
						t.Errorf("got %v, want ErrDamaged with %q", err, c.says)
					}
				} else {
					var seqs []uint64
					list, quarantineErr := s.Quarantined()
					for _, a := range list {
						seqs = append(seqs, a.Seq)
					}
					if lines := strings.Count(log, "\n") - 1; err != nil || quarantineErr != nil ||
						lines != int(c.left) ||
						fmt.Sprint("quarantined ", seqs) != c.says {
						t.Errorf("%d events, quarantined %v, %v, %v; want %d and %s", lines, seqs, err, quarantineErr,
							c.left,
							c.says)
					}
				}
				if s != nil {
					closed(t, s)
				}
			}
		})
	}
}

// Ensure that an event without a checksum is damaged in a log that always had them, wherever it stands, and that one
// that could not be read back is not written.
func TestWithoutChecksum(t *testing.T) {
	dir := t.TempDir()
	s, seq := begin(t, dir), uint64(0)
	if err := write(s.Writer(0), &seq, 1, 6); err != nil {
		t.Fatal(err)
	}
	execute(t, filepath.Join(dir, FileName), "update log set sum = null where seq = 7")
	if lines, err := s.Page(7, 1); !errors.Is(err, ErrDamaged) {
		t.Errorf("%d lines, %v, want ErrDamaged", len(lines), err)
	}
	w := s.Writer(6)
	w.BeginBatch()
	w.Log(nil, &sched.Event{Seq: seq + 1, Time: 7, Kind: sched.Noted, Text: strings.Repeat("x", eventlog.MaxLine)})
	if err := w.EndBatch(); !errors.Is(err, ErrUnreadable) {
		t.Errorf("an event that is too long: %v, want ErrUnreadable", err)
	}
	if last, err := s.Last(); err != nil || last != seq {
		t.Errorf("the last event is %d, %v, want %d", last, err, seq)
	}
}

// Ensure that damage that comes while the log is open is not read as truth, however the log is read: a page ends before
// it, and one that starts with it is an error.
func TestDamagedPage(t *testing.T) {
	dir := t.TempDir()
	s, seq := begin(t, dir), uint64(0)
	if err := write(s.Writer(0), &seq, 1, 6); err != nil {
		t.Fatal(err)
	}
	execute(t, filepath.Join(dir, FileName), "update log set line = cast(replace(cast(line as text), '\"time\":', "+
		"'\"time\":1') as blob) where seq = 7")
	if lines, err := s.Page(1, 100); err != nil || len(lines) != 6 {
		t.Errorf("%d lines, %v, want the 6 before the damaged one", len(lines), err)
	}
	if lines, err := s.Page(7, 1); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "event 7 in") {
		t.Errorf("%d lines, %v, want ErrDamaged of event 7", len(lines), err)
	}
	if lines, err := s.Page(8, 3); err != nil || len(lines) != 3 {
		t.Errorf("%d lines, %v, want 3 behind it", len(lines), err)
	}
}

// Ensure that a log which cannot be read for a moment is distinguished from one that holds something wrong, through all
// that reads it: no one is to take what was written for false because a disk failed.
func TestUnread(t *testing.T) {
	dir := t.TempDir()
	s, seq := begin(t, dir), uint64(0)
	if err := write(s.Writer(0), &seq, 1, 600); err != nil { // more than is read at once
		t.Fatal(err)
	}
	all, err := text(s)
	if err != nil {
		t.Fatal(err)
	}
	_ = s.db.Close()
	_, page := s.Page(1, 1)
	_, lines := s.Lines()
	r, err := eventlog.NewReader(io.MultiReader(strings.NewReader(all[:len(all)/2]),
		iotest.ErrReader(unread("log", syscall.EIO))), "x")
	if err != nil {
		t.Fatal(err)
	}
	var midway error
	for _, err := range r.Records() {
		midway = err
	}
	for name, err := range map[string]error{"page": page, "lines": lines, "midway": midway} {
		if !errors.Is(err, ErrUnread) || errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v, want ErrUnread", name, err)
		}
	}
	closed(t, &Store{lock: s.lock})
	path := filepath.Join(dir, FileName)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 8 << 10; i < len(b); i++ { // behind the header and the first tables
		b[i] = 0xAA
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || errors.Is(err, ErrUnread) {
		t.Errorf("a file that was written over: %v, want an error that is not ErrUnread", err)
	}
}

// Ensure that a log of the first version is brought to the present one with all that is in it, and goes on.
func TestUpgrade(t *testing.T) {
	dir := t.TempDir()
	s, seq := begin(t, dir), uint64(0)
	if err := write(s.Writer(0), &seq, 1, 6); err != nil {
		t.Fatal(err)
	}
	before, err := text(s)
	if err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	execute(t, filepath.Join(dir, FileName), "alter table log drop column sum; drop table aside; pragma "+
		"user_version = 1")
	s = open(t, dir)
	if after, err := text(s); err != nil || after != before {
		t.Errorf("%d bytes, %v, want the %d from before", len(after), err, len(before))
	}
	if err := write(s.Writer(6), &seq, 7, 9); err != nil {
		t.Error(err)
	}
	closed(t, s)
	if last := batches(t, open(t, dir)); last != 9 {
		t.Errorf("%d batches, want 9", last)
	}
}
