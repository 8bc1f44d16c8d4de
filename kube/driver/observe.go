package driver

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/sched"
)

// observe looks at the pods of an attempt and tells what became of it: its start or its end, never both at a time.
func (d *Driver) observe(a *attempt) error {
	if a.ranks[0].devices == nil { // who led before began it
		_ = d.findDevices(a) // of those that are missing the names are known
	}
	ranks, pods, err := d.see(a)
	if err != nil {
		return err
	}
	j := &d.view.Jobs[a.id]
	d.mindDevices(a)
	if a.stop == sched.NoOutcome && a.fate == nil {
		if a.fate, err = d.fateOf(a, j, ranks); err != nil {
			return err
		}
	}
	if a.fate != nil && a.fate.outcome != sched.NoOutcome && !j.Up && all(ranks, hasRun) { // it came and went between two looks
		d.started(a)
		return nil
	}
	switch {
	case a.fate != nil || a.stop != sched.NoOutcome:
		if !a.removed && !all(ranks, func(s sight) bool { return s.over }) {
			d.remove(a)
		}
		if all(ranks, func(s sight) bool { return s.over }) && (a.leaving || a.stop == sched.NoOutcome) && !d.mayYetSay(a) {
			d.ended(a, j, ranks)
		}
	case !j.Up && all(ranks, hasRun):
		d.started(a)
	case !j.Up:
		d.mindDelay(a, ranks)
	default:
		d.hear(a, pods[0])
	}
	d.force(a, pods)
	return nil
}

// fateOf returns what ends an attempt that nobody stops, nil if it goes on.
func (d *Driver) fateOf(a *attempt, j *sched.Job, ranks []sight) (*fate, error) {
	silent := false
	for i := range a.ranks {
		silent = silent || d.inventory.IsSilent(a.ranks[i].nodeName)
	}
	f := cause(ranks, silent, j.Up)
	if f != nil && a.adopted {
		if kept, err := d.fateKept(a, j.Up); kept != nil || err != nil {
			return kept, err
		}
	}
	if f != nil || j.Up || all(ranks, hasRun) {
		return f, nil
	}
	return d.startFate(a, ranks), nil
}

// startFate returns why an attempt that is not up will not start, nil if it may.
func (d *Driver) startFate(a *attempt, ranks []sight) *fate {
	a.mu.Lock()
	refused, claimed, made := a.refused, !a.claimed.IsZero(), !a.made.IsZero()
	a.mu.Unlock()
	if refused != nil {
		return &fate{text: refused.Error()}
	}
	if a.due.IsZero() || time.Now().Before(a.due) {
		return nil
	}
	if a.begun && !claimed { // no fault of its GPUs
		return &fate{text: fmt.Sprintf("its claims, or its service, could not be made within %v", d.o.StartTimeout)}
	}
	if a.waits {
		return &fate{text: fmt.Sprintf("not up after %v: %s", d.o.StartTimeout, d.notFree(a))}
	}
	if a.begun && !made {
		return &fate{text: fmt.Sprintf("its pods could not be made within %v", d.o.StartTimeout)}
	}
	return tooLate(ranks, d.o.StartTimeout)
}

