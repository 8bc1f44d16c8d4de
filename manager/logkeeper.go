package manager

import (
	"context"
	"errors"
	"log/slog"
	"math"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/manager/store"
	"github.com/trainyard/trainyard/sched"
)

// keeper is the store of a manager's folder: a log to be replayed, of which it can take out a last event that cannot be
// believed.
type keeper struct {
	*store.Store

	dir         string
	renewed     string // why the system starts again; "": it goes on
	before      uint64 // the log is read up to here
	mended      bool   // stand-ins are supposed
	faulty      bool   // the log was doubted
	writer      *store.Writer
	quarantined []store.Quarantined
	room        *room
	start       context.Context //nolint:containedctx // of the start: a batch waits for room no longer
}

var (
	_ host.Store       = (*keeper)(nil)
	_ host.Starter     = (*keeper)(nil)
	_ host.Pager       = (*keeper)(nil)
	_ host.Quarantiner = (*keeper)(nil)
)

// Load returns the log.
func (k *keeper) Load(context.Context) (past host.Past, err error) {
	past = host.Past{Renew: k.renewed, Log: &host.Log{Records: k.records}}
	if past.Log.From, err = k.LastWith(eventlog.RenewedMark, k.before); err == nil {
		past.Header, err = k.logged()
	}
	return past, err
}

// logged reads the header of the log.
func (k *keeper) logged() (eventlog.Header, error) {
	r, done, err := k.open()
	if err != nil {
		return eventlog.Header{}, err
	}
	return r.Header(), done()
}

// open starts to read the log.
func (k *keeper) open() (*eventlog.Reader, func() error, error) {
	lines, err := k.LinesBefore(k.before)
	if err != nil {
		return nil, nil, err
	}
	r, err := eventlog.NewReader(lines, k.dir)
	if err != nil {
		return nil, nil, errors.Join(err, lines.Close())
	}
	return r, lines.Close, nil
}

// records reads the log.
func (k *keeper) records(yield func(*eventlog.Record, error) bool) {
	r, done, err := k.open()
	if err != nil {
		yield(nil, err)
		return
	}
	for rec, bad := range r.Records() {
		if !yield(rec, bad) {
			break
		}
	}
	_ = done() // a fault in reading was an error of Records
}

// Start has what is logged from now on go on after the last batch.
func (k *keeper) Start(s *host.Start) error {
	k.writer, k.start = k.Writer(s.Batch), s.Context
	return nil
}

// BeginBatch is that of the log's writer.
func (k *keeper) BeginBatch() { k.writer.BeginBatch() }

// Log is that of the log's writer.
func (k *keeper) Log(v *sched.View, e *sched.Event) { k.writer.Log(v, e) }

// EndBatch is that of the log's writer, once there is room.
func (k *keeper) EndBatch() error { return k.room.commit(k.start, k.Store, k.writer.EndBatch) }

// Due is never: the log has nothing that goes out of date.
func (k *keeper) Due() sched.Time { return sched.Never }

// Doubt has others stand for events that cannot be read, or else leaves the last event out. The folder of an attempt
// that it was about has the driver refuse to go on.
func (k *keeper) Doubt(fault error) bool {
	last, err := k.Last()
	if err != nil || last <= 1 || !blamed(fault) {
		return false
	}
	k.faulty = true
	if k.mended = len(k.mend()) > 0; !k.mended {
		k.before = last
	}
	return true
}

// blamed reports whether a fault is the log's own.
func blamed(fault error) bool { return fault != nil && !errors.Is(fault, store.ErrUnread) }

// Quarantine sets what Doubt left out aside, see Manager.Problems.
func (k *keeper) Quarantine(fault error) error {
	if k.mended {
		k.mended = false
		return k.Settle()
	}
	last := k.before
	k.before = math.MaxInt64
	return k.Exclude(last, fault.Error())
}

// warn warns of quarantined events, whenever a manager starts.
func (k *keeper) warn(log *slog.Logger) (err error) {
	k.quarantined, err = k.Quarantined()
	for _, a := range k.quarantined {
		log.Warn("an event of the log was quarantined", "seq", a.Seq, "why", a.Why)
	}
	return err
}
