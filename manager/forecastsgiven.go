package manager

import (
	"sync"
	"time"

	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/manager/store"
	"github.com/trainyard/trainyard/sched"
)

// foretoldAgain is how long no other forecast of a job is kept: a page that is open asks all the time, and would make
// one job count for all.
const foretoldAgain = time.Minute

// foretold keeps forecasts that were given.
type foretold struct {
	mu   sync.Mutex
	last map[sched.JobID]sched.Time // when one of a job was kept
}

// Foretold keeps a forecast that was given, one a job and minute. Nothing depends on it: on a disk that is nearly full
// none is kept. It may be called by any goroutine.
func (m *Manager) Foretold(f explain.Foretold) {
	m.foretold.mu.Lock()
	defer m.foretold.mu.Unlock()
	if at, known := m.foretold.last[f.Job]; known && f.At.Sub(at) < foretoldAgain || !store.Reserved(m.o.Dir) {
		return
	}
	if err := m.kept.KeepForecast(f); err != nil {
		m.o.Log.Warn("a forecast that was given is not kept", "err", err)
		return
	}
	if m.foretold.last == nil {
		m.foretold.last = map[sched.JobID]sched.Time{}
	}
	m.foretold.last[f.Job] = f.At
}

// Forecasts returns those that were given and kept, the oldest first.
func (m *Manager) Forecasts() ([]explain.Foretold, error) { return m.kept.Forecasts() }
