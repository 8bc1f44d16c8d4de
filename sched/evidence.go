package sched

import "time"

// Preemptible is the request of a job's user: whether it may be stopped for others.
type Preemptible uint8

// Requests. The zero value leaves it to what shows that the job keeps its work.
const (
	AfterSave        Preemptible = iota // with evidence that it saves
	AlwaysPreempt                       // whatever is known
	NeverPreempt                        // not at all
	preemptibleWords = 3
)

var requests = [preemptibleWords]string{"after-save", "true", "false"}

// String returns the word of a known request, as job files and logs have it.
func (p Preemptible) String() string { return requests[p] }

// PreemptibleWords returns the words of all requests.
func PreemptibleWords() []string { return requests[:] }

// ParsePreemptible returns the request of a word; false if there is none.
func ParsePreemptible(word string) (Preemptible, bool) {
	for i, w := range requests {
		if w == word {
			return Preemptible(i), true
		}
	}
	return 0, false
}

// Evidence says what shows that a job keeps its work when it is stopped. It is folded from events.
type Evidence uint8

// Evidence, the weakest first; the last two speak against it.
const (
	NoEvidence Evidence = iota
	Declared            // its submitter says how it saves
	Seen                // it was seen to save
	Proven              // an attempt went on from what was kept
	SavesNot            // it was asked to save, had the time, and saved nothing; until it is seen to save
	ResumesNot          // it saved, and started from zero all the same; until it is proven
	evidenceWords
)

var evidences = [evidenceWords]string{"none", "declared", "seen", "proven", "saves-not", "resumes-not"}

// String returns the word of known evidence, as the API has it.
func (e Evidence) String() string { return evidences[e] }

// DeclaredBy returns the evidence that a job comes with.
func DeclaredBy(s *JobSpec) Evidence {
	if s.Saves {
		return Declared
	}
	return NoEvidence
}

// Stated returns the evidence of a job whose user has another spec of it: what was seen of the job stays.
func (e Evidence) Stated(s *JobSpec) Evidence {
	if e == NoEvidence || e == Declared {
		return DeclaredBy(s)
	}
	return e
}

// Shows reports whether e shows that the job keeps its work.
func (e Evidence) Shows() bool { return e == Declared || e == Seen || e == Proven }

// What a Saved event reports, as its Code.
const (
	SavedWork    int32 = iota // Work and Value = steps are kept
	SavedNothing              // it was asked to save and had the time, and kept nothing
	WentOn                    // the attempt went on from what was kept
	FromZero                  // the attempt started from zero although work had been kept
	StartedOver               // the attempt started from zero, and no one had seen anything kept
)

// After returns the evidence once a Saved with the code has come.
func (e Evidence) After(code int32) Evidence {
	switch {
	case code == WentOn:
		return Proven
	case code == StartedOver && e == Proven: // by where it went on alone, and no more
		return NoEvidence
	case code == StartedOver: // it may have been stopped before its first save
		return e
	case code == FromZero || e == ResumesNot:
		return ResumesNot
	case code == SavedNothing:
		return SavesNot
	case e == Proven:
		return Proven
	}
	return Seen
}

// Unsaved says what a system does with jobs of which nothing shows that they keep their work when they are stopped.
type Unsaved uint8

// Rules. The zero value is that of the published systems.
const (
	StopUnsaved  Unsaved = iota // they are stopped like any other
	LeaveUnsaved                // they are not stopped for others
)

var unsavedWords = [...]string{"stop", "leave"}

// String returns the word of a known rule, which is the value of the key unsaved.
func (u Unsaved) String() string { return unsavedWords[u] }

// UnsavedOf returns the rule that settings name; StopUnsaved where they name none.
func UnsavedOf(settings map[string]string) Unsaved {
	if settings["unsaved"] == LeaveUnsaved.String() {
		return LeaveUnsaved
	}
	return StopUnsaved
}

// Protects reports whether j may not be stopped, moved or resized for others.
func (u Unsaved) Protects(j *Job) bool {
	if u == StopUnsaved {
		return false
	}
	switch j.Spec.Preempt {
	case AlwaysPreempt:
		return false
	case NeverPreempt:
		return true
	}
	return !j.Evidence.Shows()
}

// Widths returns the widths at which j may be started: of a protected job that which it asks for alone, since it keeps
// it to its end.
func (u Unsaved) Widths(j *Job) Range {
	if u.Protects(j) {
		return Range{j.Spec.GPUs.Want, j.Spec.GPUs.Want, j.Spec.GPUs.Want}
	}
	return j.Spec.GPUs
}

