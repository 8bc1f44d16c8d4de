package whatif

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// ForecastOptions say how far a forecast looks, and how often.
type ForecastOptions struct {
	World   World
	Draws   int           // simulated futures; 0 = 20
	Seed    uint64        // of what is drawn: the same seed, the same forecast
	Horizon time.Duration // of simulated time; 0 = 30 days
	Events  int           // of one simulated future at most; 0 = a million
	// Others has others submit jobs as they did before the moment. Without it no one comes but the arrivals of the
	// world.
	Others bool
	// Planned are jobs that would be submitted now. They have the numbers after those of the moment, by which After
	// names them, and estimates of their own.
	Planned []*sched.JobSpec
	// Of are the jobs of which start and end are wanted: a simulated future ends when both are known. Empty = all.
	// What it knows of others by then is in the forecast too, although it did not wait for them.
	Of []sched.JobID
}

// What a forecast says, in the terms of package explain.
type (
	// Span is a time as a forecast knows it.
	Span = explain.Span
	// Estimate is what a forecast says of one job.
	Estimate = explain.Estimate
	// Forecast is a look into the future.
	Forecast = explain.Forecast
)

func (o *ForecastOptions) withDefaults() (ForecastOptions, error) {
	d := *o
	if o.Draws < 0 || o.Horizon < 0 || o.Events < 0 {
		return d, fmt.Errorf("whatif: %d draws, horizon %v, %d events, want >= 0", o.Draws, o.Horizon, o.Events)
	}
	d.Draws, d.Horizon, d.Events = cmp.Or(o.Draws, 20), cmp.Or(o.Horizon, 30*24*time.Hour), cmp.Or(o.Events, 1_000_000)
	return d, nil
}

// Forecast simulates the future so many times, each time with another work left to each job, drawn from w, and says
// when jobs start and end. No one else arrives but the arrivals of the world, no one gives a command, and what is
// broken or paused stays so: a job that is paused never starts.
//
// When ctx ends, the draws finished so far are the forecast; with none it is the error of ctx.
func (m *Moment) Forecast(ctx context.Context, w *Work, o ForecastOptions) (*Forecast, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	v := withPlanned(m.View(), o.Planned)
	f := &Forecast{At: v.Now, Until: v.Now.Add(o.Horizon), Ended: w.Ended}
	drawn := make([]times, len(v.Jobs))
	for draw := range o.Draws {
		t, cut, err := m.draw(ctx, v, w, &o, uint64(draw), f.Until)
		switch {
		case ctx.Err() != nil && f.Draws > 0:
			return sum(f, v, w, drawn, o.Others), nil
		case err != nil:
			return nil, err
		}
		f.Draws++
		if cut {
			f.Cut++
		}
		for j := range drawn {
			drawn[j].starts = append(drawn[j].starts, t.start[j])
			drawn[j].ends = append(drawn[j].ends, t.end[j])
		}
	}
	return sum(f, v, w, drawn, o.Others), nil
}

// withPlanned returns v with jobs that wait, as copies.
func withPlanned(v *sched.View, planned []*sched.JobSpec) *sched.View {
	if len(planned) == 0 {
		return v
	}
	all := *v
	all.Jobs = slices.Clone(v.Jobs)
	for _, spec := range planned {
		all.Jobs = append(all.Jobs, sched.Job{Spec: spec, State: sched.Waiting, Arrived: v.Now, FirstStart: sched.None,
			LastStart: sched.None})
	}
	return &all
}

// times are those drawn for one job.
type times struct{ starts, ends []sched.Time }

// draw simulates one future of v: the moment with the jobs that are planned.
func (m *Moment) draw(ctx context.Context, v *sched.View, w *Work, o *ForecastOptions, draw uint64,
	until sched.Time) (_ *timesOf, cut bool, err error) {
	left, whole := w.future(rand.New(rand.NewPCG(^o.Seed, draw))).drawAll(v, o.Seed, draw)
	world := o.world(v.Now, left)
	if o.Others {
		world.Arrivals = append(world.Arrivals, others(m.View(), whole, until, rand.New(rand.NewPCG(o.Seed, ^draw)))...)
	}
	d, err := m.simulate(world, left[:len(m.View().Jobs)])
	if err != nil {
		return nil, false, err
	}
	t := newTimes(v, o.Of)
	b := &bounded{Driver: d, until: until, events: o.Events, enough: func() bool { return t.unknown == 0 }}
	err = m.GoOn(ctx, b, t)
	return t, b.over && b.events < 0, err
}

// drawAll draws, by job of v, the work that those that are not done have left, and returns the work of each in all, as
// far as it has been measured for those that are.
func (f *future) drawAll(v *sched.View, seed, draw uint64) (left, whole []time.Duration) {
	left, whole = make([]time.Duration, len(v.Jobs)), make([]time.Duration, len(v.Jobs))
	for j, like := range before(v) {
		id, job := sched.JobID(j), &v.Jobs[j]
		if job.State == sched.Done {
			whole[j] = Measured(v, job)
			continue
		}
		took := time.Duration(0)
		if like != sched.None && (v.Job(like).State != sched.Done || finished(v, like)) {
			took = whole[like]
		}
		// Each job has a sequence of its own: what is drawn for it alone does not depend on who else is there.
		left[j] = f.draw(v, id, took, rand.New(rand.NewPCG(seed, draw<<32|uint64(j))))
		whole[j] = job.WorkNow(v.Now) + left[j]
	}
	return left, whole
}

