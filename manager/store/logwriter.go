package store

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/internal/failpoint"
	"github.com/trainyard/trainyard/sched"
)

// Writer is a Sink that writes events to the store: those of a batch in one transaction, synced by EndBatch.
type Writer struct {
	s      *Store
	batch  uint64
	rows   []row
	lines  []byte // of rows, one after the other
	insert *sql.Stmt
	check  eventlog.Checker
}

type row struct {
	seq uint64
	end int // in Writer.lines
}

var (
	_ eventlog.Sink    = (*Writer)(nil)
	_ eventlog.Batcher = (*Writer)(nil)
)

// Writer returns a sink that goes on after the given batch, the last one in the log.
func (s *Store) Writer(batch uint64) *Writer { return &Writer{s: s, batch: batch} }

// BeginBatch notes that the events to come belong to the next batch.
func (w *Writer) BeginBatch() { w.batch++ }

// Log takes an event.
func (w *Writer) Log(_ *sched.View, e *sched.Event) {
	w.lines = eventlog.AppendEvent(w.lines, w.batch, e)
	w.rows = append(w.rows, row{e.Seq, len(w.lines)})
}

// EndBatch makes the batch durable. After an error it may be or not, whole or not at all: the run must end, unless
// there was no room for it. Then it is not, and EndBatch may be called again. A
// batch with a line that would not be read back is not written: ErrUnreadable.
func (w *Writer) EndBatch() error {
	if len(w.rows) == 0 {
		return nil
	}
	failpoint.Here("commit.before")
	if err := w.commit(); err != nil {
		return fmt.Errorf("store: batch %d: %w", w.batch, err)
	}
	failpoint.Here("commit.after")
	w.rows, w.lines = w.rows[:0], w.lines[:0]
	return nil
}

func (w *Writer) commit() (err error) {
	if w.insert == nil { // it lives as long as the database
		if w.insert, err = w.s.db.Prepare("insert into log values (?, ?, ?, ?)"); err != nil {
			return err
		}
	}
	tx, err := w.s.db.Begin()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil { // after a commit that failed for want of room the connection may be inside it still
			_ = tx.Rollback()
			_, _ = w.s.db.Exec("rollback")
		}
	}()
	if fenced := w.s.own(tx); fenced != nil {
		return fenced
	}
	insert := tx.Stmt(w.insert)
	from := 0
	for _, r := range w.rows {
		line := w.lines[from:r.end]
		if bad := w.check.Refuses(line); bad != nil {
			return fmt.Errorf("event %d: %w: %w", r.seq, ErrUnreadable, bad)
		}
		if _, err := insert.Exec(int64(r.seq), int64(w.batch), line, sum(r.seq, w.batch, line)); err != nil {
			return err
		}
		from = r.end
	}
	failpoint.Here("commit.inside")
	return tx.Commit()
}

// own reports ErrFenced if a later manager has numbered itself: the lock of the folder was lost.
func (s *Store) own(tx *sql.Tx) error {
	now := int64(0)
	if err := tx.QueryRow("select cast(value as integer) from meta where name = 'epoch'").Scan(&now); err != nil {
		return err
	}
	if s.epoch != 0 && now != s.epoch {
		return fmt.Errorf("%w: epoch %d, ours is %d", ErrFenced, now, s.epoch)
	}
	return nil
}

// Page returns the lines of at most n events from the one numbered seq on. One that is not what was written is
// ErrDamaged, where it is the first; else the page ends before it. It may be called by anybody while the store is open.
func (s *Store) Page(seq uint64, n int) (lines [][]byte, err error) {
	rows, err := s.db.Query("select seq, batch, line, sum from log where seq >= ? order by seq limit ?", int64(seq), n)
	if err != nil {
		return nil, unread("log", err)
	}
	defer rows.Close()
	var r stored
	for rows.Next() {
		if err := r.scan(rows); err != nil {
			return nil, unread("log", err)
		}
		sound := r.sound(s.unsummed)
		if !sound && len(lines) > 0 {
			break
		}
		if !sound {
			return nil, fmt.Errorf("store: %w", damaged(r.seq))
		}
		lines = append(lines, bytes.Clone(r.line))
	}
	if err := rows.Err(); err != nil {
		return nil, unread("log", err)
	}
	return lines, nil
}

