package system

import (
	"maps"
	"slices"
	"strconv"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/model/remaining"
	"github.com/trainyard/trainyard/model/restart"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/model/variability"
)

// Live makes the system for real jobs, as Start does: what k does not hold is learned as they run, their work, what a
// restart costs them, and from equal PM scores on which GPUs are slow. Settings of h become those with LiveDefaults.
func Live(h *eventlog.Header, k Knowledge) (_ System, err error) {
	if k.Work == nil {
		k.Work = remaining.New()
	}
	if o, ok := k.Speeds.(*speedup.Oracle); ok {
		k.Speeds = o.Fresh() // systems are tried while another decides
	}
	if k.Restart == nil {
		costs := restart.NewCosts(DefaultRestart)
		k.Restart, k.Learn = costs.Of, append(slices.Clone(k.Learn), costs)
	}
	if k.Scores == nil && h.GPUs > 0 {
		k.Scores = EqualScores(h.GPUs)
	}
	if h.Settings, err = liveDefaults(h.System, h.Settings, h.Since); err != nil {
		return System{}, err
	}
	return Begin(h, k, nil)
}

// LiveDefaults returns settings, which it leaves as they are, with the values that keys of a system have for real jobs
// where they are not set: those take long to come up, and to be stopped again and again costs more than a simulation
// has it.
func LiveDefaults(name string, settings map[string]string) (map[string]string, error) {
	return liveDefaults(name, settings, 0)
}

// protects is the schema whose new keys have jobs keep their work: any manager has them, also of a log of before.
const protects = 2

// LiveDefaultsOf is LiveDefaults for a manager that goes on with the log that starts with h: other keys that were not
// known yet when it started are as if they were not.
func LiveDefaultsOf(h *eventlog.Header, name string, settings map[string]string) (map[string]string, error) {
	return liveDefaults(name, settings, GoesOnSince(h))
}

// GoesOnSince returns the schema whose keys a manager knows that goes on with the log that starts with h; 0: that of
// today.
func GoesOnSince(h *eventlog.Header) int {
	if h.Since == 0 {
		return 0
	}
	return max(h.Since, protects)
}

// Alike reports whether settings mean the same as those of a header of real jobs: keys that were not known yet when its
// log started may be missing there where they have the default of simulations, as it was then, or, of a run that is
// taken up again, that of real jobs.
func Alike(h *eventlog.Header, settings map[string]string, run bool) bool {
	info, err := Named(h.System)
	if err != nil || h.Since == 0 {
		return err == nil && maps.Equal(h.Settings, settings)
	}
	known := maps.Clone(settings)
	keys := info.All()
	maps.DeleteFunc(known, func(name, value string) bool {
		k := keys.Find(name)
		if _, logged := h.Settings[name]; logged {
			return false
		}
		return k != nil && k.LiveSince > h.Since && (value == k.Default || run && value == k.Live)
	})
	return maps.Equal(h.Settings, known)
}

// liveDefaults is LiveDefaults as of the schema of a log; 0: the present one.
func liveDefaults(name string, settings map[string]string, since int) (map[string]string, error) {
	info, err := Named(name)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(settings)
	if all == nil {
		all = make(map[string]string)
	}
	keys := info.All()
	for i := range keys {
		if k := &keys[i]; k.Live != "" && (since == 0 || k.LiveSince <= since) {
			if _, given := all[k.Name]; !given {
				all[k.Name] = k.Live
			}
		}
	}
	return all, nil
}

// EqualScores returns scores by which so many GPUs are alike for all jobs.
func EqualScores(gpus int) *variability.Scores {
	s := &variability.Scores{Name: "equal scores", Classes: []string{"A"},
		PM: [][]float64{slices.Repeat([]float64{1}, gpus)}}
	for g := range gpus {
		s.GPUs = append(s.GPUs, variability.GPU{Name: strconv.Itoa(g)})
	}
	return s
}
