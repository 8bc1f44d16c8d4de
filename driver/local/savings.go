package local

import (
	"cmp"
	"runtime"
	"time"

	"github.com/trainyard/trainyard/attempt/progress"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/sched"
)

// How saves are noticed.
const (
	// settled is for how long a file has not been written to that counts as complete while the job runs.
	settled = 2 * time.Second
	// markEvery and mostMarks are how finely and how far back it is known how far the job was.
	markEvery = 100 * time.Millisecond
	mostMarks = 256
)

// savings is what shows that an attempt keeps its work. It belongs to the goroutine of the attempt's tail, and to that
// of the attempt once the tail has stopped.
type savings struct {
	started time.Time // of the attempt: older files are those of others
	stepped bool      // it has made a step
	step    int64     // last step reported, and the one before
	before  int64
	marks   []mark // how far the job was, at rising times

	saved    bool      // something was saved
	last     mark      // how far the job was then
	said     time.Time // when the job said so last; zero = never, or no one was there
	file     time.Time // of the newest complete file
	owing    bool      // a save is not reported yet
	reported time.Time // when one was reported last
	looked   time.Time // when the folder was last looked at
}

// mark is how far a job was at a time.
type mark struct {
	at    time.Time
	steps int64
	least int64 // steps that a checkpoint of then has at least
	work  time.Duration
}

// here is how far the job is.
func (t *tail) here(now time.Time) mark {
	m := mark{at: now, steps: t.a.odo.Steps(), least: t.savings.before, work: t.a.odo.Work()}
	if m.least > m.steps || m.least == 0 {
		m.least = m.steps
	}
	return m
}

// saw takes in what a line says about saving, and about where the attempt started.
func (t *tail) saw(m *progress.Reading, now time.Time) {
	s := &t.savings
	if m.Has&progress.Step != 0 {
		o := t.a.odo
		o.Wraps = o.Wraps || s.stepped && (m.Step < s.step/2 || m.Step > 1 && m.Step <= s.step/2)
		s.stepped, o.Reached = true, m.Step
		if m.Step != s.step {
			s.before, s.step = s.step, m.Step
		}
		t.judge(m)
	}
	if m.Has&(progress.Saved|progress.Ready) == 0 {
		return
	}
	kept := t.here(now)
	if m.Has&progress.SavedStep != 0 {
		kept.steps, kept.least = m.SavedStep, m.SavedStep
	}
	if t.caughtUp {
		s.said = now
	}
	s.file = now // what was said of is not found in the folder again
	t.keeps(kept)
	t.owe(now)
}

// judge says, at the first step of an attempt, whether it goes on from what earlier ones kept. A job that reports each
// tenth step starts with the tenth: what its first attempt started with is as good as zero.
func (t *tail) judge(m *progress.Reading) {
	o := t.a.odo
	if o.Origin.Judged {
		return
	}
	o.Origin.Judged = true
	zero, saved := max(o.FirstStep, 1), o.Origin.Saved
	switch {
	case m.Again || saved > 0 && saved <= zero:
	case saved == 0:
		t.judgeUnseen(m)
	case m.Step <= zero:
		if o.SavedSteps == saved {
			o.SavedSteps = 0
		}
		t.report(sched.Event{Kind: sched.Saved, Code: sched.FromZero})
	case m.Step >= saved:
		t.report(sched.Event{Kind: sched.Saved, Code: sched.WentOn, Work: o.Work(), Value: float64(m.Step)})
	}
}

// judgeUnseen is judge for a job of which no save was seen: where earlier attempts came far beyond their first step,
// the first of this one can show that it kept its work all the same. Where it is the first step again of so many in all
// that they did not get beyond these, what they did was lost. Without such a total nothing is known: steps may count
// from one in each pass over the data, or in each attempt. That the job never keeps its work is not shown: it may have
// been stopped before its first save was due.
func (t *tail) judgeUnseen(m *progress.Reading) {
	o := t.a.odo
	zero, reached := o.FirstStep, o.Origin.Reached
	switch {
	case zero == 0:
		o.FirstStep = max(m.Step, 1)
	case o.Wraps || reached <= zero:
	case m.Step <= zero:
		o.Resumes = false
		within := m.Has&progress.Total != 0 && reached <= m.Total
		if within && (m.Has&progress.Epoch == 0 || m.Epoch < 1) {
			t.report(sched.Event{Kind: sched.Saved, Code: sched.StartedOver, Value: float64(m.Step)})
		}
	case reached >= max(fewSteps, 4*zero) && continues(m.Step, zero, reached):
		o.Resumes = true
		t.report(sched.Event{Kind: sched.Saved, Code: sched.WentOn, Work: o.Work(), Value: float64(m.Step)})
	}
}

// fewSteps are too few to say by the next one that a job went on.
const fewSteps = 16

// continues reports whether an attempt whose first step is given goes on from others, which started with step zero
// and reached another. A step right after that is no chance. Any other has to be near it, and far from where a job
// starts that reports now and then by the clock and is faster this time.
func continues(step, zero, reached int64) bool {
	if step-reached == 1 {
		return true
	}
	near := step > reached/2 && step-reached <= max(zero, reached/4)
	return near && step/4 > zero
}

