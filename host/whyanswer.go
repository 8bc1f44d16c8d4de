package host

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
)

// WhyOptions say how much is to be found out about a job.
type WhyOptions struct {
	Remedies time.Duration // to look for what would let it start; 0 = do not
	Forecast time.Duration // to look into the future; 0 = do not
	// Most is of how many jobs that are not done it is foreseen at that moment. Of more it is what was foreseen of them
	// last: see its At. 0 = however many they are.
	Most int
}

// Answer says why a job stands as it does, as of one instant.
type Answer struct {
	View    *sched.View // of that instant, a copy, for reading
	Waiting explain.Waiting
	Held    string // why it is paused though its user does not want that; "" = it is not
	// Unmeasured: it runs, and is kept at its width because nothing is known of its speed at others.
	Unmeasured bool
	Guessed    bool                  // it runs at a speed that was never measured on such GPUs, nor reported by it yet
	Facts      []sched.Fact          // on which the system's decisions about it rest, the weightiest first
	Last       *explain.Displacement // how it last lost its GPUs to a decision; nil = never
	Remedies   *explain.Remedies     // nil = not looked for, or it does not wait for the system
	Hurried    bool                  // the time ended before all remedies were tried
	Forecast   *explain.Forecast     // nil = not asked for, or not done in time
}

// Why says why a job stands as it does.
func (h *Host) Why(ctx context.Context, id sched.JobID, o WhyOptions) (*Answer, error) {
	a := new(Answer)
	var moment Moment
	var err error
	asked := h.Look(ctx, func(v *sched.View) {
		if id < 0 || int(id) >= len(v.Jobs) {
			err = ErrNoJob
			return
		}
		a.stand(h, v, id)
		moment, err = h.take(v)
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
	if o.Forecast > 0 && a.View.Job(id).State != sched.Done {
		limited, cancel := context.WithTimeout(ctx, o.Forecast)
		defer cancel()
		if o.Most == 0 || unfinished(a.View) <= o.Most {
			a.Forecast, err = a.foresee(limited, &h.outlook, moment, id)
		} else {
			a.Forecast, err = h.outlook.far.ask(limited, h, a.View.Version)
		}
		if err != nil && (ctx.Err() != nil || limited.Err() == nil) {
			return nil, err
		}
	}
	return a, nil
}

// foresee says when a job starts and ends, and those that it waits for: where there are few of them, all.
func (a *Answer) foresee(ctx context.Context, o *outlook, m Moment, id sched.JobID) (*explain.Forecast, error) {
	if unfinished(a.View) <= mostForeseen {
		return o.foresee(ctx, m)
	}
	return m.Forecast(ctx, append(slices.Clone(a.Waiting.Jobs), id), nil)
}

// stand notes how a job of v stands.
func (a *Answer) stand(h *Host, v *sched.View, id sched.JobID) {
	dec, f := h.now.Load().Decider, h.o.Forecaster
	a.Waiting = pipeline.Why(v, dec, id)
	if h.o.Held != nil && a.Waiting.Code == explain.WaitPaused {
		a.Held = h.o.Held(id)
	}
	a.Facts = facts(v, dec, id)
	if v.Job(id).Attempt == sched.Running {
		a.Unmeasured = h.Brief(v).Unmeasured(id)
		a.Guessed = f != nil && f.Guessed(id)
	}
	if f == nil {
		return
	}
	if d, ok := f.Displaced(id); ok {
		a.Last = &d
	}
}

// take copies the moment that v shows, or returns the copy that there is.
func (h *Host) take(v *sched.View) (Moment, error) {
	s := h.now.Load()
	if h.o.Forecaster != nil {
		if m := h.outlook.current(s, v); m != nil {
			return m, nil
		}
		m, err := h.o.Forecaster.Take(s.Header, v, s.Decider, h.fresh)
		if err == nil {
			h.outlook.keep(s, m)
		}
		return m, err
	}
	state, err := engine.Restore(s.Header, *v)
	if err != nil {
		return nil, err
	}
	return still{state}, nil
}

// fresh makes a system as the one that decides, which knows nothing yet.
func (h *Host) fresh() (sched.Decider, error) {
	header := h.Header()
	return h.o.System(&header)
}

// still is a Moment without a future.
type still struct{ state *engine.State }

// View returns the state as it is.
func (s still) View() *sched.View { return s.state.View() }

// Remedies finds none.
func (s still) Remedies(context.Context, sched.JobID) (*explain.Remedies, error) {
	return nil, nil //nolint:nilnil // none are looked for
}

// Forecast foresees nothing.
func (s still) Forecast(context.Context, []sched.JobID, []*sched.JobSpec) (*explain.Forecast, error) {
	return nil, nil //nolint:nilnil // as said
}

// Plan says when jobs would start and end if they were submitted now; the first of the estimates is that of the first
// job. Nothing comes of it. It may take until ctx ends. specs is as with Submit.
func (h *Host) Plan(ctx context.Context,
	specs func(first sched.JobID, now sched.Time) []*sched.JobSpec) (f *explain.Forecast, first sched.JobID,
	err error) {
	if h.o.Forecaster == nil {
		return nil, sched.None, ErrNotHere
	}
	var moment Moment
	asked := h.Look(ctx, func(v *sched.View) { moment, err = h.take(v) })
	if failed := errors.Join(asked, err); failed != nil {
		return nil, sched.None, failed
	}
	v := moment.View()
	first = sched.JobID(len(v.Jobs))
	planned := specs(first, v.Now)
	var of []sched.JobID
	for i := range planned {
		of = append(of, first+sched.JobID(i))
	}
	f, err = moment.Forecast(ctx, of, planned)
	return f, first, err
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
func (a *Answer) remedy(ctx context.Context, moment Moment, id sched.JobID, most time.Duration) (err error) {
	limited, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	a.Remedies, err = moment.Remedies(limited, id)
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
