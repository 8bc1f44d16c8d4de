package restart

import (
	"time"

	"github.com/trainyard/trainyard/sched"
)

// History is how often a job was told to stop, and how often it had saved all that it had done by the end of its grace.
type History struct{ Stops, Saved int }

// Saves returns the probability that it will do so again: Saved/(Stops+1). A job that was never stopped is not trusted:
// handlers of SIGTERM that look at a flag between steps fail in practice, and periodic checkpoints are what counts.
func (h History) Saves() float64 { return float64(h.Saved) / float64(h.Stops+1) }

// Age returns how much of a training would be lost without saving: the time since its newest complete checkpoint, or
// since its attempt started, whichever is shorter; never < 0. saved is sched.None if there is no checkpoint.
func Age(now, started, saved sched.Time) time.Duration { return max(now.Sub(max(started, saved)), 0) }

// Price is what is known of a job that might be stopped now.
type Price struct {
	Age   time.Duration // of what is not saved
	Saves float64       // probability that it saves when told to stop, 0..1
	Stop  time.Duration // from SIGTERM to its end, as measured or expected: at most the grace
	Grace time.Duration
	Start time.Duration // from its start to its first step, as measured or expected
}

// Loss returns what stopping the job now and starting it again is expected to cost, in seconds of its run: its unsaved
// work if it does not save, the time that it takes to stop, and the time that it takes to start. Times its width it is
// GPU-seconds.
//
// Without the start it is at most Age + Grace, as promise 16 has it.
func (p Price) Loss() float64 {
	unsaved := (1 - min(max(p.Saves, 0), 1)) * p.Age.Seconds()
	return unsaved + min(p.Stop, p.Grace).Seconds() + p.Start.Seconds()
}
