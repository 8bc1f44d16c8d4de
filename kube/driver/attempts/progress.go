package attempts

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/attempt/progress"
	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/sched"
)

// meter returns the meter of the attempt.
func (l *look) meter() *meter {
	a := l.a
	if a.meter == nil {
		every := l.as.o.Every
		odo := l.as.odometers[a.Job]
		if odo == nil {
			odo = progress.NewOdometer(int(l.j.Unit()), l.as.keptPace(l.ctx, l.api, a), l.j.Work)
			odo.Apart = every / 2
			l.as.odometers[a.Job] = odo
		}
		odo.Begin(a.Width(), int(a.Config.Batch))
		reader := progress.NewReader(progress.Auto)
		a.meter = &meter{every: every, reader: reader, odo: odo, epoch: -1, ended: int64(l.j.Epoch)}
		if a.ranks[0].adopted {
			a.meter.met, a.meter.known = time.Now(), l.j.Work
		}
	}
	return a.meter
}

// hear reports the progress of an attempt that runs: what its first pod is annotated with, and what it writes.
func (l *look) hear(first *corev1.Pod) {
	if l.as.o.Deaf {
		return
	}
	m := l.meter()
	if first != nil {
		m.annotated(first.Annotations[v1alpha1.AnnotationProgress])
		l.follow(first)
	}
	if epoch, ok := m.newEpoch(); ok && l.j.Watched {
		l.seen.Report(sched.Event{
			Kind: sched.EpochEnded, Job: l.a.Job, Attempt: l.a.Number, Value: float64(epoch),
		})
	}
	due, news := m.isDue(l.tenants())
	if news {
		l.seen.Pace = l.as.pace(l.a)
	}
	if due {
		e := sched.Event{
			Kind: sched.Progressed, Job: l.a.Job, Attempt: l.a.Number, WorkFrom: l.Now, Code: m.steps(),
		}
		e.Work, e.Rate, e.Value = m.state()
		l.seen.Report(e)
	}
}

// follow has the log of the first rank read from now on.
func (l *look) follow(first *corev1.Pod) {
	o, a := &l.as.o, l.a
	if o.Follower == nil || a.unhear != nil {
		return
	}
	m, key := a.meter, observer.KeyOfJob(a.Key)
	pod, container := client.ObjectKeyFromObject(first), trainerOf(first)
	text := func(at time.Time, piece []byte) {
		if m.hear(progress.Output, at, piece) {
			o.Look(key)
		}
	}
	end := func() {
		m.heardOut()
		o.Look(key)
	}
	a.unhear = o.Go(func(ctx context.Context) { o.Follower.Follow(ctx, pod, container, text, end) })
}

// tenants returns how many jobs compute on a GPU of the attempt, where most do.
func (l *look) tenants() int {
	most := 1
	if l.a.Config.Share != sched.Shared {
		return most
	}
	up := make(map[sched.GPUID]int)
	for id := range l.as.alive {
		if j := &l.View.Jobs[id]; j.Up {
			for _, g := range j.GPUs {
				up[g]++
			}
		}
	}
	for _, g := range l.j.GPUs {
		most = max(most, up[g])
	}
	return most
}
