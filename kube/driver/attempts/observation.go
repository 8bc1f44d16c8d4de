package attempts

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/kube/driver/devices"
	"github.com/trainyard/trainyard/kube/driver/inventory"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/kube/driver/writer"
	"github.com/trainyard/trainyard/sched"
)

// Around is what a look at an attempt needs to know besides the attempt.
type Around struct {
	View      *sched.View
	Now       sched.Time // of the look
	Inventory *inventory.Inventory
	// Held returns a claim that keeps an attempt from its devices, other than its own; ok is false if there is none.
	Held func(*writer.Attempt) (claim types.NamespacedName, ok bool)
	// Foreign returns a GPU of an attempt that others use; ok is false if there is none.
	Foreign func(*writer.Attempt) (g *devices.Device, ok bool)
}

// Seen is what a look at an attempt found, and what is to be written because of it.
type Seen struct {
	observer.Found
	Remove *Removal      // its pods are to be deleted; nil: they are not
	Force  []*corev1.Pod // to be given up, as their nodes are gone
	Pace   *Pace         // to be kept; nil: nothing new
	Over   *Over         // nil: it goes on
	// Refused is why the API server did not take the attempt, whose job is held because of that; nil: it did
	Refused *writer.Verdict
}

// Over is an attempt that has ended.
type Over struct {
	*writer.Attempt
	Lost bool // it lost a machine
}

// look is a look at an attempt under way.
type look struct {
	Around

	ctx  context.Context
	api  observer.API
	as   *Attempts
	a    *live
	j    *sched.Job
	seen Seen
}

// Observe looks at the pods of the attempt of a job and reports what became of it: its start or its end, never both at
// a time.
func (as *Attempts) Observe(ctx context.Context, api observer.API, id sched.JobID, around Around) (Seen, error) {
	a := as.alive[id]
	if a == nil {
		return Seen{}, nil
	}
	if a.Ranks[0].Devices == nil { // who led before made it
		_ = a.FindDevices(around.Inventory, around.View) // of those that are missing the names are known
	}
	l := look{Around: around, ctx: ctx, api: api, as: as, a: a, j: &around.View.Jobs[id]}
	ranks, pods, err := l.see()
	if err != nil {
		return l.seen, err
	}
	l.devices()
	if a.stop == sched.NoOutcome && a.ending == nil {
		if a.ending, err = l.ending(ranks); err != nil {
			return l.seen, err
		}
	}
	if a.ending != nil && a.ending.outcome != sched.NoOutcome && !l.j.Up && all(ranks, hasRun) {
		l.started() // it came and went between two looks
		return l.seen, nil
	}
	l.progress(ranks, pods[0])
	l.force(pods)
	return l.seen, nil
}

// progress reports how an attempt goes on.
func (l *look) progress(ranks []podStatus, first *corev1.Pod) {
	a := l.a
	switch {
	case a.ending != nil || a.stop != sched.NoOutcome:
		over := all(ranks, isOver)
		if !a.removed && !over {
			l.seen.Remove = a.remove()
		}
		if over && (a.leaving || a.stop == sched.NoOutcome) && !l.mayYetSay() {
			l.ended(ranks)
		}
	case l.j.Up:
		l.hear(first)
	case all(ranks, hasRun):
		l.started()
	default:
		l.delay(ranks)
	}
}

// see returns what the cache shows of the ranks.
func (l *look) see() (ranks []podStatus, pods []*corev1.Pod, err error) {
	ranks, pods = make([]podStatus, len(l.a.ranks)), make([]*corev1.Pod, len(l.a.ranks))
	for i := range l.a.ranks {
		if pods[i], err = l.pod(i); err != nil {
			return nil, nil, err
		}
		ranks[i] = l.status(i, pods[i])
	}
	return ranks, pods, nil
}

// pod returns the pod of rank i, nil if there is none. A pod that those who led before know, and that the cache has
// never shown, is asked for at the API server.
func (l *look) pod(i int) (*corev1.Pod, error) {
	r, key := &l.a.ranks[i], l.a.Within(l.a.PodName(i))
	r.seen = r.seen || l.a.HasMet(i)
	p := new(corev1.Pod)
	found, err := l.api.Get(l.ctx, key, p)
	if err != nil {
		return nil, err
	}
	if found && l.a.OwnsPod(i, p) {
		r.seen = true
		return p, nil
	}
	if !r.adopted || r.seen || l.a.HasNone(i) {
		return nil, nil
	}
	p = new(corev1.Pod)
	if found, err = l.api.Ask(l.ctx, key, p); err != nil {
		return nil, err
	}
	if found && l.a.OwnsPod(i, p) {
		return p, nil
	}
	l.a.Note(i, true, false)
	return nil, nil
}

