package manager

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/trainyard/trainyard/driver/local"
	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/whatif"
)

// Moment copies how all stands, what the system remembers included, so that its future can be tried. All of it is durable.
func (m *Manager) Moment(ctx context.Context) (moment *whatif.Moment, err error) {
	asked := m.Look(ctx, func(v *sched.View) { moment, err = whatif.Take(m.header, v, m.dec, m.fresh) })
	return moment, errors.Join(asked, err)
}

// fresh makes a system as the one that decides, which knows nothing yet.
func (m *Manager) fresh() (sched.Decider, error) {
	h := m.header
	sys, err := System(&h, m.o.Knows)
	return sys.Decider, err
}

// told is what jobs tell of themselves while they run.
type told struct {
	left    func(sched.JobID) (time.Duration, bool) // of their work, by their steps
	guessed map[sched.JobID]bool                    // whose speed was never measured
}

// told returns what jobs have told. It is to be called by Run's goroutine; what it returns keeps nothing of v.
func (m *Manager) told(v *sched.View) told {
	return told{m.steps.Left(v, func(j sched.JobID, _ *sched.JobSpec) float64 { return m.steps.Total(j) }), m.steps.Guesses()}
}

// Change has a job be otherwise from now on: change is given what may be changed of it, as it is, and makes it what it is to be. It
// returns once that is durable. One that holds GPUs and may no longer hold as many is stopped, saves, and waits for its turn.
// ErrNoJob, ErrDone and ErrRefused say why it cannot be.
func (m *Manager) Change(ctx context.Context, id sched.JobID, change func(*sched.JobChange)) (err error) {
	var durable <-chan struct{}
	asked := m.do(ctx, func(d *local.Driver) {
		v := m.View()
		if id < 0 || int(id) >= len(v.Jobs) {
			err = ErrNoJob
			return
		}
		j := v.Job(id)
		if j.State == sched.Done || j.Cancel {
			err = fmt.Errorf("%w (%v)", ErrDone, j.Outcome)
			return
		}
		c := m.wanted(id, j.Spec)
		change(&c)
		if err = m.changeable(j.Spec, &c); err == nil {
			durable = d.Change(id, c)
			m.changing[id] = changing{c, durable}
		}
	})
	if failed := errors.Join(asked, err); failed != nil {
		return failed
	}
	if late := m.await(ctx, durable); late != nil {
		return late
	}
	if row, _, _ := m.board.Row(id); row.State == sched.Done { // it may have been before
		return fmt.Errorf("%w (%v)", ErrDone, row.Outcome)
	}
	return nil
}

// changing is how a job is to be that is not durable yet.
type changing struct {
	change  sched.JobChange
	durable <-chan struct{}
}

// wanted returns how job id is to be from now on, as far as is known: what was asked for a moment ago is not in its spec yet.
func (m *Manager) wanted(id sched.JobID, spec *sched.JobSpec) sched.JobChange {
	maps.DeleteFunc(m.changing, func(_ sched.JobID, c changing) bool {
		select {
		case <-c.durable:
			return true
		default:
			return false
		}
	})
	if c, pending := m.changing[id]; pending {
		return c.change
	}
	return spec.Change()
}

// changeable refuses what would leave a job waiting for ever.
func (m *Manager) changeable(spec *sched.JobSpec, c *sched.JobChange) error {
	if err := c.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if b := spec.Batch; b.PerGPU > 0 && int64(b.PerGPU)*int64(c.GPUs.Max) < int64(b.Min) {
		return fmt.Errorf("%w: a batch of at least %d needs more than %d %ss, of %d each", ErrRefused, b.Min, c.GPUs.Max, m.o.Unit, b.PerGPU)
	}
	return Fits(&m.header, []jobfile.Job{{Spec: *spec.Changed(c)}}, m.o.Unit)
}

// Plan says when jobs would start and end if they were handed in now; the first of the estimates is that of the first job. Nothing comes
// of it. It may take until ctx ends.
func (m *Manager) Plan(ctx context.Context, jobs []jobfile.Job) (f *whatif.Forecast, first sched.JobID, err error) {
	if misfit := Fits(&m.header, jobs, m.o.Unit); misfit != nil {
		return nil, sched.None, misfit
	}
	var moment *whatif.Moment
	var said told
	asked := m.Look(ctx, func(v *sched.View) {
		said = m.told(v)
		moment, err = whatif.Take(m.header, v, m.dec, m.fresh)
	})
	if failed := errors.Join(asked, err); failed != nil {
		return nil, sched.None, failed
	}
	v := moment.View()
	first = sched.JobID(len(v.Jobs))
	o := whatif.ForecastOptions{Others: true, Planned: specsOf(jobs)}
	arrive(o.Planned, jobs, first, v.Now)
	for i := range jobs {
		o.Of = append(o.Of, first+sched.JobID(i))
	}
	f, err = moment.Forecast(ctx, workOf(v, said), o)
	return f, first, err
}