// headRead is how much is read of where an output starts, to find the first step of an attempt whose end alone is read
// otherwise.
const headRead = 256 << 10

// judgeHead is judge for an attempt of which not all will be read: by the first step at the head of what it wrote. If
// there is none, nothing is known.
func (t *tail) judgeHead() {
	if t.a.odo.Origin.Judged {
		return
	}
	runtime.LockOSThread() // for the time of a pattern
	defer runtime.UnlockOSThread()
	reader := readerOf(t.a.order)
	for i, source := range sources {
		if t.files[i] == nil {
			t.open(i, source)
		}
		if t.files[i] == nil {
			continue
		}
		head := make([]byte, headRead)
		n, _ := t.files[i].ReadAt(head, 0) // as much as there is
		for m := range reader.Read(source, head[:n]) {
			if m.Has&progress.Step != 0 {
				t.savings.stepped = true
				t.judge(&m)
			}
		}
	}
	t.a.odo.Origin.Judged = true
}

// keeps notes how far the job was at its last save.
func (t *tail) keeps(kept mark) {
	t.savings.saved, t.savings.last, t.savings.owing = true, kept, true
	t.a.odo.SavedSteps = kept.least
}

// owe reports the last save, if that is not too soon.
func (t *tail) owe(now time.Time) {
	s := &t.savings
	if !s.owing || now.Sub(s.reported) < cmp.Or(t.a.d.o.Report, reportEvery) {
		return
	}
	s.owing, s.reported = false, now
	t.report(s.last.event())
}

// event says that the work up to a mark is kept.
func (m *mark) event() sched.Event {
	return sched.Event{Kind: sched.Saved, Code: sched.SavedWork, Work: m.work, Value: float64(m.steps)}
}

// watch notes how far the job is, and looks now and then for a new file in the folder in which it saves.
func (t *tail) watch(now time.Time) {
	s := &t.savings
	if n := len(s.marks); n == 0 || now.Sub(s.marks[n-1].at) >= markEvery {
		if n == mostMarks {
			s.marks = append(s.marks[:0], s.marks[mostMarks/2:]...)
		}
		s.marks = append(s.marks, t.here(now))
	}
	t.owe(now)
	if t.folder == "" || now.Sub(s.looked) < cmp.Or(t.a.d.o.Report, reportEvery) {
		return
	}
	s.looked = now
	if at := newest(t.folder, now.Add(-settled)); at.After(s.file) && !at.Before(s.started) {
		s.file = at
		t.keeps(s.at(at))
		t.owe(now)
	}
}

// at returns how far the job was at a time, as far as that is known.
func (s *savings) at(when time.Time) mark {
	found := mark{at: when}
	for i := range s.marks {
		if i == 0 || !s.marks[i].at.After(when) {
			found = s.marks[i]
		}
	}
	return found
}

// proof says, at the end of an attempt, what it shows about saving, before the end itself: the last save, or that there
// was none although the job was asked to save and had the time.
func (a *attempt) proof(e *sched.Event, over *shim.Over) (proof sched.Event, ok bool) {
	if over == nil || e.Kind != sched.AttemptEnded || a.meter == nil {
		return sched.Event{}, false
	}
	s := &a.meter.savings
	switch {
	case e.Outcome != sched.Finished && a.cost.known && a.cost.saved:
		kept := a.kept(over)
		kept.work = e.Work
		if kept.least > 0 { // else the newest checkpoint has as many as that before it, at least
			a.odo.SavedSteps = kept.least
		}
		return kept.event(), s.owing || !s.saved || kept.steps > s.last.steps
	case s.owing:
		return s.last.event(), true
	}
	return sched.Event{Kind: sched.Saved, Code: sched.SavedNothing, Work: e.Work, Value: e.Value}, a.refused(e, over)
}

// refused reports whether the job was asked to save, had the time, and saved nothing. Who made no step since it was
// started, though it counts steps, had nothing to save; who has gone on before keeps its work where no one looks; and
// of a cancelled job nothing more is wanted.
func (a *attempt) refused(e *sched.Event, over *shim.Over) bool {
	s := &a.meter.savings
	asked := over.Stopped && !over.StopAsked.IsZero() && e.Outcome != sched.Cancelled && e.Outcome != sched.Finished
	idle := a.odo.FirstStep > 0 && !s.stepped
	return asked && !idle && !s.saved && !a.odo.Resumes
}

// kept returns how far the job was at the last save of an attempt that saved: as its end cost it, or as it said.
func (a *attempt) kept(over *shim.Over) mark {
	s := &a.meter.savings
	kept := a.meter.here(over.Ended)
	if a.cost.time > 0 {
		kept = s.at(a.cost.at)
	}
	if !s.said.IsZero() && s.last.steps >= kept.least {
		kept.steps, kept.least = s.last.steps, s.last.least
	}
	return kept
}
