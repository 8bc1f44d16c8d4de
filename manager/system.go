package manager

import (
	"errors"
	"fmt"
	"time"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
)

// System returns the system that decides, or decided, about real jobs what a log that begins with h holds. k is what is known
// beside what their submitters say: the work of a job is its wall time. It is refused if it rents nodes.
func System(h *engine.Header, k system.Knowledge) (system.System, error) {
	info, err := system.Named(h.System)
	if err != nil {
		return system.System{}, err
	}
	if info.Rents {
		return system.System{}, fmt.Errorf("system: %s rents nodes, and those of this machine are its own; want another", h.System)
	}
	k.Work = Stated{}
	return system.Begin(h, k, nil)
}

// NeedsWork reports whether the system of h must be told the work of all jobs.
func NeedsWork(h engine.Header, k system.Knowledge) bool {
	k.Work = nil
	_, err := system.Begin(&h, k, nil)
	return errors.Is(err, system.ErrNoWork)
}

// Fits says which job would wait for ever: it needs more devices than there are, which are called by unit; nil if none does.
func Fits(h *engine.Header, jobs []jobfile.Job, unit string) error {
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
			return fmt.Errorf("%w: job %s needs %d %ss, there are %d: it would never start", ErrRefused, j.Name, least, unit, h.GPUs)
		}
		if j.Share == sched.ShareRequire && h.ShareLimit < 2 {
			return fmt.Errorf("%w: job %s requires to share its %ss, and %s has no jobs share", ErrRefused, j.Name, unit, h.System)
		}
	}
	return nil
}

// ErrRefused says that a job is not taken: it would never start.
var ErrRefused = errors.New("refused")

// Foreign returns the first of the keys set that means nothing to real jobs, and why; "" if there is none.
func Foreign(settings map[string]string) (key, why string) {
	for _, k := range system.Provisioning {
		if _, given := settings[k.Name]; given {
			return k.Name, "the GPUs of this machine are its own: they are neither rented, nor capped, nor put to sleep"
		}
	}
	return "", ""
}

// Stated takes the wall time that a submitter stated as the work of a job.
type Stated struct{}

var _ sched.Remainer = Stated{}

// Remaining is what is left of the wall time, by the progress reported; 0 for a job that takes longer than stated.
func (Stated) Remaining(v *sched.View, j sched.JobID) time.Duration {
	job := v.Job(j)
	return max(job.Spec.WallTime-job.WorkNow(v.Now), 0)
}
