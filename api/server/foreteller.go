package server

import (
	"context"
	"sync"
	"time"

	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/sched"
)

const (
	// settling is how long after a submission its jobs are looked at, so that jobs that come together are one look.
	settling = 200 * time.Millisecond
	// again is how long after a look that had nothing of some jobs there is another, at least.
	again = time.Second
	// restShare is how many times as long as a look took there is none: it takes a twentieth of the time at most.
	restShare = 19
	// mostAwaited is of how many jobs a forecast is owed at once; of more none is kept.
	mostAwaited = 10_000
	// mostLate is how long a forecast is owed of a job: then it says nothing of the job as it was submitted.
	mostLate = 5 * time.Minute
)

// foreteller keeps of jobs that were submitted what is expected of them then, so that calibration knows of all jobs,
// not only of those that someone asked about. Anyone may call it.
type foreteller struct {
	host Host

	mu   sync.Mutex
	owed []owed // submitted, and not foreseen yet
	set  bool   // a look is to come, or goes on
}

// owed is a job of which a forecast is to be kept.
type owed struct {
	id    sched.JobID
	since time.Time
}

// submitted notes a job.
func (f *foreteller) submitted(id sched.JobID) {
	if _, keeps := f.host.(Calibrator); !keeps || id == sched.None {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.owed) < mostAwaited {
		f.owed = append(f.owed, owed{id, time.Now()})
	}
	if !f.set {
		f.set = true
		time.AfterFunc(settling, f.look)
	}
}

// look looks into the future once for all that came, and again later if more came meanwhile, or some are not in it: the
// look was not done in time, or is of a moment before them.
func (f *foreteller) look() {
	f.mu.Lock()
	list := f.owed
	f.owed = nil
	f.mu.Unlock()
	start := time.Now()
	// Where it cannot be known, or the host is about to end, nothing is kept.
	ahead, err := outlook(context.Background(), f.host, int(forecasting.Milliseconds()))
	var late []owed
	if err == nil {
		late = f.keep(ahead, list)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	pause := max(restShare*time.Since(start), settling)
	if len(late) > 0 {
		pause = max(pause, again)
	}
	f.owed = append(late, f.owed...)
	if f.set = len(f.owed) > 0; f.set {
		time.AfterFunc(pause, f.look)
	}
}

// keep has what is said of jobs kept, and returns those of which it does not know yet. Of one that is done already
// there is nothing to be foreseen.
func (f *foreteller) keep(ahead *explain.Forecast, list []owed) (late []owed) {
	var said []explain.Foretold
	for _, o := range list {
		if e := ahead.Of(o.id); e != nil {
			said = append(said, explain.Foretold{At: ahead.At, Job: o.id, System: f.host.Header().System,
				Start: e.Start, End: e.End})
		} else if (ahead == nil || int(o.id) >= ahead.All) && time.Since(o.since) < mostLate {
			late = append(late, o)
		}
	}
	if len(said) > 0 {
		f.host.(Calibrator).Foretold(said...)
	}
	return late
}
