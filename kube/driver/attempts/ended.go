package attempts

import (
	"fmt"
	"time"

	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/kube/driver/writer"
	"github.com/trainyard/trainyard/sched"
)

// AsOrdered is what the text of the end of an attempt that was ordered to stop starts with; behind "; " follows what
// became of its work.
const AsOrdered = "stopped as ordered"

// ended reports that nothing is left of an attempt.
func (l *look) ended(ranks []podStatus) {
	a := l.a
	if e := a.ending; a.orphan && a.stop == sched.NoOutcome &&
		(e.outcome == sched.NodeLost || e.outcome == sched.NoOutcome) {
		a.stop = sched.Cancelled // no node is to blame for it
	}
	m := l.meter()
	e := l.end(m, ranks)
	if e.Kind == sched.AttemptEnded && a.ending != nil && a.ending.refusal.Holds() {
		l.seen.Refused = &a.ending.refusal
		l.seen.Report(sched.Event{Kind: sched.JobCommanded, Job: a.Job, Code: int32(sched.PauseJob)})
	}
	m.keep(&e)
	l.as.rest(&e, l.Now)
	l.seen.Report(e)
	m.close()
	if a.unhear != nil {
		a.unhear()
	}
	l.seen.Over = &Over{a.Attempt, a.ending != nil && a.ending.outcome == sched.NodeLost}
	delete(l.as.alive, a.Job)
	for i := range a.Ranks {
		l.seen.LookAgain(observer.KeyOfNode(a.Ranks[i].NodeName)) // the node may wait for it to leave
	}
	l.seen.LookAgain(observer.KeyOfJob(a.Key))
}

// end returns how an attempt ended.
func (l *look) end(m *meter, ranks []podStatus) sched.Event {
	a, by := l.a, l.a.ending
	work, _, steps := m.state()
	e := sched.Event{
		Kind: sched.AttemptEnded, Job: a.Job, Attempt: a.Number, Outcome: a.stop, Work: work, Value: steps,
	}
	switch {
	case a.stop != sched.NoOutcome && all(ranks, func(s podStatus) bool { return s.stage == succeeded }):
		e.Outcome = sched.Finished
	case a.stop != sched.NoOutcome: // whatever its exit codes are, unless it said that it has done all
		e.Text = AsOrdered
		if m.saidDone() && all(ranks, func(s podStatus) bool { return s.code == 0 }) {
			e.Outcome = sched.Finished
		}
	case by.refusal.Holds() && !l.j.Up: // no failed start: its job is held
		e.Outcome = sched.Preempted
	case by.refusal.Answer == writer.Hopeless && !l.j.Up:
		e.Outcome, e.Text, e.WorkFrom = sched.Failed, by.text, sched.Never
	case by.outcome == sched.NoOutcome && !l.j.Up:
		e = sched.Event{Kind: sched.StartFailed, Job: a.Job, Attempt: a.Number, Text: by.text}
		for _, r := range by.suspect {
			e.GPUs = append(e.GPUs, a.Ranks[r].GPUs...)
		}
	default:
		e.Outcome, e.Code, e.Text = by.outcome, by.code, by.text
	}
	return e
}

// keep notes in the end of an attempt how much of its work outlives it. What was done since the last checkpoint that it
// reported is lost, unless it said that all is saved. If it reported none, nothing is said to be lost: the first step
// of the next attempt will show it.
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

// lastWords is how long the end of an attempt waits for what its process wrote last. A kubelet looks every second
// whether a process has ended.
const lastWords = 3 * time.Second

// mayYetSay reports whether what an attempt wrote last may still be on its way: that it has done all, or saved all.
func (l *look) mayYetSay() bool {
	a := l.a
	if a.unhear == nil || l.meter().silent() {
		return false
	}
	if a.quiet.IsZero() {
		a.quiet = time.Now()
		time.AfterFunc(lastWords, func() { l.as.o.Look(observer.KeyOfJob(a.Key)) })
	}
	return time.Since(a.quiet) < lastWords
}

// rest has a job that loses its machines again and again rest in between, longer each time.
func (as *Attempts) rest(e *sched.Event, now sched.Time) {
	if e.Kind != sched.AttemptEnded || e.Outcome != sched.NodeLost {
		delete(as.losses, e.Job)
		return
	}
	e.WorkFrom = now.Add(time.Second << min(as.losses[e.Job], 8))
	as.losses[e.Job]++
}
