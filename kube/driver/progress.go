package driver

import (
	"context"
	"math"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/attempt/progress"
	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/sched"
)

// Follower reads what the processes of a pod write.
type Follower interface {
	// Follow has text called with all that a container of a pod writes, from the beginning of what there is of it, each piece once and in
	// order, with the time at which it was written; and end whenever all there is was told. It returns when ctx is done. Each call of text
	// or end returns before the next.
	Follow(ctx context.Context, pod types.NamespacedName, container string, text func(at time.Time, piece []byte), end func())
}

// meter turns what an attempt tells of its progress into events. Its methods may be called by anybody.
type meter struct {
	every time.Duration // events of progress are told so far apart at least
	met   time.Time     // when the attempt, which an earlier leader saw run, was met; zero = it is our own
	known time.Duration // work that was told by then

	mu     sync.Mutex
	reader *progress.Reader
	odo    *progress.Odometer
	seen   time.Time // when what was told last was written: never falls
	line   string    // of the annotation, the last
	done   bool      // it said that it has done all
	ready  bool      // it said that all that it has done is saved, and has made no step since
	saved  time.Time // when it said that a checkpoint is complete; zero = it did not in this attempt
	spoke  bool      // it wrote something
	heard  bool      // all of it was heard, for now
	total  int64     // steps in all, as it says; 0 = not known
	epoch  int64     // the last that ended; -1 = none is known of this attempt
	ended  int64     // the last that was told
	fresh  bool      // it told something since its progress was told
	told   time.Time
	closed bool // nothing that comes now counts
}

// close has nothing counted that is still on its way: the next attempt has a meter of its own.
func (m *meter) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
}

// meterOf returns the meter of an attempt.
func (d *Driver) meterOf(a *attempt) *meter {
	if a.meter == nil {
		j := &d.view.Jobs[a.id]
		odo := d.odometers[a.id]
		if odo == nil {
			odo = progress.NewOdometer(int(j.Unit()), d.keptOf(a), j.Work)
			odo.Apart = d.o.Tell / 2
			d.odometers[a.id] = odo
		}
		odo.Begin(a.width(), int(a.config.Batch))
		a.meter = &meter{every: d.o.Tell, reader: progress.NewReader(progress.Auto), odo: odo, epoch: -1, ended: int64(j.Epoch)}
		if a.ranks[0].adopted {
			a.meter.met, a.meter.known = time.Now(), j.Work
		}
	}
	return a.meter
}

// hear tells of the progress of an attempt that runs: of what its first pod is annotated with, and what it writes.
func (d *Driver) hear(a *attempt, first *corev1.Pod) {
	if d.o.Deaf {
		return
	}
	m := d.meterOf(a)
	if first != nil {
		m.annotated(first.Annotations[v1alpha1.AnnotationProgress])
		d.follow(a, first)
	}
	if epoch, ok := m.newEpoch(); ok && d.view.Jobs[a.id].Watched {
		d.tell(sched.Event{Kind: sched.EpochEnded, Job: a.id, Attempt: a.number, Value: float64(epoch)})
	}
	due, news := m.isDue(d.tenants(a))
	if news {
		d.keepPace(a)
	}
	if due {
		e := sched.Event{Kind: sched.Progressed, Job: a.id, Attempt: a.number, WorkFrom: d.now, Code: m.steps()}
		e.Work, e.Rate, e.Value = m.state()
		d.tell(e)
	}
}

// follow has the log of the first rank read from now on.
func (d *Driver) follow(a *attempt, first *corev1.Pod) {
	if d.o.Follower == nil || a.unhear != nil {
		return
	}
	var ctx context.Context
	ctx, a.unhear = context.WithCancel(d.crew.quit)
	m, pod, container := a.meter, client.ObjectKeyFromObject(first), trainerOf(first)
	d.crew.work.Go(func() {
		d.o.Follower.Follow(ctx, pod, container, func(at time.Time, piece []byte) {
			if m.hear(progress.Output, at, piece) {
				d.o.Queue.Push(observer.KeyOfJob(a.key))
			}
		}, func() {
			m.heardOut()
			d.o.Queue.Push(observer.KeyOfJob(a.key))
		})
	})
}

// tenants returns how many jobs compute on a GPU of an attempt, where most do.
func (d *Driver) tenants(a *attempt) int {
	most := 1
	if a.config.Share != sched.Shared {
		return most
	}
	up := make(map[sched.GPUID]int)
	for id := range d.attempts {
		if j := &d.view.Jobs[id]; j.Up {
			for _, g := range j.GPUs {
				up[g]++
			}
		}
	}
	for _, g := range d.view.Jobs[a.id].GPUs {
		most = max(most, up[g])
	}
	return most
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

// hear takes what was written at a time, and reports whether there is something to tell. What was written while nobody listened counts
// by when it was written.
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

// due reports whether it is time to tell of progress. A job that was measured otherwise, on other GPUs or beside others, tells nothing
// before it is measured as it runs now: a guess would be taken for what is so.
func (m *meter) due() bool {
	return m.fresh && m.odo.Known() && time.Since(m.told) >= m.every && !m.recalls()
}

// mostRecalled is how long who takes over an attempt hears what was told before, at most: it may have gone back since, by a clock behind ours.
const mostRecalled = 10 * time.Minute

// recalls reports whether what is heard was written while others listened, who told of more.
func (m *meter) recalls() bool {
	return m.seen.Before(m.met) && !m.heard && m.odo.Work() < m.known && time.Since(m.met) < mostRecalled
}

// isDue reports whether it is time to tell of progress, and takes it as told; news says that there is something to be kept of how fast
// the job is, beside so many tenants.
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
	m.fresh, m.told = false, time.Now()
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

// lost returns the time for which an attempt trained after its last checkpoint, as far as it told. known is false if it said
// nothing of checkpoints.
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
