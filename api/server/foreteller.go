package server

import (
	"context"
	"sync"
	"time"

	"github.com/trainyard/trainyard/sched"
)

const (
	// settling is how long after a submission its jobs are looked at, so that jobs that come together are one look.
	settling = 200 * time.Millisecond
	// restShare is how many times as long as a look took there is none: it takes a twentieth of the time at most.
	restShare = 19
	// mostAwaited is of how many jobs a forecast is owed at once; of more none is kept.
	mostAwaited = 1000
)

// foreteller keeps of jobs that were submitted what is expected of them then, so that calibration knows of all jobs,
// not only of those that someone asked about. Anyone may call it.
type foreteller struct {
	host Host

	mu   sync.Mutex
	owed []sched.JobID // submitted, and not looked at yet
	set  bool          // a look is to come, or goes on
}

// submitted notes a job.
func (f *foreteller) submitted(id sched.JobID) {
	if _, keeps := f.host.(Calibrator); !keeps || id == sched.None {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.owed) < mostAwaited {
		f.owed = append(f.owed, id)
	}
	if !f.set {
		f.set = true
		time.AfterFunc(settling, f.look)
	}
}

// look looks into the future once for all that came, and again later if more came meanwhile.
func (f *foreteller) look() {
	f.mu.Lock()
	list := f.owed
	f.owed = nil
	f.mu.Unlock()
	start := time.Now()
	// Where it cannot be known, or the host is about to end, nothing is kept.
	ahead, err := outlook(context.Background(), f.host, int(forecasting.Milliseconds()))
	if err == nil && ahead != nil {
		for _, id := range list {
			foretold(f.host, &Answer{Forecast: ahead}, id)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.set = len(f.owed) > 0; f.set {
		time.AfterFunc(max(restShare*time.Since(start), settling), f.look)
	}
}
