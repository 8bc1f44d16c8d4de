package local

import (
	"time"

	"github.com/trainyard/trainyard/driver/local/procs"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/sched"
)

// stamp is when something happened, as a shim wrote it down.
type stamp struct {
	clock time.Time     // of the machine, which may have been set since
	since time.Duration // since the machine was booted; 0 = not known
	boot  string        // which boot that was
}

// startOf is when the attempt of a record started; nothing if no shim saw it end.
func startOf(over *shim.Over) stamp {
	if over == nil {
		return stamp{}
	}
	return stamp{over.Started, over.StartedBoot, over.BootID}
}

// endOf is when the attempt of a record ended; nothing if no shim saw it.
func endOf(over *shim.Over) stamp {
	if over == nil {
		return stamp{}
	}
	return stamp{over.Ended, over.EndedBoot, over.BootID}
}

// wasSet is by how much the clock must differ from the time since the machine was booted to have been set meanwhile.
const wasSet = 100 * time.Millisecond

// trueTime returns when something happened, not after now: by the clock of the machine, or, if that was set meanwhile,
// by the time since the machine was booted, unless it was booted again. 0 = it is not known.
func trueTime(d *Driver, s stamp) sched.Time {
	if s.clock.IsZero() {
		return 0
	}
	now, at := d.clock(), sched.Time(s.clock.Sub(d.o.Origin))
	if id, err := procs.BootID(); s.since > 0 && err == nil && id == s.boot {
		by := now.Add(min(s.since-shim.SinceBoot(), 0))
		if off := at.Sub(by); max(off, -off) > wasSet {
			at = by
		}
	}
	return max(min(at, now), 0)
}