// mindDevices has the pods made once the devices are free, and sets the time by which the attempt must have started: until then it is
// so long after the order to start, from now on after the making of its claims, and once there are pods, after that of its pods.
func (d *Driver) mindDevices(a *attempt) {
	a.mu.Lock()
	claimed, made := a.claimed, a.made
	a.mu.Unlock()
	switch {
	case !made.IsZero():
		a.due = made.Add(d.o.StartTimeout)
	case !claimed.IsZero() && !isClosed(a.free):
		a.due = claimed.Add(d.o.StartTimeout)
	}
	if claimed.IsZero() || isClosed(a.free) {
		return
	}
	_, held := d.heldBy(a)
	if a.waits = held; !held {
		close(a.free)
		a.due = time.Now().Add(d.o.StartTimeout) // until the pods are there
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// started tells that all ranks are up.
func (d *Driver) started(a *attempt) {
	m := d.meterOf(a)
	e := sched.Event{Kind: sched.AttemptStarted, Job: a.id, Attempt: a.number, WorkFrom: d.now}
	e.Work, e.Rate, e.Value = m.state()
	d.tell(e)
	d.again(observer.KeyOfJob(a.key))
}

// AsOrdered is what the text of the end of an attempt that was told to stop begins with; behind "; " follows what became of its work.
const AsOrdered = "stopped as ordered"

// ended tells that nothing is left of an attempt, and has its claims removed once that is durable.
func (d *Driver) ended(a *attempt, j *sched.Job, ranks []sight) {
	if f := a.fate; a.orphan && a.stop == sched.NoOutcome && (f.outcome == sched.NodeLost || f.outcome == sched.NoOutcome) {
		a.stop = sched.Cancelled // no node is to blame for it
	}
	m := d.meterOf(a)
	work, _, steps := m.state()
	e := sched.Event{Kind: sched.AttemptEnded, Job: a.id, Attempt: a.number, Outcome: a.stop, Work: work, Value: steps}
	finished := all(ranks, func(s sight) bool { return s.stage == succeeded })
	switch f := a.fate; {
	case a.stop != sched.NoOutcome && finished:
		e.Outcome = sched.Finished
	case a.stop != sched.NoOutcome: // whatever its exit codes are, unless it said that it has done all
		e.Text = AsOrdered
		if m.saidDone() && all(ranks, func(s sight) bool { return s.code == 0 }) {
			e.Outcome = sched.Finished
		}
	case f.outcome == sched.NoOutcome && !j.Up:
		e = sched.Event{Kind: sched.StartFailed, Job: a.id, Attempt: a.number, Text: f.text}
		for _, r := range f.suspect {
			e.GPUs = append(e.GPUs, a.ranks[r].gpus...)
		}
	default:
		e.Outcome, e.Code, e.Text = f.outcome, f.code, f.text
	}
	m.keep(&e)
	d.rest(&e)
	d.tell(e)
	m.close()
	if a.unhear != nil {
		a.unhear()
	}
	d.over = append(d.over, a)
	delete(d.attempts, a.id)
	for i := range a.ranks {
		d.again(observer.KeyOfNode(a.ranks[i].nodeName)) // it may be waited for before the node may leave
	}
	d.again(observer.KeyOfJob(a.key))
}

// keep notes in the end of an attempt how much of its work outlives it. What was done since the last checkpoint that it told of is lost,
// unless it said that all is saved. If it told of none, nothing is said to be lost: the first step of the next attempt will tell.
func (m *meter) keep(e *sched.Event) {
	lost, known := m.lost()
	if !known || e.Kind != sched.AttemptEnded || e.Outcome == sched.Finished {
		return
	}
	what := "what it did is saved"
	if lost > 0 {
		_, rate, _ := m.state()
		e.Work = max(e.Work-sched.ScaleDuration(lost, rate), 0)
		what = fmt.Sprintf("what it did in its last %v is lost", lost.Round(time.Second/10))
	}
	if e.Text != "" {
		e.Text += "; "
	}
	e.Text += what
}

// lastWords is how long is waited for what a process wrote last. A kubelet looks every second whether one has ended.
const lastWords = 3 * time.Second

// mayYetSay reports whether what an attempt wrote last may still be on its way: that it has done all, or saved all.
func (d *Driver) mayYetSay(a *attempt) bool {
	if a.unhear == nil || d.meterOf(a).silent() {
		return false
	}
	if a.quiet.IsZero() {
		a.quiet = time.Now()
		time.AfterFunc(lastWords, func() { d.o.Queue.Push(observer.KeyOfJob(a.key)) })
	}
	return time.Since(a.quiet) < lastWords
}

// rest has a job that loses its machines again and again rest in between, longer each time.
func (d *Driver) rest(e *sched.Event) {
	if e.Kind != sched.AttemptEnded || e.Outcome != sched.NodeLost {
		delete(d.lost, e.Job)
		return
	}
	e.WorkFrom = d.now.Add(time.Second << min(d.lost[e.Job], 8))
	d.lost[e.Job]++
}

// force gives up the pods of an attempt whose node is gone: nobody is left who could say that they ended.
func (d *Driver) force(a *attempt, pods []*corev1.Pod) {
	for i, p := range pods {
		if p != nil && d.inventory.IsGone(a.ranks[i].nodeName) && !a.forced[i] {
			a.forced[i] = true
			d.forcePod(p)
		}
	}
}
