package manager

import (
	"fmt"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
)

// System returns the system that decides, or decided, about real jobs what a log that starts with h holds. k is what is
// known in addition to what their submitters say, see system.Live. It is refused if it rents nodes and h has no pools,
// or the reverse.
func System(h *eventlog.Header, k system.Knowledge) (system.System, error) {
	info, err := system.Named(h.System)
	if err != nil {
		return system.System{}, err
	}
	switch offered := len(h.Pools) > 0; {
	case info.Rents && !offered:
		return system.System{}, fmt.Errorf("system: %s rents nodes, and those of this machine are its own; want "+
			"--budget, or another system", h.System)
	case offered && !info.RentsUnder(h.Budget, key.NewSettings(h.Settings)):
		return system.System{}, fmt.Errorf("system: %s rents nothing, want no --budget, or a system that does",
			h.System)
	}
	return system.Live(h, k)
}

// Wrote reports whether the log that starts with h is of real jobs: its time 0 is a date.
func Wrote(h *eventlog.Header) bool {
	_, err := time.Parse(time.RFC3339Nano, h.Origin)
	return err == nil
}

// Fits says which job would wait for ever: it needs more devices than there are, which are called by unit; nil if none
// does.
func Fits(h *eventlog.Header, jobs []jobfile.Job, unit string) error {
	info, err := system.Named(h.System)
	if err != nil {
		return err
	}
	for i := range jobs {
		j := &jobs[i].Spec
		least := j.GPUs.Want
		if info.Batches { // it chooses widths as well
			least = j.GPUs.Min
		}
		if int(least) > h.GPUs {
			return fmt.Errorf("%w: job %s needs %d %ss, there are %d: it would never start", ErrRefused, j.Name, least,
				unit, h.GPUs)
		}
		if j.Share == sched.ShareRequire && h.ShareLimit < 2 {
			return fmt.Errorf("%w: job %s requires to share its %ss, and %s has no jobs share", ErrRefused, j.Name,
				unit, h.System)
		}
	}
	return nil
}

// ErrRefused says that a job is not taken: it would never start.
var ErrRefused = api.ErrRefused
