package host

import (
	"sync"
	"time"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// Row is how one job stands.
type Row struct {
	Name      string
	Older     sched.JobID // the job before it that had its name; None = it is the first
	State     sched.JobState
	Attempt   sched.AttemptState
	Attempts  int32
	Outcome   sched.Outcome // once done
	Ended     sched.Outcome // of the last attempt that ended; NoOutcome = none did, or it could not be started
	Last      int32         // number of that attempt
	Code      int32         // its exit code
	Text      string        // what was said of its end
	Failures  int32         // starts that failed in a row
	Cancelled bool          // its user wants it gone
	Saved     time.Duration // work that was kept when attempt SavedIn last saved
	SavedIn   int32         // 0 = no save was heard of
	Unheard   int32         // attempts up to this one may have saved before the board heard of them
}

// Board shows everybody how the jobs stand, as far as that is durable. It is a Sink; all may read it at any time.
type Board struct {
	mu      sync.Mutex
	rows    []Row                  // by JobID
	names   map[string]sched.JobID // the latest of each
	pending []Row                  // of the batch under way, of the jobs changed
	changed []sched.JobID
	where   map[sched.JobID]int // where they are in pending
	next    sched.JobID         // the first that has no row, in pending neither
	news    chan struct{}       // closed by the next durable batch
}

var (
	_ eventlog.Sink    = (*Board)(nil)
	_ eventlog.Batcher = (*Board)(nil)
)

// mostPending is for how many changed rows of a batch room is kept.
const mostPending = 1 << 10

// NewBoard returns an empty board.
func NewBoard() *Board {
	return &Board{names: make(map[string]sched.JobID), where: make(map[sched.JobID]int), news: make(chan struct{})}
}

// restart clears the board: what follows is heard from its start, or from v on, of which it shows the jobs that are
// not done.
func (b *Board) restart(v *sched.View) {
	b.mu.Lock()
	b.rows, b.pending, b.changed, b.names = nil, nil, nil, make(map[string]sched.JobID)
	b.mu.Unlock()
	clear(b.where)
	b.next = 0
	if v == nil {
		return
	}
	for id := range v.Jobs {
		b.note(v, sched.JobID(id)).Unheard = v.Jobs[id].Attempts
	}
	b.show()
}

// BeginBatch does nothing.
func (b *Board) BeginBatch() {}

// Log notes what an event changes; it shows once the batch is durable.
func (b *Board) Log(v *sched.View, e *sched.Event) {
	saves := e.Kind == sched.Saved && e.Code == sched.SavedWork
	if !e.Kind.Form().Moves && !saves || e.Job < 0 || int(e.Job) >= len(v.Jobs) {
		return
	}
	row := b.note(v, e.Job)
	if saves {
		row.Saved, row.SavedIn = e.Work, e.Attempt
	}
	if e.Kind == sched.AttemptEnded || e.Kind == sched.StartFailed {
		row.Ended, row.Last, row.Code, row.Text = e.Outcome, e.Attempt, e.Code, e.Text
	}
}

// note copies how a job stands.
func (b *Board) note(v *sched.View, id sched.JobID) *Row {
	row := b.row(v, id)
	j := &v.Jobs[id]
	row.State, row.Attempt, row.Attempts, row.Outcome, row.Cancelled = j.State, j.Attempt, j.Attempts, j.Outcome,
		j.Cancel
	row.Failures = j.StartFailures
	return row
}

// row returns the row of a job in the batch under way, of which all jobs before it have one as well if they are new.
// It is called by the one who logs, who alone changes rows.
func (b *Board) row(v *sched.View, id sched.JobID) *Row {
	at, is := b.where[id]
	if is {
		return &b.pending[at]
	}
	if int(id) < len(b.rows) {
		return b.change(id, b.rows[id])
	}
	for ; b.next < id; b.next++ {
		b.change(b.next, Row{Name: v.Jobs[b.next].Spec.Name})
	}
	b.next++
	return b.change(id, Row{Name: v.Jobs[id].Spec.Name})
}

// change adds a row to those of the batch under way.
func (b *Board) change(id sched.JobID, row Row) *Row {
	b.where[id] = len(b.pending)
	b.pending, b.changed = append(b.pending, row), append(b.changed, id)
	return &b.pending[len(b.pending)-1]
}

// EndBatch shows the changes of the batch.
func (b *Board) EndBatch() error {
	if len(b.changed) > 0 {
		b.show()
	}
	return nil
}

func (b *Board) show() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, id := range b.changed {
		row := b.pending[i]
		if int(id) < len(b.rows) {
			b.rows[id] = row
			continue
		}
		row.Older = sched.None
		if older, known := b.names[row.Name]; known {
			row.Older = older
		}
		b.names[row.Name] = id
		b.rows = append(b.rows, row)
	}
	clear(b.pending)
	b.pending, b.changed = b.pending[:0], b.changed[:0]
	clear(b.where)
	if cap(b.pending) > mostPending {
		b.pending, b.changed, b.where = nil, nil, make(map[sched.JobID]int)
	}
	close(b.news)
	b.news = make(chan struct{})
}

// Rows returns how the jobs stand, by JobID.
func (b *Board) Rows() []Row {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]Row(nil), b.rows...)
}

// Row returns how job id stands, whether it is known, and a channel that is closed when something has changed since.
func (b *Board) Row(id sched.JobID) (row Row, known bool, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if id >= 0 && int(id) < len(b.rows) {
		row, known = b.rows[id], true
	}
	return row, known, b.news
}

// Find returns the latest job of a name.
func (b *Board) Find(name string) (sched.JobID, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if id, known := b.names[name]; known {
		return id, true
	}
	return sched.None, false
}

// Others returns the jobs of job id's name that are not done, but for id itself, the latest first.
func (b *Board) Others(id sched.JobID) (list []sched.JobID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if id < 0 || int(id) >= len(b.rows) {
		return nil
	}
	for at := b.names[b.rows[id].Name]; at != sched.None; at = b.rows[at].Older {
		if at != id && b.rows[at].State != sched.Done {
			list = append(list, at)
		}
	}
	return list
}