// status returns what the pod of rank i shows, nil if there is none.
func (l *look) status(i int, p *corev1.Pod) (s podStatus) {
	r := &l.a.ranks[i]
	switch {
	case p != nil:
		s = statusOf(p, l.a.leaving, l.Inventory.IsGone(l.a.Ranks[i].NodeName))
		if r.ended == nil && (s.stage == succeeded || s.stage == failed) {
			first := s
			r.ended = &first
		}
	case !r.seen && !l.a.HasNone(i):
		s.text = fmt.Sprintf("pod %s is not there yet", l.a.PodName(i))
	case l.a.leaving:
		s = podStatus{stage: leaving, over: true}
	default:
		s = podStatus{stage: lost, over: true, text: deletedByOthers + l.a.PodName(i)}
	}
	if r.ended != nil && (s.stage == leaving || s.stage == lost) { // whatever became of its object
		over := s.over
		s = *r.ended
		s.over = over
	}
	return s
}

// ending returns what ends an attempt that no one stops, nil if it goes on.
func (l *look) ending(ranks []podStatus) (*ending, error) {
	silent := false
	for i := range l.a.Ranks {
		silent = silent || l.Inventory.IsSilent(l.a.Ranks[i].NodeName)
	}
	e := cause(ranks, silent, l.j.Up)
	if e != nil && l.a.adopted {
		if kept, err := l.as.keptEnding(l.ctx, l.api, l.a, l.j.Up); kept != nil || err != nil {
			return kept, err
		}
	}
	if e != nil || l.j.Up || all(ranks, hasRun) {
		return e, nil
	}
	return l.neverStarts(ranks), nil
}

// neverStarts returns why an attempt that is not up will not start, nil if it may.
func (l *look) neverStarts(ranks []podStatus) *ending {
	p, within := l.a.Progress(), l.as.o.StartTimeout
	g, others := l.Foreign(l.a.Attempt)
	switch {
	case p.Refused != nil:
		return l.refused(p.Refused)
	case others: // it is out of use until they are gone: the next attempt goes elsewhere
		return &ending{text: fmt.Sprintf("GPU %s is in use by others", g.UUID)}
	case l.a.due.IsZero() || time.Now().Before(l.a.due):
		return nil
	case l.a.begun && p.Claimed.IsZero(): // no fault of its GPUs
		return &ending{text: fmt.Sprintf("its claims, or its service, could not be made within %v", within)}
	case l.a.waits:
		return &ending{text: fmt.Sprintf("not up after %v: %s", within, l.notFree())}
	case l.a.begun && p.Made.IsZero():
		return &ending{text: fmt.Sprintf("its pods could not be made within %v", within)}
	}
	return tooLate(ranks, within)
}

// refused returns the end of an attempt of which the API server does not take something.
func (l *look) refused(err error) *ending {
	e := &ending{text: err.Error()}
	if v, said := writer.Judge(err); said && l.as.o.Holds {
		e.refusal = v
	}
	return e
}

// devices has the pods made once the devices are free, and sets the time by which the attempt must have started. That
// counts from the order to start, then from when its claims are made, and once there are pods, from when they were
// made.
func (l *look) devices() {
	p, within := l.a.Progress(), l.as.o.StartTimeout
	switch {
	case !p.Made.IsZero():
		l.a.due = p.Made.Add(within)
	case !p.Claimed.IsZero() && !p.Free:
		l.a.due = p.Claimed.Add(within)
	}
	if p.Claimed.IsZero() || p.Free {
		return
	}
	_, held := l.Held(l.a.Attempt)
	if l.a.waits = held; !held {
		l.a.MakePods()
		l.a.due = time.Now().Add(within) // until the pods are there
	}
}

// started reports that all ranks are up.
func (l *look) started() {
	m := l.meter()
	e := sched.Event{Kind: sched.AttemptStarted, Job: l.a.Job, Attempt: l.a.Number, WorkFrom: l.Now}
	e.Work, e.Rate, e.Value = m.state()
	l.seen.Report(e)
	l.seen.LookAgain(observer.KeyOfJob(l.a.Key))
}

// force gives up the pods of an attempt whose node is gone: no kubelet is left that could say that they ended.
func (l *look) force(pods []*corev1.Pod) {
	for i, p := range pods {
		if p != nil && l.Inventory.IsGone(l.a.Ranks[i].NodeName) && !l.a.forced[i] {
			l.a.forced[i] = true
			l.seen.Force = append(l.seen.Force, p)
		}
	}
}
