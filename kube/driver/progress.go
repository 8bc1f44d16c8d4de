package driver

import (
	"context"
	"math"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/driver/local/progress"
	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/sched"
)

// Follower reads what the processes of a pod write.
type Follower interface {
	// Follow has tell called with what the first container of a pod writes to its standard output, from its beginning or from where it
	// stands, in order, until ctx is done. It returns at once. tell may be called by any one goroutine at a time.
	Follow(ctx context.Context, pod types.NamespacedName, tell func(chunk []byte))
}

// meter turns what an attempt tells of its progress into events. Its methods may be called by anybody.
type meter struct {
	every time.Duration // events of progress are told so far apart at least

	mu     sync.Mutex
	reader *progress.Reader
	odo    *progress.Odometer
	line   string // of the annotation, the last
	done   bool   // it said that it has done all
	epoch  int64  // the last that ended; -1 = none is known of this attempt
	ended  int64  // the last that was told
	fresh  bool   // it told something since its progress was told
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
			odo = progress.NewOdometer(int(j.Spec.GPUs.Want), progress.Kept{}, j.Work)
			odo.Apart = d.o.Tell / 2
			d.odometers[a.id] = odo
		}
		odo.Begin(a.width(), int(a.config.Batch))
		a.meter = &meter{every: d.o.Tell, reader: progress.NewReader(progress.Auto), odo: odo, epoch: -1, ended: int64(j.Epoch)}
	}
	return a.meter
}

// hear tells of the progress of an attempt that runs: of what its first pod is annotated with, and what it writes.
func (d *Driver) hear(a *attempt, first *corev1.Pod) {
	m := d.meterOf(a)
	if first != nil {
		m.annotated(first.Annotations[v1alpha1.AnnotationProgress])
	}
	if d.o.Follower != nil && a.unhear == nil {
		var ctx context.Context
		ctx, a.unhear = context.WithCancel(d.crew.quit)
		d.o.Follower.Follow(ctx, types.NamespacedName{Namespace: a.key.Namespace, Name: a.podName(0)}, func(chunk []byte) {
			if m.heard(progress.Output, chunk) {
				d.o.Queue.Push(Key{JobKey, a.key})
			}
		})
	}
	if epoch, ok := m.newEpoch(); ok && d.view.Jobs[a.id].Watched {
		d.tell(sched.Event{Kind: sched.EpochEnded, Job: a.id, Attempt: a.number, Value: float64(epoch)})
	}
	if m.isDue() {
		e := sched.Event{Kind: sched.Progressed, Job: a.id, Attempt: a.number, WorkFrom: d.now}
		e.Work, e.Rate, e.Value = m.state()
		d.tell(e)
	}
}

// annotated takes the line that a pod is annotated with, if it is another than before.
func (m *meter) annotated(line string) {
	m.mu.Lock()
	same := line == m.line
	m.line = line
	m.mu.Unlock()
	if !same {
		m.heard(progress.File, []byte(line+"\n"))
	}
}

// heard takes what was written, and reports whether there is something to tell.
func (m *meter) heard(from progress.Source, chunk []byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	news := false
	for r := range m.reader.Read(from, chunk) {
		m.done = m.done || r.Has&progress.Done != 0
		m.fresh = m.odo.See(time.Now(), &r) || m.fresh
		if r.Has&progress.Epoch != 0 {
			m.epoch = int64(math.Floor(r.Epoch))
			news = news || m.epoch > m.ended
		}
	}
	return news || m.due()
}

// newEpoch returns the last epoch that ended, once.
func (m *meter) newEpoch() (int64, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	news := m.epoch > m.ended
	m.ended = max(m.ended, m.epoch)
	return m.epoch, news
}

// due reports whether it is time to tell of progress.
func (m *meter) due() bool { return m.fresh && m.odo.Known() && time.Since(m.told) >= m.every }

// isDue reports whether it is time to tell of progress, and takes it as told.
func (m *meter) isDue() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.due() {
		return false
	}
	m.odo.Measure()
	m.fresh, m.told = false, time.Now()
	return true
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
