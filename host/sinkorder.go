package host

import (
	"slices"

	"github.com/trainyard/trainyard/eventlog"
)

// role is what a sink is for.
type role uint8

const (
	recording role = iota
	estimating
	logging
	keeping
	showing
	feeding
	metering
)

// place is the place of a role in the order.
type place struct {
	role role
	name string
	past bool   // hears what is replayed as well
	why  string // it stands where it stands
}

// order is the order in which sinks hear each event and end each batch. It is the only one.
var order = []place{
	{recording, "recorder", true, "it counts what was decided before anything can fail: a run that ends for want of " +
		"a disk still has its figures"},
	{estimating, "estimators", true, "they learn from the same events and may use the figures; who asks them does so " +
		"between batches"},
	{logging, "history", false, "nothing may take effect that the log next to the store lacks, so it is written " +
		"before the store (ADR 29)"},
	{keeping, "store", false, "it makes the batch durable or ends the run: all behind it may be seen by others"},
	{showing, "board", true, "it shows durable jobs, and must before those who follow are woken and look there"},
	{feeding, "feed", true, "it wakes those who follow the log, who find the events in the store and the jobs on the " +
		"board"},
	{metering, "meters", false, "they publish figures and run hooks, which may take their time: all else is there " +
		"by then"},
}

// arrange returns the sinks of roles in the order of places; replay leaves out those who do not hear the past.
func arrange(places []place, sinks map[role][]eventlog.Sink, replay bool) (list []eventlog.Sink) {
	for _, p := range places {
		if p.past || !replay {
			list = append(list, sinks[p.role]...)
		}
	}
	return slices.Clip(list)
}
