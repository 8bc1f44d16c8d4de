package attempts

import (
	"context"
	"math"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/attempt/progress"
)

// Follower reads what the processes of a pod write.
type Follower interface {
	// Follow calls text with all that a container of a pod writes, from the start of what there is of it, each piece
	// once and in order, with the time at which it was written; and end whenever text has had all there is. It returns
	// when ctx is done. Each call of text or end returns before the next.
	Follow(ctx context.Context, pod types.NamespacedName, container string,
		text func(at time.Time, piece []byte), end func())
}

// meter turns what an attempt reports of its progress into events. Any goroutine may call its methods.
type meter struct {
	every time.Duration // events of progress are so far apart at least
	met   time.Time     // when the attempt, which an earlier leader saw run, was met; zero: it is our own
	known time.Duration // work that the earlier leader reported

	mu     sync.Mutex
	reader *progress.Reader
	odo    *progress.Odometer
	seen   time.Time // when what was heard last was written: never falls
	line   string    // of the annotation, the last
	done   bool      // it said that it has done all
	ready  bool      // it said that all that it has done is saved, and has made no step since
	saved  time.Time // when it said that a checkpoint is complete; zero: it did not in this attempt
	spoke  bool      // it wrote something
	heard  bool      // all of it was heard, for now
	total  int64     // steps in all, as it says; 0: not known
	epoch  int64     // the last that ended; -1: none is known of this attempt
	ended  int64     // the last that was reported
	fresh  bool      // it said something since its progress was reported
	last   time.Time // when its progress was reported
	closed bool      // nothing that comes now counts
}

// close counts nothing that is still on its way: the next attempt has a meter of its own.
func (m *meter) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
}

// annotated takes the line that a pod is annotated with, if it is another than before.
func (m *meter) annotated(line string) {
	m.mu.Lock()
	same := line == m.line
	m.line = line
	m.mu.Unlock()
	if !same {
		m.hear(progress.File, time.Now(), []byte(line+"\n"))
	}
}

// hear takes what was written at a time, and says whether there is something to report. What was written while no
// leader listened counts by when it was written.
func (m *meter) hear(from progress.Source, at time.Time, piece []byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	if at.After(m.seen) {
		m.seen = at
	}
	if from == progress.Output {
		m.spoke, m.heard = true, false
	}
	news := false
	for r := range m.reader.Read(from, piece) {
		news = m.note(&r) || news
	}
	return news || m.due()
}

// heardOut takes the last words of a log, which may lack the end of their line.
func (m *meter) heardOut() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.reader.End(progress.Output); !m.closed {
		m.note(&r)
	}
	m.heard = true
}

// note takes what a line says, and reports whether an epoch ended.
func (m *meter) note(r *progress.Reading) bool {
	m.done = m.done || r.Has&progress.Done != 0
	m.ready = r.Has&progress.Ready != 0 || m.ready && r.Has&progress.Step == 0
	if r.Has&progress.Saved != 0 {
		m.saved = m.seen
	}
	m.fresh = m.odo.See(m.seen, r) || m.fresh
	if r.Has&progress.Total != 0 {
		m.total = r.Total
	}
	if r.Has&progress.Epoch == 0 {
		return false
	}
	m.epoch = int64(math.Floor(r.Epoch))
	return m.epoch > m.ended
}

// newEpoch returns the last epoch that ended, once.
func (m *meter) newEpoch() (int64, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	news := m.epoch > m.ended
	m.ended = max(m.ended, m.epoch)
	return m.epoch, news
}

// due says whether it is time to report progress. A job that was measured otherwise, on other GPUs or with others on
// them, reports nothing before it is measured as it runs now: a guess would be taken for what is so.
func (m *meter) due() bool {
	return m.fresh && m.odo.Known() && time.Since(m.last) >= m.every && !m.recalls()
}

// mostRecalled is how long at most a leader that takes over an attempt hears what was reported before: the attempt may
// have gone back since, by a clock behind ours.
const mostRecalled = 10 * time.Minute

// recalls says whether what is heard was written while an earlier leader listened, who reported more.
func (m *meter) recalls() bool {
	return m.seen.Before(m.met) && !m.heard && m.odo.Work() < m.known && time.Since(m.met) < mostRecalled
}

// isDue says whether it is time to report progress, and takes it as reported; news says that there is something to be
// kept of how fast the job is, with so many tenants.
func (m *meter) isDue(tenants int) (due, news bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.odo.Share(tenants)
	if !m.due() {
		return false, false
	}
	news = m.odo.Measure()
	if m.odo.Reference > 0 && !m.odo.Measured() {
		return false, news
	}
	m.fresh, m.last = false, time.Now()
	return true, news
}

// steps returns how many steps there are in all, where a second of work is known to be one of the job alone; else 0.
func (m *meter) steps() int32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.odo.Alone() {
		return 0
	}
	return int32(min(m.total, math.MaxInt32))
}

// state returns the work done, the rate at which more is done, and the steps.
func (m *meter) state() (work time.Duration, rate, steps float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.odo.Work(), m.odo.Rate(), float64(m.odo.Steps())
}

func (m *meter) saidDone() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.done
}

// lost returns the time for which an attempt trained after its last checkpoint, as far as it said. known is false if it
// said nothing of checkpoints.
func (m *meter) lost() (_ time.Duration, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.ready:
		return 0, true
	case m.saved.IsZero():
		return 0, false
	}
	return m.seen.Sub(m.saved), true
}

// silent reports whether nothing that it wrote is still to be heard, or it said that it has done all.
func (m *meter) silent() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.done || m.heard || !m.spoke
}
