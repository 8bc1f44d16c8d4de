package manager

import (
	"context"
	"time"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/whatif"
)

// forecaster has package whatif look into the future.
type forecaster struct {
	lost  *whatif.Displacements
	steps *whatif.Steps
	costs *whatif.Delays
}

var _ host.Forecaster = (*forecaster)(nil)

// Restart forgets what was heard.
func (f *forecaster) Restart() {
	f.lost, f.steps, f.costs = new(whatif.Displacements), new(whatif.Steps), &whatif.Delays{Forgets: true}
}

// Log learns from an event.
func (f *forecaster) Log(v *sched.View, e *sched.Event) {
	f.lost.Log(v, e)
	f.steps.Log(v, e)
	f.costs.Log(v, e)
}

// Displaced returns how a job last lost its GPUs to a decision.
func (f *forecaster) Displaced(job sched.JobID) (explain.Displacement, bool) { return f.lost.Of(job) }

// Guessed reports whether the speed at which a job runs is a guess.
func (f *forecaster) Guessed(job sched.JobID) bool { return f.steps.Guessed(job) }

// Take copies a moment, and what jobs said of their steps.
func (f *forecaster) Take(h eventlog.Header, v *sched.View, dec sched.Decider,
	fresh func() (sched.Decider, error)) (host.Moment, error) {
	m, err := whatif.Take(h, v, dec, fresh)
	if err != nil {
		return nil, err
	}
	total := func(j sched.JobID, _ *sched.JobSpec) float64 { return f.steps.Total(j) }
	return &moment{m, f.steps.Left(v, total), f.steps.Guesses(), f.costs.Costs(), system.Leaves(&h)}, nil
}

// moment is a moment, with what jobs said of their steps by then.
type moment struct {
	m       *whatif.Moment
	left    func(sched.JobID) (time.Duration, bool) // of their work
	guessed map[sched.JobID]bool                    // whose speed was never measured
	costs   *whatif.Costs                           // of starts and stops
	leave   sched.Unsaved                           // who is stopped by his user alone
}

// View returns the state of that moment.
func (m *moment) View() *sched.View { return m.m.View() }

// Remedies returns what would have the job start, tried on copies; none stops a job that its user alone may stop.
func (m *moment) Remedies(ctx context.Context, job sched.JobID) (*explain.Remedies, error) {
	return m.m.Remedies(ctx, job, whatif.RemedyOptions{Unsaved: m.leave})
}

// Forecast says when the jobs of and the planned ones would start, learned from what has ended by then.
func (m *moment) Forecast(ctx context.Context, of []sched.JobID, planned []*sched.JobSpec) (*explain.Forecast, error) {
	w := whatif.Learn(m.View(), whatif.Alike)
	w.Steps, w.Guessed = m.left, m.guessed
	return m.m.Forecast(ctx, w, whatif.ForecastOptions{Others: true, Of: of, Planned: planned, Costs: m.costs})
}
