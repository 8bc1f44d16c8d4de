package report

import (
	"errors"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/metrics/timeline"
)

// Recorded returns the run in a log as it was, without deciding anything again. A log that starts in the
// middle of a run is an error: figures would be of a part of each job's life.
func Recorded(r *eventlog.Reader) (System, error) {
	h := r.Header()
	if h.State != nil {
		return System{}, errors.New("report: the log starts in the middle of a run, want one from its start")
	}
	rec, line := metrics.NewRecorder(0), &timeline.Timeline{}
	line.Watts = rec.Watts
	hash := new(eventlog.Hash)
	if _, _, err := engine.Fold(h, r.Part(), line, rec, hash); err != nil {
		return System{}, err
	}
	if len(line.Types) == 0 {
		line.Types = h.Types
	}
	return System{Name: h.System, Settings: h.Settings, Engine: "trainyard", LogHash: hash.Sum(),
		Result: rec.Result(h.System), Jobs: rec.Jobs, Timeline: line}, nil
}
