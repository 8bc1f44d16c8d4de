package manager

import (
	"fmt"

	"github.com/trainyard/trainyard/sched"
)

// Problems says in sentences what somebody should look at: events that were set aside, and jobs that cannot be started. Nothing of it keeps
// the others from running. Anybody may ask at any time.
func (m *Manager) Problems() []string {
	list := []string{}
	for _, a := range m.aside {
		list = append(list, fmt.Sprintf("event %d of the log was set aside: %s; what it told is lost", a.Seq, a.Why))
	}
	for id, row := range m.board.Rows() {
		if row.Failures > 0 && row.State != sched.Done {
			list = append(list, fmt.Sprintf("job %d (%s) cannot be started (%d times in a row): %s", id, row.Name, row.Failures, row.Text))
		}
	}
	return list
}

// tellAside warns of events that were set aside, whenever a manager begins.
func (m *Manager) tellAside() (err error) {
	m.aside, err = m.store.Aside()
	for _, a := range m.aside {
		m.o.Log.Warn("an event of the log was set aside", "seq", a.Seq, "why", a.Why)
	}
	return err
}
