package manager

import (
	"fmt"

	"github.com/trainyard/trainyard/sched"
)

// Problems says in sentences what somebody should look at: events that were set aside, and jobs that cannot be started. Nothing of it keeps
// the others from running. Anybody may ask at any time.
func (m *Manager) Problems() ([]string, error) {
	list := []string{}
	aside, err := m.store.Aside()
	if err != nil {
		return nil, err
	}
	for _, a := range aside {
		list = append(list, fmt.Sprintf("event %d of the log was set aside: %s; what it told is lost", a.Seq, a.Why))
	}
	for id, row := range m.board.Rows() {
		if row.Failures > 0 && row.State != sched.Done {
			list = append(list, fmt.Sprintf("job %d (%s) cannot be started (%d times in a row): %s", id, row.Name, row.Failures, row.Text))
		}
	}
	return list, nil
}

// tellAside warns of events that were set aside, whenever a manager begins.
func (m *Manager) tellAside() error {
	list, err := m.store.Aside()
	for _, a := range list {
		m.o.Log.Warn("an event of the log was set aside", "seq", a.Seq, "why", a.Why)
	}
	return err
}
