package manager

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/manager/store"
	"github.com/trainyard/trainyard/sched"
)

// foretoldAgain is how long no other forecast of a job is kept: a page that is open asks all the time, and would make
// one job count for all.
const foretoldAgain = time.Minute

// mostForetold is of how many jobs it is known when a forecast was kept, unless more are asked about within a minute.
const mostForetold = 1 << 12

// mostAtOnce is how many are kept in one transaction: what is decided waits for it.
const mostAtOnce = 500

// foretold keeps forecasts that were given.
type foretold struct {
	mu   sync.Mutex
	last map[sched.JobID]sched.Time // when one of a job was kept
	full int                        // with how many of them those that no longer count are forgotten; 0 = mostForetold
}

// due reports whether a forecast of a job that is given now may be kept.
func (f *foretold) due(id sched.JobID, now sched.Time) bool {
	at, known := f.last[id]
	return !known || now.Sub(at) >= foretoldAgain
}

// note remembers that one was kept. What no longer counts is forgotten, as a manager sees millions of jobs.
func (f *foretold) note(id sched.JobID, now sched.Time) {
	if len(f.last) >= max(f.full, mostForetold) {
		maps.DeleteFunc(f.last, func(_ sched.JobID, at sched.Time) bool { return now.Sub(at) >= foretoldAgain })
		f.full = 2 * len(f.last)
	}
	if f.last == nil {
		f.last = map[sched.JobID]sched.Time{}
	}
	f.last[id] = now
}

// Foretold keeps forecasts that were given, one a job and minute. Nothing depends on it: on a disk that is nearly full
// none is kept. It may be called by any goroutine.
func (m *Manager) Foretold(list ...explain.Foretold) {
	m.foretold.mu.Lock()
	defer m.foretold.mu.Unlock()
	list = slices.DeleteFunc(slices.Clone(list), func(f explain.Foretold) bool { return !m.foretold.due(f.Job, f.At) })
	if len(list) == 0 || !store.Reserved(m.o.Dir) {
		return
	}
	for some := range slices.Chunk(list, mostAtOnce) {
		if err := m.kept.KeepForecasts(some); err != nil {
			m.o.Log.Warn("forecasts that were given are not kept", "jobs", len(some), "err", err)
			return
		}
		for _, f := range some {
			m.foretold.note(f.Job, f.At)
		}
	}
}

// Forecasts returns those that were given and kept, the oldest first.
func (m *Manager) Forecasts() ([]explain.Foretold, error) { return m.kept.Forecasts() }
