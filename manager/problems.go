package manager

import (
	"fmt"
	"maps"
	"slices"

	"github.com/trainyard/trainyard/sched"
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
	astray := m.astray()
	for _, job := range slices.Sorted(maps.Keys(astray)) {
		list = append(list, fmt.Sprintf("job %d: %s", job, astray[job]))
	}
	if m.o.Notices != nil {
		list = append(list, m.o.Notices.Unheard()...)
	}
	return slices.Concat(list, m.Host.Problems())
}

// astray says, by job, which process of it is on a GPU that it does not hold, and probably why.
func (m *Manager) astray() map[sched.JobID]string {
	var all map[sched.JobID]string
	for _, s := range m.Devices() {
		for _, p := range s.Trespassers {
			if all == nil {
				all = make(map[sched.JobID]string)
			}
			if all[p.Job] == "" {
				all[p.Job] = fmt.Sprintf("process %d is on %s, which the job does not hold: %s", p.PID, s.Name, p.Cause)
			}
		}
	}
	return all
}
