package store

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// StandIn is an event that stands in the log where another cannot be read.
type StandIn struct {
	Seq   uint64
	Batch uint64
	Why   string      // what is wrong with the one that was there
	Kept  bool        // it is the one that was there, with its text cut; else all that it said is lost
	Event sched.Event // with its number
	// Spared: the kind of the one that was there can still be read, and the log can do without: it happens again, is
	// reported again, or is its user's to say again.
	Spared bool
	jobs   sched.JobID // that had arrived before
}

// Line is the event as a line of the log.
func (x *StandIn) Line() []byte { return eventlog.AppendEvent(nil, x.Batch, &x.Event) }

// spared are the kinds of events that a log can do without, see StandIn. Without a decision or an order it is not known
// who holds which GPU.
var spared = []sched.EventKind{sched.AttemptEnded, sched.AttemptStarted, sched.StartFailed, sched.Progressed,
	sched.EpochEnded, sched.NodeChanged, sched.GPUChanged, sched.PriceChanged, sched.Measured, sched.JobCommanded,
	sched.JobChanged, sched.Ticked, sched.Renewed, sched.Refused, sched.Noted}

// isSpared reports whether the kind of an event can be read in what is left of its line, and is spared.
func isSpared(line []byte) bool {
	return slices.ContainsFunc(spared, func(k sched.EventKind) bool { return hasKind(line, k) })
}

// hasKind reports whether what is left of the line of an event says that it is of a kind. Texts in it are quoted again.
func hasKind(line []byte, k sched.EventKind) bool {
	return bytes.Contains(line, fmt.Appendf(nil, `"event":%q`, k.String()))
}

// arrives makes of a tick the arrival of a job of which nothing else is known: it keeps its number, and cannot be
// started. It reports whether x was a tick that may be one.
func (x *StandIn) arrives() bool {
	if x.Event.Kind != sched.Ticked || x.Spared || x.Kept {
		return false
	}
	x.Spared = true
	x.Event.Kind, x.Event.Job = sched.JobArrived, x.jobs
	x.Event.Spec = &sched.JobSpec{Name: fmt.Sprintf("lost-%d", x.jobs), GPUs: sched.Rigid(1), Submit: x.Event.Time}
	x.Why += fmt.Sprintf("; job %d arrived by it: cancel what stands for it, and submit it again", x.jobs)
	return true
}

// mostUnreadable is how many events may be unreadable for the log to be believed otherwise.
const mostUnreadable = 1000

// Unreadable returns a stand-in for each event of the log that is not what was written, is missing, or cannot be read
// where it stands, by rising number. One that is only too long stays with its text cut. For each other a tick stands,
// at the time and in the batch of the event before it: it changes nothing. Where a job must have arrived, by the
// numbers of those that arrive later or by what is left of the line, its arrival stands there. ErrDamaged: the first
// event is one of them, or too many are.
func (s *Store) Unreadable() (list []StandIn, err error) {
	rows, err := s.db.Query("select seq, batch, line, sum from log order by seq")
	if err != nil {
		return nil, unread("log", err)
	}
	defer rows.Close()
	w := walk{unsummed: s.unsummed}
	for rows.Next() {
		if err := w.row.scan(rows); err != nil {
			return nil, unread("log", err)
		}
		for missing := w.seq + 1; missing < w.row.seq && len(w.list) <= mostUnreadable; missing++ {
			w.put(missing, "it is missing", nil)
		}
		if why := w.look(); why != "" {
			w.put(w.row.seq, why, w.row.line)
		}
		if len(w.list) > mostUnreadable || len(w.list) > 0 && w.list[0].Seq <= 1 {
			return w.list, fmt.Errorf("store: %w", damaged(w.list[0].Seq))
		}
	}
	if err := rows.Err(); err != nil {
		return nil, unread("log", err)
	}
	return w.list, nil
}

// walk goes through the rows of a log.
type walk struct {
	unsummed uint64
	row      stored
	check    eventlog.Checker
	list     []StandIn

	seq, batch uint64 // of the last event that stands
	time       sched.Time
	jobs       sched.JobID // that have arrived
}