// world returns that of o with the planned jobs among its arrivals, whose work is left, behind that of the moment's
// jobs.
func (o *ForecastOptions) world(now sched.Time, left []time.Duration) *World {
	w := o.World
	w.Arrivals = nil
	for i, spec := range o.Planned {
		s := *spec
		s.Submit = now
		w.Arrivals = append(w.Arrivals, trace.Job{Spec: s, Duration: left[len(left)-len(o.Planned)+i]})
	}
	w.Arrivals = append(w.Arrivals, o.World.Arrivals...)
	return &w
}

// timesOf notes when the jobs of a moment start next and end.
type timesOf struct {
	start, end []sched.Time
	wanted     []bool
	unknown    int // jobs that are wanted and whose end is not known yet
}

func newTimes(v *sched.View, of []sched.JobID) *timesOf {
	t := &timesOf{start: make([]sched.Time, len(v.Jobs)), end: make([]sched.Time, len(v.Jobs)),
		wanted: make([]bool, len(v.Jobs))}
	for _, j := range of {
		t.wanted[j] = true
	}
	for i := range v.Jobs {
		t.start[i], t.end[i] = sched.Never, sched.Never
		if t.wanted[i] = v.Jobs[i].State != sched.Done && (t.wanted[i] || len(of) == 0); t.wanted[i] {
			t.unknown++
		}
		if v.Jobs[i].Up && v.Jobs[i].Attempt == sched.Running {
			t.start[i] = v.Jobs[i].LastStart
		}
	}
	return t
}

var _ eventlog.Sink = (*timesOf)(nil)

// Log notes the first start and the end of a job of the moment.
func (t *timesOf) Log(v *sched.View, e *sched.Event) {
	if !e.Kind.Form().Moves || e.Job < 0 || int(e.Job) >= len(t.start) {
		return // nothing starts or ends by it, or its job came later
	}
	if e.Kind == sched.AttemptStarted && t.start[e.Job] == sched.Never {
		t.start[e.Job] = e.Time
	}
	if j := v.Job(e.Job); j.State == sched.Done && t.end[e.Job] == sched.Never {
		if t.wanted[e.Job] {
			t.unknown--
		}
		if j.Outcome != sched.RejectedJob {
			t.end[e.Job] = j.End
		}
	}
}

// sum fills in the estimates. In an open world, to which others come, those of jobs that do not run yet are widened.
func sum(f *Forecast, v *sched.View, w *Work, drawn []times, open bool) *Forecast {
	for i := range v.Jobs {
		if v.Jobs[i].State == sched.Done {
			continue
		}
		id, d := sched.JobID(i), &drawn[i]
		e := Estimate{Job: id, Start: spanOf(d.starts, v.Now), End: spanOf(d.ends, v.Now)}
		if open {
			e.Start = widened(e.Start, v.Now)
			if e.Start.P90 > v.Now {
				e.End = widened(e.End, v.Now)
			}
		}
		_, e.Basis = w.Left(v, id, 0.5)
		for _, at := range d.ends {
			if at != sched.Never {
				e.Within++
			}
		}
		f.Jobs = append(f.Jobs, e)
	}
	return f
}

// fewestDraws is of how many the least and the greatest are the quantiles 0.1 and 0.9, see quantile.
const fewestDraws = 9

// spanOf sorts what was drawn and returns its quantiles.
func spanOf(at []sched.Time, now sched.Time) Span {
	slices.Sort(at)
	s := Span{P10: quantile(at, .1), P50: quantile(at, .5), P90: quantile(at, .9)}
	if len(at) < fewestDraws && s.P90 > now && (len(at) == 1 || s.P10 != s.P90) {
		s.P10, s.P90 = now, sched.Never
	}
	return s
}

// beyondModel is by what factor the time until a start is sooner, or later, than what was drawn of it has it, so that 8
// in 10 jobs start within. What people submit is more alike, and comes more in bursts, than the past shows of a few
// days. Measured: the quantile 0.8 of that factor over 262 starts, one of each trace like one of four sites under one
// of five systems, with seeds that the test of promise 18 does not use (conformalized quantile regression, Romano et
// al., 2019, in the logarithm of time).
const beyondModel = 1.2

// widened returns an interval of which the end that is still to come lies further away from what was drawn. What is
// known exactly stays so.
func widened(s Span, now sched.Time) Span {
	if s.P10 == s.P90 {
		return s
	}
	if s.P10 > now && s.P10 != sched.Never {
		s.P10 = now.Add(time.Duration(float64(s.P10.Sub(now)) / beyondModel))
	}
	if late := float64(s.P90.Sub(now)) * beyondModel; s.P90 > now && s.P90 != sched.Never {
		s.P90 = now.Add(time.Duration(min(late, float64(century))))
	}
	return s
}

// quantile returns the q-quantile of n sorted times, that at rank q(n+1): if the truth is one more draw, it lies below
// with probability q. Between two ranks it is in between, Never if the later one is.
func quantile(sorted []sched.Time, q float64) sched.Time {
	n := len(sorted)
	rank := min(max(q*float64(n+1), 1), float64(n)) - 1
	i := int(rank)
	lo, hi := sorted[i], sorted[min(i+1, n-1)]
	switch part := rank - float64(i); {
	case part == 0 || lo == hi:
		return lo
	case hi == sched.Never:
		return sched.Never
	default:
		return lo.Add(time.Duration(part * float64(hi.Sub(lo))))
	}
}
