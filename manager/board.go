package manager

import (
	"sync"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/sched"
)

// Row is how one job stands.
type Row struct {
	Name      string
	State     sched.JobState
	Attempt   sched.AttemptState
	Attempts  int32
	Outcome   sched.Outcome // once done
	Code      int32         // exit code of the last attempt that ended
	Text      string        // what was said of its end
	Failures  int32         // starts that failed in a row
	Cancelled bool          // its user wants it gone
}

// Board tells everybody how the jobs stand, as far as that is durable. It is a Sink; all may read it at any time.
type Board struct {
	mu      sync.Mutex
	rows    []Row // by JobID
	pending []Row // of the batch under way
	changed []sched.JobID
	news    chan struct{} // closed by the next durable batch
}

var (
	_ engine.Sink    = (*Board)(nil)
	_ engine.Batcher = (*Board)(nil)
)

// NewBoard returns an empty board.
func NewBoard() *Board { return &Board{news: make(chan struct{})} }

// BeginBatch does nothing.
func (b *Board) BeginBatch() {}

// Log notes what an event changes; it shows once the batch is durable.
func (b *Board) Log(v *sched.View, e *sched.Event) {
	switch e.Kind {
	case sched.JobArrived, sched.AttemptStarted, sched.AttemptEnded, sched.StartFailed, sched.JobCommanded, sched.Ordered,
		sched.Rejected, sched.Released:
	default:
		return
	}
	if e.Job < 0 || int(e.Job) >= len(v.Jobs) {
		return
	}
	for len(b.pending) <= int(e.Job) {
		b.pending = append(b.pending, Row{Name: v.Jobs[len(b.pending)].Spec.Name})
	}
	j, row := &v.Jobs[e.Job], &b.pending[e.Job]
	row.State, row.Attempt, row.Attempts, row.Outcome, row.Cancelled = j.State, j.Attempt, j.Attempts, j.Outcome, j.Cancel
	row.Failures = j.StartFailures
	if e.Kind == sched.AttemptEnded || e.Kind == sched.StartFailed {
		row.Code, row.Text = e.Code, e.Text
	}
	b.changed = append(b.changed, e.Job)
}

// EndBatch shows the changes of the batch.
func (b *Board) EndBatch() error {
	if len(b.changed) == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rows = append(b.rows, b.pending[len(b.rows):]...)
	for _, id := range b.changed {
		b.rows[id] = b.pending[id]
	}
	b.changed = b.changed[:0]
	close(b.news)
	b.news = make(chan struct{})
	return nil
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
	for i := len(b.rows) - 1; i >= 0; i-- {
		if b.rows[i].Name == name {
			return sched.JobID(i), true
		}
	}
	return sched.None, false
}