// workOf is what is known of the work of jobs, which have told some of it.
func workOf(v *sched.View, said told) *whatif.Work {
	w := whatif.Learn(v, whatif.Alike)
	w.Steps, w.Guessed = said.left, said.guessed
	return w
}

// WhyOptions say how much is to be found out about a job.
type WhyOptions struct {
	Remedies time.Duration // to look for what would let it start; 0 = do not
	Forecast time.Duration // to look into the future; 0 = do not
	Most     int           // no look into the future where more jobs than that are not done; 0 = whatever they are
}

// Answer tells why a job stands as it does, as of one instant.
type Answer struct {
	View    *sched.View // of that instant, a copy, for reading
	Waiting explain.Waiting
	// Unmeasured: it runs, and is kept at its width because nothing is known of its speed at others.
	Unmeasured bool
	Guessed    bool                 // it runs at a speed that was never measured on such GPUs, nor told by it yet
	Facts      []sched.Fact         // on which the system's decisions about it rest, the weightiest first
	Last       *whatif.Displacement // how it last lost its GPUs to a decision; nil = never
	Remedies   *whatif.Remedies     // nil = not looked for, or it does not wait for the system
	Hurried    bool                 // the time ended before all remedies were tried
	Forecast   *whatif.Forecast     // nil = not asked for, or not done in time
}

// Why says why a job stands as it does.
func (m *Manager) Why(ctx context.Context, id sched.JobID, o WhyOptions) (*Answer, error) {
	a := new(Answer)
	var moment *whatif.Moment
	var said told
	var err error
	asked := m.Look(ctx, func(v *sched.View) {
		if id < 0 || int(id) >= len(v.Jobs) {
			err = ErrNoJob
			return
		}
		a.Waiting = pipeline.Why(v, m.dec, id)
		if v.Job(id).Attempt == sched.Running {
			a.Unmeasured, a.Guessed = m.Brief(v).Unmeasured(id), m.steps.Guessed(id)
		}
		a.Facts = facts(v, m.dec, id)
		if d, ok := m.lost.Of(id); ok {
			a.Last = &d
		}
		said = m.told(v)
		moment, err = whatif.Take(m.header, v, m.dec, m.fresh)
	})
	if failed := errors.Join(asked, err); failed != nil {
		return nil, failed
	}
	a.View = moment.View()
	if j := a.View.Job(id); o.Remedies > 0 && j.Eligible() && len(j.Target) == 0 {
		if failed := a.remedy(ctx, moment, id, o.Remedies); failed != nil {
			return nil, failed
		}
	}
	if o.Forecast > 0 && a.View.Job(id).State != sched.Done && (o.Most == 0 || unfinished(a.View) <= o.Most) {
		limited, cancel := context.WithTimeout(ctx, o.Forecast)
		defer cancel()
		a.Forecast, err = moment.Forecast(limited, workOf(a.View, said),
			whatif.ForecastOptions{Others: true, Of: append(slices.Clone(a.Waiting.Jobs), id)})
		if err != nil && (ctx.Err() != nil || limited.Err() == nil) {
			return nil, err
		}
	}
	return a, nil
}

// unfinished counts the jobs that are not done.
func unfinished(v *sched.View) (n int) {
	for i := range v.Jobs {
		if v.Jobs[i].State != sched.Done {
			n++
		}
	}
	return n
}

// remedy looks for what would let job id start, for so long at most.
func (a *Answer) remedy(ctx context.Context, moment *whatif.Moment, id sched.JobID, most time.Duration) (err error) {
	limited, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	a.Remedies, err = moment.Remedies(limited, id, whatif.RemedyOptions{})
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		a.Hurried, err = true, nil
	}
	return err
}

// facts are those on which decisions of dec about job id rest.
func facts(v *sched.View, dec sched.Decider, id sched.JobID) (list []sched.Fact) {
	if e, ok := dec.(sched.Explainer); ok {
		e.Explain(v, id, func(f sched.Fact) { list = append(list, f) })
	}
	return list
}
