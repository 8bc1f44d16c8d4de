package simulate

import (
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/eventlog"
)

// eventLog writes the events of one run; nil does nothing.
type eventLog struct{ *eventlog.Writer }

// eventsOf begins the event log of run i, nil if none was asked for.
func (o *outputs) eventsOf(c *comparison, i int) *eventLog {
	if len(o.events) == 0 {
		return nil
	}
	l := &eventLog{}
	c.runs[i].sim.Log = func(h eventlog.Header) eventlog.Sink {
		h.Version, h.Origin = term.OwnBuild().Version, "time 0 of the trace"
		l.Writer = eventlog.NewWriter(o.events[i], h)
		return l.Writer
	}
	return l
}

// finish ends the log.
func (l *eventLog) finish() error {
	if l == nil {
		return nil
	}
	return l.Close()
}
