package main

import (
	"github.com/trainyard/trainyard/engine"
)

// eventLog writes the events of one run; nil does nothing.
type eventLog struct{ *engine.LogWriter }

// eventsOf begins the event log of run i, nil if none was asked for.
func (o *outputs) eventsOf(c *comparison, i int) *eventLog {
	if len(o.events) == 0 {
		return nil
	}
	sim := &c.runs[i].sim
	return &eventLog{engine.NewLogWriter(o.events[i], engine.Header{
		Version: ownBuild().Version, Origin: "time 0 of the trace", Zone: c.trace.Zone, Trace: c.trace.Path,
		Cluster: c.cluster.Name, System: sim.System, Preset: sim.Preset, Settings: sim.Settings, ShareLimit: 1, Types: c.cluster.Types,
		Seed: c.cluster.Failures.Seed})}
}

func (l *eventLog) sinks() []engine.Sink {
	if l == nil {
		return nil
	}
	return []engine.Sink{l.LogWriter}
}

// finish ends the log.
func (l *eventLog) finish() error {
	if l == nil {
		return nil
	}
	return l.Close()
}
