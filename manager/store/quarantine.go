package store

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// sum is the checksum of a row, of its numbers as well: a line under the number of another is damage.
func sum(seq, batch uint64, line []byte) int64 {
	numbers := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, seq), batch)
	castagnoli := crc32.MakeTable(crc32.Castagnoli) // made when it is asked for first, and kept
	return int64(crc32.Update(crc32.Checksum(numbers, castagnoli), castagnoli, line))
}

// stored is a row of the log as it is read back. SQLite keeps in a column what it is given, of whatever type: batch and
// sum are numbers unless the row is damaged.
type stored struct {
	seq        uint64
	batch, sum any          // sum nil: written by version 1, see Store.unsummed
	line       sql.RawBytes // until the next row
}

func (r *stored) scan(rows *sql.Rows) error {
	var seq any
	err := rows.Scan(&seq, &r.batch, &r.line, &r.sum)
	n, _ := seq.(int64) // the key of the table is a number, always
	r.seq = uint64(n)
	return err
}

// sound reports whether the row is what was written, as far as can be known: those up to unsummed may have no checksum.
func (r *stored) sound(unsummed uint64) bool {
	batch, is := r.batch.(int64)
	if !is {
		return false
	}
	if r.sum == nil {
		return r.seq <= unsummed
	}
	have, is := r.sum.(int64)
	return is && have == sum(r.seq, uint64(batch), r.line)
}

// unsummed returns the number of the last event that may have no checksum: it was written before there were any. It is
// noted when a database is made or first met.
func unsummed(db *sql.DB) (seq uint64, noted bool, err error) {
	var last int64
	err = db.QueryRow("select cast(value as integer) from meta where name = 'unsummed'").Scan(&last)
	if err == nil || !errors.Is(err, sql.ErrNoRows) {
		return uint64(last), err == nil, err
	}
	err = db.QueryRow("select coalesce((select min(seq) - 1 from log where sum is not null), " +
		"(select max(seq) from log), 0)").Scan(&last)
	return uint64(last), false, err
}

// Quarantined is an event that was taken out of the log, because it could not be believed.
type Quarantined struct {
	Seq uint64
	Why string
}

// Quarantined returns what was quarantined, in the order in which that was done.
func (s *Store) Quarantined() (list []Quarantined, err error) {
	rows, err := s.db.Query("select seq, why from aside order by rowid")
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var a Quarantined
		if err := rows.Scan(&a.Seq, &a.Why); err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		list = append(list, a)
	}
	return list, rows.Err()
}

// Last returns the number of the last event; 0 = there is none.
func (s *Store) Last() (seq uint64, err error) {
	if err := s.db.QueryRow("select coalesce(max(seq), 0) from log").Scan(&seq); err != nil {
		return 0, fmt.Errorf("store: log: %w", err)
	}
	return seq, nil
}

// Exclude takes the events from the one numbered seq to the end out of the log, durably. They are kept, see Aside.
func (s *Store) Exclude(seq uint64, why string) error {
	tx, err := s.db.Begin()
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	_, err = tx.Exec("insert into aside select seq, batch, line, sum, ? from log where seq >= ? order by seq", why,
		int64(seq))
	if err == nil {
		_, err = tx.Exec("delete from log where seq >= ?", int64(seq))
	}
	if err = errors.Join(err, tx.Commit()); err != nil {
		return fmt.Errorf("store: event %d cannot be quarantined: %w", seq, err)
	}
	return nil
}

// mostQuarantined is how many events may be quarantined at once: what the last writes can have held.
const mostQuarantined = 1000

// quarantineDamaged quarantines what is damaged at the end of the log: the last pages that were written. What was
// damaged in the middle is found when the log is read, and refused; so is a log of which nothing else is left, or more
// than last writes can have hit.
func (s *Store) quarantineDamaged() error {
	seq, err := s.damagedFrom()
	if err != nil || seq == 0 {
		return err
	}
	last, err := s.Last()
	if err != nil {
		return err
	}
	if seq == 1 || last-seq >= mostQuarantined {
		return damaged(seq)
	}
	return s.Exclude(seq, "its checksum is wrong")
}

// damaged is the error about an event that is not quarantined here, and what to do about it.
func damaged(seq uint64) error {
	return fmt.Errorf("event %d in %s is %w: its checksum is wrong; put a copy of the file from before back, or "+
		"have what can be read used by `trainyard doctor --repair`, or serve another folder (--state): "+
		"jobs that run here go on to their end", seq, FileName, ErrDamaged)
}

// damagedFrom returns the first of the damaged events at the end of the log; 0 = the last one is sound.
func (s *Store) damagedFrom() (seq uint64, err error) {
	rows, err := s.db.Query("select seq, batch, line, sum from log order by seq desc")
	if err != nil {
		return 0, fmt.Errorf("%s: %w", FileName, err)
	}
	defer rows.Close()
	var r stored
	for rows.Next() {
		if err := r.scan(rows); err != nil {
			return 0, fmt.Errorf("%s: %w", FileName, err)
		}
		if r.sound(s.unsummed) {
			return seq, nil
		}
		seq = r.seq
	}
	return seq, rows.Err()
}
