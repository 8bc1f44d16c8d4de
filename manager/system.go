package manager

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/model/remaining"
	"github.com/trainyard/trainyard/model/restart"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
)

// System returns the system that decides, or decided, about real jobs what a log that begins with h holds. k is what is known
// beside what their submitters say. What is not given there is learned as jobs run: their work, what a restart costs
// them, and from equal PM scores on which GPUs are slow. Settings of h become those with Defaults. It is refused if it rents
// nodes and h has no pools, or the reverse.
func System(h *engine.Header, k system.Knowledge) (system.System, error) {
	info, err := system.Named(h.System)
	if err != nil {
		return system.System{}, err
	}
	switch lent := len(h.Pools) > 0; {
	case info.Rents && !lent:
		return system.System{}, fmt.Errorf("system: %s rents nodes, and those of this machine are its own; want --budget, or another system", h.System)
	case lent && !info.Rents:
		return system.System{}, fmt.Errorf("system: %s rents nothing, want no --budget, or a system that does", h.System)
	}
	if k.Work == nil {
		k.Work = remaining.New()
	}
	if o, ok := k.Speeds.(*speedup.Oracle); ok {
		k.Speeds = o.Fresh() // systems are tried beside the one that decides
	}
	if k.Restart == nil {
		costs := restart.NewCosts(system.DefaultRestart)
		k.Restart, k.Learn = costs.Of, append(slices.Clone(k.Learn), costs)
	}
	if k.Scores == nil && h.GPUs > 0 {
		k.Scores = equal(h.GPUs)
	}
	if h.Settings, err = Defaults(h.System, h.Settings); err != nil {
		return system.System{}, err
	}
	return system.Begin(h, k, nil)
}

// Defaults returns settings, which it leaves as they are, with the values that keys of a system have for real jobs where they
// are not set: those take long to come up, and to be stopped again and again costs more than a simulation has it.
func Defaults(name string, settings map[string]string) (map[string]string, error) {
	info, err := system.Named(name)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(settings)
	if all == nil {
		all = make(map[string]string)
	}
	defaults := map[string]string{"min_run": system.AutoMinRun, "preempt_limit": strconv.Itoa(restart.DefaultRails.PerHour)}
	if info.Scored {
		defaults["stragglers"] = "watch"
	}
	if info.Sleeps { // the machine does not
		defaults["sleep"] = "inf"
	}
	takes := info.KeyNames()
	for key, value := range defaults {
		if _, given := all[key]; !given && slices.Contains(takes, key) {
			all[key] = value
		}
	}
	return all, nil
}

// equal returns scores by which so many GPUs are alike for all jobs.
func equal(gpus int) *variability.Scores {
	s := &variability.Scores{Name: "equal scores", Classes: []string{"A"}, PM: [][]float64{slices.Repeat([]float64{1}, gpus)}}
	for g := range gpus {
		s.GPUs = append(s.GPUs, variability.GPU{Name: strconv.Itoa(g)})
	}
	return s
}

// Wrote reports whether the log that begins with h is of real jobs: its time 0 is a date.
func Wrote(h *engine.Header) bool {
	_, err := time.Parse(time.RFC3339Nano, h.Origin)
	return err == nil
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
