package system

import (
	"cmp"

	"github.com/trainyard/trainyard/eventlog"
)

// LooksAtPriority reports whether the system of h looks at the priorities of jobs: where it takes an order of jobs from
// another, whether that does. It is true of a system that is not known.
func LooksAtPriority(h *eventlog.Header) bool {
	info, err := Named(h.System)
	if err != nil {
		return true
	}
	if from := info.Keys.Find(Order.Name); from != nil {
		if info, err = Named(cmp.Or(h.Settings[Order.Name], from.Default)); err != nil {
			return true
		}
	}
	return !info.NoPriority
}
