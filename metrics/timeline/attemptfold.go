package timeline

import (
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Attempt is one attempt of a job. Times are None where it did not come to pass.
type Attempt struct {
	Job     sched.JobID
	Number  int32      // from 1
	Ordered sched.Time // its GPUs are held from here on
	Up      sched.Time // all its processes ran
	Work    sched.Time // it did work from here on
	Kept    sched.Time // what it did from here on was lost; Stopped or Ended if nothing was
	Stopped sched.Time // it was ordered to stop
	Ended   sched.Time // its GPUs were free again
	GPUs    []Run      // in order
	Batch   int32
	Given   uint64 // number of the event by which its GPUs were decided; 0 = unknown
	Outcome sched.Outcome
	Reason  sched.Reason // of the decision that took its GPUs away; of the one that gave them while it has them
	Marks   Marks
	byUser  bool // its user had it stopped, though the job goes on
}

// Run is GPUs whose numbers follow each other.
type Run struct {
	First sched.GPUID
	Count int32
}

// Marks says what is odd about an attempt.
type Marks uint8

// Marks of an attempt.
const (
	Resized  Marks = 1 << iota // it gave way to one of another width
	Migrated                   // it gave way to one on other GPUs
	Shared                     // a GPU of it had another tenant meanwhile
	NoStart                    // it never came up: its start failed
)

// Job is a job as its submitter described it.
type Job struct {
	Name, User, Group, Model, Class string
	Submit, Deadline                sched.Time // 0 = no deadline
	GPUs                            sched.Range
}

// Width returns how many GPUs the attempt holds.
func (a *Attempt) Width() (n int) {
	for _, r := range a.GPUs {
		n += int(r.Count)
	}
	return n
}

// Lost returns for how long the attempt did what was lost, as far as it has ended.
func (a *Attempt) Lost() time.Duration {
	if a.Kept == sched.None || a.Ended == sched.None {
		return 0
	}
	return max(a.stop(a.Ended).Sub(a.Kept), 0)
}

// Other returns the other job of the attempt's reason, and whether there is one.
func (a *Attempt) Other() (id sched.JobID, named bool) {
	switch a.Reason.Code {
	case sched.WhyPreempted, sched.WhyTrial, sched.WhyKept, sched.WhyUndone, sched.WhyPaired:
		return a.Reason.Job, true
	}
	return sched.None, false
}

// stop returns when an attempt did no more work: when it was ordered to stop, else when it ended, else at end.
func (a *Attempt) stop(end sched.Time) sched.Time {
	switch {
	case a.Stopped != sched.None:
		return min(a.Stopped, end)
	case a.Ended != sched.None:
		return min(a.Ended, end)
	}
	return end
}

// runsOf returns a set, which is in order, as runs.
func (t *Timeline) runsOf(set []sched.GPUID) []Run {
	if len(t.jobs.arena)+len(set) > cap(t.jobs.arena) {
		t.jobs.arena = make([]Run, 0, max(1024, len(set)))
	}
	start := len(t.jobs.arena)
	for _, g := range set {
		if n := len(t.jobs.arena); n > start && t.jobs.arena[n-1].First+sched.GPUID(t.jobs.arena[n-1].Count) == g {
			t.jobs.arena[n-1].Count++
			continue
		}
		t.jobs.arena = append(t.jobs.arena, Run{g, 1})
	}
	return t.jobs.arena[start:len(t.jobs.arena):len(t.jobs.arena)]
}

// ordered notes that an attempt takes its GPUs.
func (t *Timeline) ordered(v *sched.View, id sched.JobID, at sched.Time) {
	j, l := &v.Jobs[id], t.jobs.of(id)
	if l == nil {
		return
	}
	l.base, l.work, l.from, l.rate = j.Work, j.Work, at, 0
	t.add(l, Attempt{Job: id, Number: j.Attempts, Ordered: at, Up: sched.None, Work: sched.None,
		Kept: sched.None, Stopped: sched.None, Ended: sched.None, GPUs: t.runsOf(j.GPUs), Batch: j.Live.Batch,
		Given: l.decision, Reason: l.given})
	for _, g := range j.GPUs {
		for int(g) >= len(t.on) {
			t.on = append(t.on, nil)
		}
		t.on[g] = append(t.on[g], int32(l.index))
		if len(t.on[g]) > 1 {
			for _, i := range t.on[g] {
				t.attempt(int(i)).Marks |= Shared
			}
		}
	}
}

// cameUp notes that an attempt is up, and from when on it works.
func (t *Timeline) cameUp(v *sched.View, e *sched.Event) {
	j, a := &v.Jobs[e.Job], t.liveAttempt(e.Job)
	if a == nil {
		return
	}
	a.Up = j.LastStart
	if j.Attempt == sched.Running { // one that comes up while it is stopped does no work
		a.Work = max(e.WorkFrom, a.Ordered)
	}
	t.jobs.of(e.Job).base = j.Loss().Base
	t.reported(v, e.Job)
}

// reported takes the work that a job has done, as last reported.
func (t *Timeline) reported(v *sched.View, id sched.JobID) {
	if l, j := t.jobs.of(id), &v.Jobs[id]; l != nil {
		l.work, l.from, l.rate = j.Work, j.WorkFrom, j.Rate
	}
}

// ended notes that an attempt is over.
func (t *Timeline) ended(v *sched.View, e *sched.Event) {
	l, a := t.jobs.of(e.Job), t.liveAttempt(e.Job)
	if a == nil {
		return
	}
	index := int32(l.index)
	l.index = -1
	a.Ended, a.Outcome = e.Time, e.Outcome
	if e.Kind == sched.StartFailed {
		a.Outcome, a.Marks = sched.Failed, a.Marks|NoStart
	}
	t.keep(v, e, index)
	for _, r := range a.GPUs {
		for g := r.First; g < r.First+sched.GPUID(r.Count); g++ {
			t.leave(g, index)
		}
	}
}

// keep says from when on what the attempt did was lost, by the rule of sched.Job.LosesBy: what is kept is the work that
// the event says, and of a job that goes on the rest is done again.
func (t *Timeline) keep(v *sched.View, e *sched.Event, index int32) {
	j, l, a := &v.Jobs[e.Job], t.jobs.of(e.Job), t.attempt(int(index))
	a.Kept = a.stop(e.Time)
	a.byUser = e.Outcome == sched.Preempted && !j.ForOthers(e.Outcome)
	if a.Work == sched.None || a.Work >= a.Kept || j.State == sched.Done {
		return
	}
	spent := a.Kept.Sub(a.Work)
	made := l.made(a.Kept)
	if made == 0 { // its speed is not known
		made = sched.ScaleDuration(spent, float64(a.Width())/float64(j.Unit()))
	}
	kept := min(max(e.Work-l.base, 0), made)
	if kept < made {
		a.Kept = a.Work.Add(min(sched.ScaleDuration(spent, float64(kept)/float64(made)), spent))
	}
	l.claims = append(l.claims, index)
}

// made returns the work that the attempt has done at a time.
func (l *live) made(at sched.Time) time.Duration {
	work := l.work
	if at > l.from {
		work += sched.ScaleDuration(at.Sub(l.from), l.rate)
	}
	return max(work-l.base, 0)
}

// saved takes what an attempt shows about saving.
func (t *Timeline) saved(v *sched.View, e *sched.Event) {
	if e.Code == sched.FromZero || e.Code == sched.StartedOver {
		t.fromZero(e.Job)
	}
	if l := t.jobs.of(e.Job); l != nil && e.Code == sched.StartedOver {
		l.base = v.Jobs[e.Job].Loss().Base
		t.reported(v, e.Job)
	}
}

// fromZero notes that nothing was kept of the attempts before, whatever had been said.
func (t *Timeline) fromZero(id sched.JobID) {
	l := t.jobs.of(id)
	if l == nil {
		return
	}
	for _, i := range l.claims {
		a := t.attempt(int(i))
		a.Kept = a.Work
	}
	l.claims = l.claims[:0]
}

// liveAttempt returns the attempt of a job that is under way, nil if there is none.
func (t *Timeline) liveAttempt(id sched.JobID) *Attempt {
	if l := t.jobs.of(id); l != nil && l.index >= 0 {
		return t.attempt(l.index)
	}
	return nil
}

// add appends an attempt, which is under way.
func (t *Timeline) add(l *live, a Attempt) {
	if t.old == nil {
		l.index = len(t.Attempts)
		t.Attempts = append(t.Attempts, a)
		return
	}
	l.index = t.old.n
	t.old.add(a)
	l.own = append(l.own, int32(l.index))
}

// attempt returns attempt i, of a job that is not done.
func (t *Timeline) attempt(i int) *Attempt {
	if t.old != nil {
		return t.old.at(i)
	}
	return &t.Attempts[i]
}

// leave takes an attempt off a GPU.
func (t *Timeline) leave(g sched.GPUID, index int32) {
	list := t.on[g]
	for i, other := range list {
		if other == index {
			t.on[g] = append(list[:i], list[i+1:]...)
			return
		}
	}
}
