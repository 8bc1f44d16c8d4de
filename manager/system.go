package manager

import (
	"fmt"
	"time"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/model/remaining"
	"github.com/trainyard/trainyard/system"
)

// System returns the system that decides, or decided, about real jobs what a log that begins with h holds. k is what is known
// beside what their submitters say. What they do not say is learned as jobs run: their work, unless k.Work is given. It is
// refused if it rents nodes.
func System(h *engine.Header, k system.Knowledge) (system.System, error) {
	info, err := system.Named(h.System)
	if err != nil {
		return system.System{}, err
	}
	if info.Rents {
		return system.System{}, fmt.Errorf("system: %s rents nodes, and those of this machine are its own; want another", h.System)
	}
	if k.Work == nil {
		k.Work = remaining.New()
	}
	return system.Begin(h, k, nil)
}

// Wrote reports whether the log that begins with h is of real jobs: its time 0 is a date.
func Wrote(h *engine.Header) bool {
	_, err := time.Parse(time.RFC3339Nano, h.Origin)
	return err == nil
}

// Foreign returns the first of the keys set that means nothing to real jobs, and why; "" if there is none.
func Foreign(settings map[string]string) (key, why string) {
	for _, k := range system.Provisioning {
		if _, given := settings[k.Name]; given {
			return k.Name, "the GPUs of this machine are its own: they are neither rented, nor capped, nor put to sleep"
		}
	}
	return "", ""
}