// Lines returns the whole log as a file of lines, the header first: what eventlog.NewReader reads. It is to be closed.
// A line that is not what was written is an error when its turn comes: ErrDamaged.
func (s *Store) Lines() (io.ReadCloser, error) { return s.LinesBefore(math.MaxInt64) }

// LinesBefore is Lines up to the event before the one numbered seq.
func (s *Store) LinesBefore(seq uint64) (io.ReadCloser, error) {
	header := ""
	if err := s.db.QueryRow("select value from meta where name = 'header'").Scan(&header); err != nil {
		return nil, unread("header", err)
	}
	rows, err := s.db.Query("select seq, batch, line, sum from log where seq < ? order by seq", int64(seq))
	if err != nil {
		return nil, unread("log", err)
	}
	return &lines{rows: rows, rest: []byte(header + "\n"), unsummed: s.unsummed, supposed: s.supposed}, nil
}

// LastWith returns the batch of the last event before the one numbered seq whose line has a text in it; 0 = none has.
// It is far quicker than to read the log.
func (s *Store) LastWith(text string, seq uint64) (batch uint64, err error) {
	var n int64
	err = s.db.QueryRow("select cast(batch as integer) from log where seq < ? and instr(line, ?) > 0 order by seq "+
		"desc limit 1",
		int64(seq), []byte(text)).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, unread("log", err)
	}
	return uint64(n), nil
}

// lines reads rows as lines.
type lines struct {
	rows *sql.Rows
	row  stored
	line []byte // under way
	rest []byte // of it

	unsummed uint64
	supposed map[uint64]StandIn // see Store.Suppose
	next     uint64             // the event after the last that was read
}

// Read reads on in the lines, each as it is in a file.
func (l *lines) Read(b []byte) (int, error) {
	for len(l.rest) == 0 {
		if !l.rows.Next() {
			if err := l.rows.Err(); err != nil {
				return 0, unread("log", err)
			}
			return 0, io.EOF
		}
		if err := l.row.scan(l.rows); err != nil {
			return 0, unread("log", err)
		}
		if l.line = l.line[:0]; len(l.supposed) > 0 {
			l.fill()
		}
		if x, ok := l.supposed[l.row.seq]; ok {
			l.line = append(l.line, x.Line()...)
		} else if !l.row.sound(l.unsummed) {
			return 0, fmt.Errorf("store: %w", damaged(l.row.seq))
		} else {
			l.line = append(l.line, l.row.line...)
		}
		l.line = append(l.line, '\n')
		l.rest, l.next = l.line, l.row.seq+1
	}
	n := copy(b, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// fill has what stands for events that are missing before the row read before it.
func (l *lines) fill() {
	for ; l.next < l.row.seq; l.next++ {
		if x, ok := l.supposed[l.next]; ok {
			l.line = append(append(l.line, x.Line()...), '\n')
		} else if l.next > 0 {
			break // the reader says what is missing
		}
	}
}

// Close ends the reading of rows.
func (l *lines) Close() error { return l.rows.Close() }

// unread is the error about reading a part of the database: ErrUnread, unless the database says that what is there is
// wrong. A disk or a memory that fails for a moment is no reason to take what was written for false.
func unread(part string, err error) error {
	if notDatabase(err) {
		return fmt.Errorf("store: %s: %w", part, err)
	}
	return fmt.Errorf("store: %s: %w: %w", part, ErrUnread, err)
}

// notDatabase reports whether err says that the file is no database, or no longer one.
func notDatabase(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (e.Code()&0xff == sqlite3.SQLITE_CORRUPT || e.Code()&0xff == sqlite3.SQLITE_NOTADB)
}

// advised is err with what to do about a file that no repair can use.
func advised(err error) error {
	if !notDatabase(err) {
		return err
	}
	return fmt.Errorf("%w; put a copy of the file from before back, or go on from a backup in an empty folder by "+
		"`trainyard serve --restore FILE`: jobs that run here go on to their end", err)
}
