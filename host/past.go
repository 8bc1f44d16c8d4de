package host

import (
	"context"
	"errors"
	"iter"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// Store keeps what happened. It hears every event after those who only count or learn, and before those who show.
type Store interface {
	// Load returns what was kept. It may be called again, and returns the same then unless something has changed.
	Load(ctx context.Context) (Past, error)
	eventlog.Sink
	eventlog.Batcher // EndBatch returns once all is durable, or why it never will be
	// Due returns when the store wants a batch though nothing happens; Never: it wants none.
	Due() sched.Time
	Close() error
}

// Past is what a store has kept: a log to replay, or a state to go on from.
type Past struct {
	Header eventlog.Header
	// Renew is why the system starts again: another one decided before, or what it remembered is gone. "": it goes on.
	Renew string
	Log   *Log                // nil: State
	State *eventlog.Beginning // its Memory is nil where the system starts again
}

// Log is a log to be replayed.
type Log struct {
	Records iter.Seq2[*eventlog.Record, error]
	// From is the first batch that the system decides again, which gives it its memory back: that of the last Renewed.
	From uint64
}

// Starter is a Store that is called before the first batch of each start. An error ends the start.
type Starter interface {
	Start(s *Start) error
}

// Quarantiner is a Store that can leave out the last event of its log where all before it can be replayed.
type Quarantiner interface {
	// Doubt has Load leave out the last event from now on, if the fault may be that event's; false: it may not.
	Doubt(fault error) bool
	// Quarantine takes that event out of the log for good. It is kept, with the fault.
	Quarantine(fault error) error
}

// Pager is a Store that gives the lines of its log back.
type Pager interface {
	// Page returns the lines of at most n events from the one numbered seq on. Anyone may call it while the store is
	// open.
	Page(seq uint64, n int) ([][]byte, error)
}

// Errors by which a Store, a driver or whatever watches their inputs ends a start, and the Host goes on with another.
var (
	// ErrReload: what the state was loaded from has changed.
	ErrReload = errors.New("what the state is read from has changed")
	// ErrUndecided: from what there is no one can go on. The Host looks at it again later.
	ErrUndecided = errors.New("no one can decide")
)
