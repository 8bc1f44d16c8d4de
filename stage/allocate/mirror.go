package allocate

import (
	"github.com/trainyard/trainyard/internal/arena"
	"github.com/trainyard/trainyard/sched"
)

// mirror keeps a ledger in step with the targets of the View, event by event: to book those of all jobs that ever
// arrived again for each division would take longer than the division. Its zero value is ready.
type mirror struct {
	ledger *sched.Ledger
	stale  bool          // nodes changed, or an event was missed
	seen   uint64        // version of the View after the last event
	moved  []sched.JobID // jobs whose targets may have changed since
	sets   arena.Sets
}

// mostMoved bounds the jobs that are noted: beyond, all targets are booked again.
const mostMoved = 1 << 12

// observe notes whose target may have changed.
func (m *mirror) observe(v *sched.View, e *sched.Event) {
	m.stale = m.stale || v.Version != m.seen+1 || len(m.moved) >= mostMoved
	m.seen = v.Version
	switch e.Kind {
	case sched.NodeJoined, sched.NodeLeft, sched.NodeChanged, sched.Moved, sched.GPUChanged:
		m.stale = true
	case sched.JobArrived, sched.AttemptStarted, sched.Progressed, sched.Ordered:
	default:
		if !m.stale && e.Job >= 0 && int(e.Job) < len(v.Jobs) {
			m.moved = append(m.moved, e.Job)
		}
	}
}

// of returns a ledger with the targets of v. Whoever changes it undoes that before the next event.
func (m *mirror) of(v *sched.View) (l *sched.Ledger, mark int) {
	switch {
	case m.ledger == nil || v.ShareLimit > 1 || m.ledger.Counted(): // sums of parts of CPUs depend on the order
		m.ledger = sched.NewLedger(v)
	case m.stale || m.seen != v.Version:
		m.ledger.Rebuild()
	default:
		m.follow(v)
	}
	m.stale, m.seen, m.moved = false, v.Version, m.moved[:0]
	return m.ledger, m.ledger.Mark()
}

// follow books the targets of the jobs that were noted instead of what they had.
func (m *mirror) follow(v *sched.View) {
	for _, j := range m.moved { // one may have what another had
		if had := m.ledger.Set(j); len(had) > 0 && !arena.SameSet(had, v.Jobs[j].Target) {
			m.sets.Recycle(m.ledger.Release(j))
		}
	}
	for _, j := range m.moved {
		if target := v.Jobs[j].Target; len(target) > 0 && len(m.ledger.Set(j)) == 0 {
			m.ledger.Book(j, m.sets.CopyOf(target))
		}
	}
}

// undo takes back all that was done to the ledger since mark.
func (m *mirror) undo(mark int) {
	m.ledger.Undo(mark)
	m.ledger.Commit()
}
