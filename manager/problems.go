package manager

import (
	"fmt"
	"slices"
)

// Problems says in sentences what someone should look at: quarantined events, a full disk, and jobs that cannot be
// started. Nothing of it keeps the others from running. Anyone may ask at any time.
func (m *Manager) Problems() []string {
	var list []string
	for _, a := range m.kept.quarantined {
		list = append(list, fmt.Sprintf("event %d of the log was quarantined: %s; what it said is lost", a.Seq, a.Why))
	}
	if full := m.room.why(); full != "" {
		list = append(list, full)
	}
	return slices.Concat(list, m.Host.Problems())
}
