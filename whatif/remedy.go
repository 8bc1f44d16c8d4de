package whatif

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/sched"
)

// What a search finds, in the terms of package explain.
type (
	// Change is something that could be otherwise.
	Change = explain.Change
	// Remedy is a change with which the system would start the job.
	Remedy = explain.Remedy
	// Remedies are what would let a waiting job start.
	Remedies = explain.Remedies
)

// Changes.
const (
	Undrain         = explain.Undrain
	MoreTypes       = explain.MoreTypes
	ShorterWallTime = explain.ShorterWallTime
	AllowSharing    = explain.AllowSharing
	OtherGPUs       = explain.OtherGPUs
	HigherPriority  = explain.HigherPriority
	MoreBudget      = explain.MoreBudget
	RequeueOther    = explain.RequeueOther
)

// RemedyOptions say what may be changed in addition to what a job says of itself.
type RemedyOptions struct {
	// Budgeted makes the System of another budget, in GPUs, for a system that rents; nil = there is no budget to raise.
	Budgeted func(gpus float64) System
	Budget   float64 // as it is
	World    World   // in which nodes boot
	// Unsaved says which jobs only their users stop.
	Unsaved sched.Unsaved
}

// Remedies looks for changes with which the system would give job j GPUs if it decided now. Each is verified: on a copy
// of the moment the user makes it, and the system decides once, or, where its turns are rounds, at its next turn.
// No one ends meanwhile. What can be changed of a job that is there is changed (GPUs), or of the machine; for all else
// it is cancelled and submitted again.
//
// It is an error if j is not known, or is not waiting for the system. Where ctx ends, so does the search, with its
// error and what was found so far.
func (m *Moment) Remedies(ctx context.Context, j sched.JobID, o RemedyOptions) (*Remedies, error) {
	v := m.View()
	if j < 0 || int(j) >= len(v.Jobs) {
		return nil, fmt.Errorf("%w: job %d of %d", errNoJob, j, len(v.Jobs))
	}
	job := v.Job(j)
	if !job.Eligible() || len(job.Target) > 0 {
		return nil, fmt.Errorf("whatif: job %d is %v and has %d GPUs given, want one that waits for some", j, job.State,
			len(job.Target))
	}
	s := search{ctx: ctx, m: m, job: j}
	if err := s.unchanged(); err != nil || s.found.Unchanged {
		return &s.found, err
	}
	if err := s.undrain(job.Spec); err != nil {
		return &s.found, err
	}
	for c := MoreTypes; c < MoreBudget; c++ {
		if err := s.try(c, candidates(v, job.Spec, job.WorkNow(v.Now), c)); err != nil {
			return &s.found, err
		}
	}
	if o.Budgeted != nil {
		if err := s.raise(&o); err != nil {
			return &s.found, err
		}
	}
	if err := s.requeue(&o); err != nil {
		return &s.found, err
	}
	slices.SortStableFunc(s.found.List, func(a, b Remedy) int {
		return cmp.Or(cmp.Compare(min(len(a.Displaces), 1), min(len(b.Displaces), 1)), cmp.Compare(a.Change, b.Change))
	})
	return &s.found, nil
}

// search looks for remedies of one job.
type search struct {
	ctx   context.Context
	m     *Moment
	job   sched.JobID
	holds []bool // by job: it has a target if nothing is changed
	found Remedies
}

// unchanged has the system decide about the job as it is, for comparison.
func (s *search) unchanged() error {
	v, err := s.decide(s.job, changed(s.job, s.m.View().Job(s.job).Spec))
	if err != nil {
		return err
	}
	s.holds = make([]bool, len(v.Jobs))
	for i := range v.Jobs {
		s.holds[i] = len(v.Jobs[i].Target) > 0
	}
	s.found.Unchanged, s.found.At = s.holds[s.job], v.Now
	return nil
}

// try verifies specs until one lets the job start.
func (s *search) try(c Change, specs []sched.JobSpec) error {
	for i := range specs {
		as, events := s.job, changed(s.job, &specs[i])
		if c != OtherGPUs {
			as, events = sched.JobID(len(s.m.View().Jobs)), again(s.job, &specs[i])
		}
		v, err := s.decide(as, events)
		if err != nil {
			return err
		}
		if s.found.Tried++; s.take(v, as, Remedy{Change: c, Spec: &specs[i]}) {
			return nil
		}
	}
	return nil
}

// undrain verifies that the job starts if drained GPUs may be used again.
func (s *search) undrain(spec *sched.JobSpec) error {
	for _, d := range drains(s.m.View()) {
		v, err := s.decide(s.job, d.lifted)
		if err != nil {
			return err
		}
		if s.found.Tried++; s.take(v, s.job, Remedy{Change: Undrain, Spec: spec, Drained: d.gpus, Machine: d.machine}) {
			return nil
		}
	}
	return nil
}

// changed has job j be otherwise from now on.
func changed(j sched.JobID, spec *sched.JobSpec) []sched.Event {
	c := spec.Change()
	return []sched.Event{{Kind: sched.JobChanged, Job: j, Change: &c}}
}

// again hands job j in again, otherwise, and cancels it as it is.
func again(j sched.JobID, spec *sched.JobSpec) []sched.Event {
	return []sched.Event{{Kind: sched.JobArrived, Spec: spec},
		{Kind: sched.JobCommanded, Job: j, Code: int32(sched.CancelJob)}}
}