// Loss is what a job has lost by being stopped for others. Work is time on Unit GPUs, as Job.Work.
type Loss struct {
	Work    time.Duration // that came to nothing: start-up, what was not saved, the time to stop
	Stops   int32         // for others
	Base    time.Duration // work with which the latest attempt started
	Claimed time.Duration // work of attempts stopped for others that is said to be kept
	// Unproven is what of Claimed no later attempt has gone on from yet: it may turn out to be lost.
	Unproven time.Duration
}

// ForOthers reports whether an attempt of j that ends as o says was stopped for others, not at its user's request.
func (j *Job) ForOthers(o Outcome) bool {
	return o == Preempted && !j.Paused && !j.Cancel && !j.Requeued && !j.few().ownStop
}

// LosesBy returns the work that comes to nothing when the latest attempt of j, whose stop was ordered at WorkFrom if it
// is Stopping, ends at the given time with the work that is kept: what it made beyond that, the time to start and the
// time to stop. claimed is how much of its own work is kept.
func (j *Job) LosesBy(end Time, kept time.Duration) (lost, claimed time.Duration) {
	made, productive, speed := j.made(end)
	idle := max(end.Sub(j.Began)-productive, 0)
	claimed = min(max(kept-j.Loss().Base, 0), made)
	return made - claimed + ScaleDuration(idle, speed), claimed
}

// made returns the work that the latest attempt of j has made by the given time, in which time, and the speed of that.
func (j *Job) made(end Time) (made, productive time.Duration, speed float64) {
	made = max(j.WorkNow(end)-j.Loss().Base, 0)
	stopped := end
	if j.Attempt == Stopping {
		stopped = j.WorkFrom
	}
	if j.Up {
		productive = max(stopped.Sub(j.LastStart), 0)
	}
	speed = float64(len(j.GPUs)) / float64(j.Unit()) // at most, where it is not known
	if made > 0 && productive > 0 {
		return made, productive, float64(made) / float64(productive)
	}
	return ScaleDuration(productive, speed), productive, speed
}

// Unsaved returns the work of the latest attempt of j, which runs, that is beyond the work that is kept by the given
// time: in no checkpoint, as far as that is known. It is 0 while j does not run.
func (j *Job) Unsaved(now Time, kept time.Duration) time.Duration {
	if j.Attempt != Running {
		return 0
	}
	made, _, _ := j.made(now)
	return made - min(max(kept-j.Loss().Base, 0), made)
}

// TakeLoss adds up what the latest attempt of j, which ends at the given time as o says with the work that is kept,
// has lost to others. What a failure destroys is the failure's loss.
func (j *Job) TakeLoss(end Time, o Outcome, kept time.Duration) {
	l := j.Loss()
	if !j.ForOthers(o) {
		l.Claimed, l.Unproven = 0, 0
		j.SetLoss(l)
		return
	}
	lost, claimed := j.LosesBy(end, kept)
	l.Work, l.Claimed, l.Stops = l.Work+lost, l.Claimed+claimed, l.Stops+1
	if j.Evidence != Proven {
		l.Unproven += claimed
	}
	j.SetLoss(l)
}

// Shown takes what a Saved event with the code reports: the evidence, and whether what was claimed is true. Who starts
// from zero has lost all of it by the stop before.
func (j *Job) Shown(code int32) {
	l := j.Loss()
	switch code {
	case WentOn:
		l.Unproven = 0
	case FromZero:
		l.Work, l.Claimed, l.Unproven = l.Work+l.Claimed, 0, 0
	case StartedOver: // what is not reported since counts from nothing
		l.Work, l.Claimed, l.Unproven = l.Work+l.Claimed, 0, 0
		if j.Work >= l.Base {
			j.Work -= l.Base
		}
		l.Base = 0
	}
	j.SetLoss(l)
	j.Evidence = j.Evidence.After(code)
}

// Owes returns from when on the live attempt of j has done twice what j has lost to others, which is when it may be
// stopped for others again; 0 if it has lost nothing. What is not proven to be kept counts as lost. While its speed is
// not known it counts as that of its width.
func (j *Job) Owes(now Time) Time {
	l := j.Loss()
	debt := 2 * (l.Work + l.Unproven)
	if debt == 0 {
		return 0
	}
	if j.Rate > 0 && j.Attempt == Running {
		left := debt - max(j.WorkNow(now)-l.Base, 0)
		return max(now, j.WorkFrom).Add(ScaleDuration(max(left, 0), 1/j.Rate))
	}
	from := now
	if j.Up {
		from = j.LastStart
	}
	return from.Add(ScaleDuration(debt, float64(j.Unit())/float64(max(len(j.GPUs), 1))))
}
