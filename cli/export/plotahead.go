package export

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/trainyard/trainyard/cli/inputs"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/model/remaining"
	"github.com/trainyard/trainyard/report/plot"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/whatif"
)

// expected reads what had happened in a log by a moment, and what was then to be expected: the system of the log
// decides the past again, up to there, and then the futures that are drawn.
func expected(ctx context.Context, log io.Reader, path string, at time.Duration) (run plot.Run, err error) {
	r, err := eventlog.NewReader(log, path)
	if err != nil {
		return run, term.Malformed(err)
	}
	h := r.Header()
	if h.Preset != "" || h.State != nil {
		return run, term.Usagef("--at: %s is of a preset, or starts in the middle of a run; want the log of a whole "+
			"run without a preset", path)
	}
	fresh := func() (sched.Decider, error) { return deciderOf(&h) }
	dec, err := fresh()
	if err != nil {
		return run, err
	}
	rec, line, costs := metrics.NewRecorder(0), &timeline.Timeline{}, new(whatif.Delays)
	steps := new(whatif.Steps)
	state, _, err := engine.Recover(ctx, h, until(r, at), dec, engine.ReplayOptions{
		Sinks: []eventlog.Sink{rec, line, costs, steps}})
	if err != nil {
		return run, term.Malformed(fmt.Errorf("%s: up to %v: %w", path, at, err))
	}
	v := state.View()
	if len(v.Jobs) == 0 {
		return run, term.Usagef("--at %v: %s: %w", at, path, errAfter)
	}
	moment, err := whatif.Take(h, v, dec, fresh)
	if err != nil {
		return run, err
	}
	w := whatif.Learn(moment.View(), whatif.Alike)
	w.Steps = steps.Left(v, func(j sched.JobID, _ *sched.JobSpec) float64 { return steps.Total(j) })
	w.Guessed = steps.Guesses()
	f, err := moment.Forecast(ctx, w, whatif.ForecastOptions{Others: true, Costs: costs.Costs()})
	if err != nil {
		return run, err
	}
	run = plot.Run{Name: h.System, Result: rec.Result(h.System), Jobs: rec.Jobs, Timeline: line,
		Ahead: &plot.Ahead{At: max(sched.Time(at), v.Now)}}
	for i := range f.Jobs {
		run.Ahead.Jobs = append(run.Ahead.Jobs, expectedOf(v, &f.Jobs[i]))
	}
	return run, nil
}

// expectedOf says what a forecast says of a job, in the terms of pictures.
func expectedOf(v *sched.View, e *whatif.Estimate) plot.Expected {
	span := func(s whatif.Span) plot.Span {
		if s.Unknown {
			return plot.Span{Low: sched.Never, Mid: sched.Never, High: sched.Never}
		}
		return plot.Span{Low: s.P10, Mid: s.P50, High: s.P90}
	}
	x := plot.Expected{Job: e.Job, Start: span(e.Start), End: span(e.End)}
	if v.Jobs[e.Job].HoldsDevices() {
		x.Start = plot.Span{Low: sched.None, Mid: sched.None, High: sched.None}
	}
	return x
}

// deciderOf returns the system of a log, as it was when the log started.
func deciderOf(h *eventlog.Header) (sched.Decider, error) {
	k, err := inputs.KnowledgeOf(h.System, h.Settings, nil)
	if err != nil {
		return nil, err
	}
	copied := *h
	if manager.Wrote(&copied) {
		sys, failed := system.Live(&copied, k)
		return sys.Decider, failed
	}
	k.Work = remaining.New()
	sys, err := system.Begin(&copied, k, nil)
	return sys.Decider, err
}
