package local

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/trainyard/trainyard/attempt/progress"
	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/sched"
)

// attemptBook is what a driver knows of attempts: those that live, and what of earlier ones counts for the next. It
// belongs to the engine's goroutine, but for others.
type attemptBook struct {
	mu       sync.Mutex               // of live and remarks, for others
	live     map[sched.JobID]*attempt // alive, or about to be
	ended    map[sched.JobID]int32    // the last attempt whose end was reported
	lost     map[sched.JobID]int      // ends in a row of which the reason is not known
	watched  map[sched.JobID]bool     // epochs wanted
	epochs   map[sched.JobID]int64    // the last known to have ended
	progress map[sched.JobID]*progress.Odometer
	remarks  map[sched.JobID]string // what its user should know of how it is watched
	resting  []sched.JobID          // had an attempt that ended: to be forgotten once they are done
}

func newAttemptBook() *attemptBook {
	return &attemptBook{live: make(map[sched.JobID]*attempt), ended: make(map[sched.JobID]int32),
		lost:    make(map[sched.JobID]int),
		watched: make(map[sched.JobID]bool), epochs: make(map[sched.JobID]int64),
		progress: make(map[sched.JobID]*progress.Odometer), remarks: make(map[sched.JobID]string)}
}

// begin makes an attempt the live one of its job.
func (b *attemptBook) begin(a *attempt) {
	b.mu.Lock()
	b.live[a.job] = a
	b.mu.Unlock()
}

// over notes that an attempt has ended.
func (b *attemptBook) over(job sched.JobID, number int32) {
	b.mu.Lock()
	delete(b.live, job)
	b.mu.Unlock()
	b.never(job, number)
}

// never notes that an attempt ended, or was never started.
func (b *attemptBook) never(job sched.JobID, number int32) {
	b.ended[job] = number
	b.resting = append(b.resting, job)
}

// others returns the attempts that live, all but one. Anyone may call it.
func (b *attemptBook) others(but *attempt) []*attempt {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]*attempt, 0, len(b.live))
	for _, a := range b.live {
		if a != but {
			list = append(list, a)
		}
	}
	return list
}

// remark notes what the user of a job should know of how it is watched; "" = nothing. Anyone may call it.
func (b *attemptBook) remark(job sched.JobID, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if text == "" {
		delete(b.remarks, job)
		return
	}
	b.remarks[job] = text
}

// envLost reports whether an error is that what a job was submitted with is lost, and says so to its user.
func (b *attemptBook) envLost(job sched.JobID, err error) bool {
	if !errors.Is(err, shim.ErrEnvLost) && !errors.Is(err, shim.ErrScriptLost) {
		return false
	}
	b.remark(job, err.Error()+"; put it back and resume the job, or submit it again")
	return true
}

// Remark returns what the user of a job that is not done should know of how it is watched; "" = nothing. It may be
// called at any time.
func (d *Driver) Remark(job sched.JobID) string {
	d.runs.mu.Lock()
	defer d.runs.mu.Unlock()
	return d.runs.remarks[job]
}

// What becomes of a job whose shims die one after the other: it rests in between, longer each time, nine minutes in
// all, and fails then. What kills them is not known, but it is likely to be the job, and will not stop by itself.
const (
	mostDeaths = 10
	longRun    = 10 * time.Minute // an attempt that ran for so long before got on: deaths are counted from one again
)

// rest says of an end, after an attempt that ran for so long, when its job is tried again; backoff: after ends that are
// no death of a shim.
func (b *attemptBook) rest(e *sched.Event, backoff sched.Time, ran time.Duration) {
	if e.Outcome != sched.NodeLost {
		delete(b.lost, e.Job)
		e.WorkFrom = backoff
		return
	}
	if ran >= longRun {
		delete(b.lost, e.Job)
	}
	b.lost[e.Job]++
	if n := b.lost[e.Job]; n < mostDeaths {
		e.WorkFrom = sched.Time(time.Second << (n - 1))
		return
	}
	e.Outcome, e.WorkFrom = sched.Failed, sched.Never
	e.Text = fmt.Sprintf("%s%s, the %dth time in a row; what kills it may be in the log of the machine, as when "+
		"memory is short", task.GivenUp, e.Text, mostDeaths)
}

// forget lets go of what is known of jobs that are done: a manager runs for months.
func (b *attemptBook) forget(isDone func(sched.JobID) bool) {
	b.resting = slices.DeleteFunc(b.resting, func(job sched.JobID) bool {
		if !isDone(job) {
			return b.live[job] != nil // its end will say so again
		}
		delete(b.ended, job)
		delete(b.lost, job)
		delete(b.watched, job)
		delete(b.epochs, job)
		delete(b.progress, job)
		b.remark(job, "")
		return true
	})
}

// isNew reports whether the attempt of an order is later than all that are known of its job.
func (b *attemptBook) isNew(order *sched.Action) bool {
	at := b.live[order.Job]
	return order.Attempt > b.ended[order.Job] && (at == nil || at.number != order.Attempt)
}
