package controller

import (
	"io"
	"log/slog"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// history is a sink that writes the log of one start: a part of a log, which replays on its own. Each batch is one
// write, before any of it is durable elsewhere or ordered: nothing takes effect that the log does not have. The last
// batch of a leader that dies may have come to nothing; the next part says from which state it goes on.
//
// A write that fails ends the part, and nothing else: jobs go on without a log.
type history struct {
	w        io.Writer
	log      *slog.Logger
	batch    uint64
	lines    []byte // not yet written, the header first
	reported bool   // an event since the last write
	ended    bool
}

var (
	_ eventlog.Sink    = (*history)(nil)
	_ eventlog.Batcher = (*history)(nil)
)

// newHistory returns the sink of a start. What it starts with is written with the first batch of which there is
// something to write.
func newHistory(w io.Writer, log *slog.Logger, h eventlog.Header, from *eventlog.Beginning) (*history, error) {
	if from.View.Version > 0 {
		var err error
		if h.State, err = from.Pack(); err != nil {
			return nil, err
		}
	}
	return &history{w: w, log: log, lines: append(eventlog.AppendHeader(nil, h), '\n')}, nil
}

// BeginBatch notes that the events to come belong to the next batch.
func (h *history) BeginBatch() { h.batch++ }

// Log takes an event.
func (h *history) Log(_ *sched.View, e *sched.Event) {
	h.reported = true
	if !h.ended {
		h.lines = append(eventlog.AppendEvent(h.lines, h.batch, e), '\n')
	}
}

// EndBatch writes what there is to write.
func (h *history) EndBatch() error {
	if h.ended || !h.reported {
		return nil
	}
	if _, err := h.w.Write(h.lines); err != nil {
		h.log.Error("the log of events and decisions ends here, until the next start", "error", err)
		h.ended = true
	}
	h.lines, h.reported = h.lines[:0], false
	return nil
}
