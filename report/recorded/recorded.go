// Package recorded reads the run in a log for a report.
package recorded

import (
	"errors"
	"fmt"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/report"
)

// Run returns the run in a log as it was, without deciding anything again. Parts that follow each other without a gap
// are one run. Where the log is damaged, or a part does not follow, the run ends there, and short says why; nil = it is
// all of it. A log of which nothing can be shown is an error, and so is one that starts in the middle of a run: figures
// would be of a part of each job's life.
func Run(r *eventlog.Reader) (s report.System, short, err error) {
	h := r.Header()
	if h.State != nil {
		return report.System{}, nil, errors.New("report: the log starts in the middle of a run, " +
			"want one from its start")
	}
	rec, line, hash := metrics.NewRecorder(0), &timeline.Timeline{}, new(eventlog.Hash)
	who, parts := new(eventlog.Deciders), 1
	line.Meter = rec.Bill()
	for {
		state, _, bad := engine.Fold(r.Header(), r.Part(), line, rec, hash, who)
		if bad == nil {
			var more bool
			if more, bad = r.Another(); bad == nil && more {
				if next := r.Header(); !follows(&next, state) {
					short = fmt.Errorf("the part of the log that starts in line %d does not follow the one before",
						r.Line())
				} else {
					parts++
					continue
				}
			}
		}
		if bad != nil {
			if rec.Events == 0 {
				return report.System{}, nil, bad
			}
			short = bad
		}
		break
	}
	if len(line.Types) == 0 {
		line.Types = h.Types
	}
	return report.System{Name: h.System, Settings: h.Settings, Engine: "trainyard", LogHash: hash.Sum(),
		Result: rec.Result(h.System), Jobs: rec.Jobs, Timeline: line, Parts: parts, Earlier: who.Earlier}, short, nil
}

// follows reports whether a part goes on where the one before ended.
func follows(h *eventlog.Header, before *engine.State) bool {
	from, err := h.Beginning()
	if err != nil || from == nil {
		return false
	}
	v := before.View()
	if from.View.Version != v.Version || len(from.View.Jobs) != len(v.Jobs) {
		return false
	}
	for i := range v.Jobs {
		a, b := &v.Jobs[i], &from.View.Jobs[i]
		if a.Attempts != b.Attempts || a.State != b.State || len(a.GPUs) != len(b.GPUs) {
			return false
		}
	}
	return true
}