// put has a tick stand for an event, or the arrival of a job, by what is left of its line.
func (w *walk) put(seq uint64, why string, line []byte) {
	x := StandIn{Seq: seq, Batch: max(w.batch, 1), Why: why, jobs: w.jobs, Spared: isSpared(line),
		Event: sched.Event{Seq: seq, Time: w.time, Kind: sched.Ticked}}
	if hasKind(line, sched.JobArrived) && x.arrives() {
		w.jobs++
	}
	w.list, w.seq = append(w.list, x), seq
}

// look returns what is wrong with the row; "" if nothing is.
func (w *walk) look() (why string) {
	r := &w.row
	if !r.sound(w.unsummed) {
		return "its checksum is wrong"
	}
	rec, err := w.check.Read(r.line)
	switch {
	case err != nil:
		return eventlog.CutText(err.Error())
	case rec.Event.Seq != r.seq || r.batch != any(int64(rec.Batch)):
		return fmt.Sprintf("it says that it is event %d of batch %d", rec.Event.Seq, rec.Batch)
	case rec.Batch < max(w.batch, 1) || rec.Event.Time < w.time:
		return "it stands before what came earlier"
	}
	x := StandIn{Seq: r.seq, Batch: rec.Batch, Kept: true, Event: rec.Event}
	if n := len(r.line); n > eventlog.MaxLine {
		x.Why = fmt.Sprintf("it has %d bytes", n)
		x.Event.Text, x.Event.GPUs = eventlog.CutText(x.Event.Text), slices.Clone(x.Event.GPUs)
		if t := x.Event.Target; t != nil {
			own := *t
			x.Event.Target = &own
		}
		if len(x.Line()) > eventlog.MaxLine {
			return x.Why
		}
		w.list = append(w.list, x)
	}
	w.seq, w.batch, w.time = r.seq, x.Batch, x.Event.Time
	if x.Event.Kind == sched.JobArrived {
		w.arrived(x.Event.Job)
	}
	return ""
}

// arrived notes the number of a job: those before it that nothing is known of arrived where events cannot be read.
func (w *walk) arrived(job sched.JobID) {
	for i := len(w.list) - 1; i >= 0 && w.jobs < job; i-- {
		if w.list[i].arrives() {
			w.jobs++
			for k := i + 1; k < len(w.list); k++ {
				w.list[k].jobs++
			}
		}
	}
	w.jobs = max(w.jobs, job+1)
}

// Suppose has the log read with stand-ins, until they are changed or Settle writes them down; nil = as it is.
func (s *Store) Suppose(list []StandIn) {
	s.supposed = make(map[uint64]StandIn, len(list))
	for _, x := range list {
		s.supposed[x.Seq] = x
	}
}

// Settle puts the stand-ins of Suppose into the log, durably. What they stand for is kept, see Aside.
func (s *Store) Settle() error {
	tx, err := s.db.Begin()
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	for _, seq := range slices.Sorted(maps.Keys(s.supposed)) {
		x := s.supposed[seq]
		line := x.Line()
		_, err = tx.Exec("insert into aside select seq, batch, line, sum, ?1 from log where seq = ?2 union all "+
			"select ?2, ?3, x'', null, ?1 where not exists (select 1 from log where seq = ?2)", x.Why, int64(seq),
			int64(x.Batch))
		if err == nil {
			_, err = tx.Exec("replace into log values (?, ?, ?, ?)", int64(seq), int64(x.Batch), line,
				sum(seq, x.Batch, line))
		}
		if err != nil {
			return fmt.Errorf("store: event %d cannot be quarantined: %w", seq, err)
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	s.supposed = nil
	return nil
}

// Behind calls f with each event from the one numbered seq on that can be read by itself.
func (s *Store) Behind(seq uint64, f func(e *sched.Event)) error {
	rows, err := s.db.Query("select seq, batch, line, sum from log where seq >= ? order by seq", int64(seq))
	if err != nil {
		return unread("log", err)
	}
	defer rows.Close()
	var r stored
	var check eventlog.Checker
	for rows.Next() {
		if err := r.scan(rows); err != nil {
			return unread("log", err)
		}
		if !r.sound(s.unsummed) {
			continue
		}
		if rec, err := check.Read(r.line); err == nil {
			f(&rec.Event)
		}
	}
	if err := rows.Err(); err != nil {
		return unread("log", err)
	}
	return nil
}