// take adds r to what was found if v shows that the job, by the number it has then, is given GPUs.
func (s *search) take(v *sched.View, as sched.JobID, r Remedy) bool {
	gpus := v.Job(as).Target
	if len(gpus) == 0 {
		return false
	}
	r.GPUs, r.At = slices.Clone(gpus), v.Now
	for i := range s.holds {
		if s.holds[i] && len(v.Jobs[i].Target) == 0 && v.Jobs[i].State != sched.Done {
			r.Displaces = append(r.Displaces, sched.JobID(i))
		}
	}
	s.found.List = append(s.found.List, r)
	return true
}

// decide returns what a fork looks like after one decision of the moment's own system about what events say. It is job
// id that is to be given GPUs.
func (s *search) decide(id sched.JobID, events []sched.Event) (*sched.View, error) {
	f, err := s.m.fork(nil)
	if err != nil {
		return nil, err
	}
	err = engine.Run(s.ctx, f.state, &once{job: id, report: events}, f.dec, engine.Options{})
	if err == nil {
		err = s.ctx.Err()
	}
	return f.state.View(), err
}

// once is a driver of one decision about what it says. It lets pass the time to the next turn if the job is given
// nothing before.
type once struct {
	v      *sched.View
	job    sched.JobID
	report []sched.Event
	over   bool
}

// nextTurn is how far away a turn may be to count as the next.
const nextTurn = 10 * time.Minute

// Sync says what the user does.
func (d *once) Sync(_ context.Context, v *sched.View) ([]sched.Event, error) {
	d.v = v
	for i := range d.report {
		d.report[i].Time = v.Now
	}
	return d.report, nil
}

// newcomer has whoever decides look at job j as if it had just come.
func newcomer(v *sched.View, j sched.JobID) []sched.Event {
	command := func(c sched.Command) sched.Event {
		return sched.Event{Time: v.Now, Kind: sched.JobCommanded, Job: j, Code: int32(c)}
	}
	return []sched.Event{command(sched.PauseJob), command(sched.ResumeJob)}
}

// Next lets one turn come.
func (d *once) Next(_ context.Context, until sched.Time) ([]sched.Event, error) {
	if d.over || len(d.v.Job(d.job).Target) > 0 || until > d.v.Now.Add(nextTurn) {
		return nil, io.EOF
	}
	d.over = true
	return []sched.Event{{Time: max(until, d.v.Now), Kind: sched.Ticked}}, nil
}

// Apply does nothing: what is planned is enough.
func (d *once) Apply(context.Context, sched.Plan) error { return nil }

// Now is the time of the last event.
func (d *once) Now() sched.Time { return d.v.Now }

// raises are the factors on the budget that are tried.
var raises = []float64{1.25, 1.5, 2, 3, 4}

// raise verifies larger budgets until one lets the job start, now or on nodes that are rented for it.
func (s *search) raise(o *RemedyOptions) error {
	boot := time.Duration(0)
	for i := range s.m.View().Pools {
		boot = max(boot, s.m.View().Pools[i].Spec.Boot)
	}
	until := s.m.View().Now.Add(boot + nextTurn)
	for _, by := range append([]float64{1}, raises...) {
		v, err := s.rent(o, by*o.Budget, until)
		if err != nil {
			return err
		}
		if by == 1 { // for comparison: it may come by and by
			if len(v.Job(s.job).Target) > 0 {
				return nil
			}
			continue
		}
		if s.found.Tried++; s.take(v, s.job,
			Remedy{Change: MoreBudget, Spec: v.Job(s.job).Spec, Budget: by * o.Budget}) {
			return nil
		}
	}
	return nil
}

// rent returns what a fork with another budget looks like once the job is given GPUs, or at until. No one ends
// meanwhile.
func (s *search) rent(o *RemedyOptions, budget float64, until sched.Time) (*sched.View, error) {
	f, err := s.m.fork(o.Budgeted(budget))
	if err != nil {
		return nil, err
	}
	left := make([]time.Duration, len(f.state.View().Jobs))
	for i := range left {
		left[i] = century
	}
	w := o.World
	w.Arrivals = nil
	d, err := s.m.simulate(&w, left)
	if err != nil {
		return nil, err
	}
	err = engine.Run(s.ctx, f.state, &untilGiven{bounded{Driver: d, until: until, events: 1_000_000}, f.state.View(),
		s.job}, f.dec, engine.Options{})
	return f.state.View(), err
}

// untilGiven is a driver that ends as soon as a job is given GPUs.
type untilGiven struct {
	bounded
	v   *sched.View
	job sched.JobID
}

// Sync has the job looked at again.
func (d *untilGiven) Sync(ctx context.Context, v *sched.View) ([]sched.Event, error) {
	events, err := d.bounded.Sync(ctx, v)
	return append(events, newcomer(v, d.job)...), err
}

// Next ends when the job has a target.
func (d *untilGiven) Next(ctx context.Context, until sched.Time) ([]sched.Event, error) {
	if len(d.v.Job(d.job).Target) > 0 {
		return nil, io.EOF
	}
	return d.bounded.Next(ctx, until)
}
