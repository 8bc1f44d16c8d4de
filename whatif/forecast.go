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
	Costs   *Costs        // what starts and stops take, in place of what World says; nil = that
	Draws   int           // simulated futures; 0 = 20
	Seed    uint64        // of what is drawn: the same seed, the same forecast
	Horizon time.Duration // of simulated time; 0 = 30 days
	Events  int           // of one simulated future at most; 0 = a million
	// Others has others submit jobs as they did before the moment, as far as that says how they come. Without it no one
	// comes but the arrivals of the world.
	Others bool
	// Planned are jobs that would be submitted now. They have the numbers after those of the moment, by which After
	// names them, and estimates of their own.
	Planned []*sched.JobSpec
	// Of are the jobs of which start and end are wanted, and said: a simulated future ends when both are known.
	// Empty = all.
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
// when jobs start and end. No one gives a command, and what is broken or paused stays so: a job that is paused never
// starts. The arrivals of the world come; with Others, others come as in the past, if that has ten submissions and is
// as long as what is said of a job. Else that is said as if no one came, see Span.Alone. What depends on a job of which
// nothing is known is not known, see Span.Unknown.
//
// What is said of a job does not depend on which others are asked about. When ctx ends, the draws finished so far are
// the forecast; with none it is the error of ctx.
func (m *Moment) Forecast(ctx context.Context, w *Work, o ForecastOptions) (*Forecast, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	l := &look{m: m, v: withPlanned(m.View(), o.Planned), w: w, o: &o}
	l.until = l.v.Now.Add(o.Horizon)
	if o.Others {
		l.past = pastOf(m.View())
	}
	f := &Forecast{At: l.v.Now, Until: l.until, Ended: w.Ended, All: len(l.v.Jobs)}
	open, err := l.draws(ctx, numbers(o.Draws), drawing{past: l.past, until: l.until})
	if err != nil {
		return nil, err
	}
	f.Draws, f.Cut = open.n, open.cut
	f.Jobs = l.sum(open, l.past != nil)
	if len(o.Of) == 0 {
		f.Busy, f.Queue = l.bands(open)
	}
	if err = l.alone(ctx, f.Jobs); err == nil {
		err = l.unknown(ctx, f.Jobs, open)
	}
	if err != nil && ctx.Err() != nil { // there was no time to see what is known
		for i := range f.Jobs {
			e := &f.Jobs[i]
			e.Start, e.End = l.noIdea(e.Start), l.noIdea(e.End)
		}
		err = nil
	}
	l.notEarly(f.Jobs)
	return f, err
}

// notEarly has no quantile of a start that is to come lie before the time from which the job may start.
func (l *look) notEarly(list []Estimate) {
	for i := range list {
		e := &list[i]
		if from := l.v.Job(e.Job).NotBefore; e.Start.P90 > l.v.Now {
			e.Start = notBefore(e.Start, Span{P10: from, P50: from, P90: from})
			e.End = notBefore(e.End, e.Start)
		}
	}
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
			LastStart: sched.None, NotBefore: spec.NotBef})
	}
	return &all
}

// look is one look into the future.
type look struct {
	m     *Moment
	v     *sched.View // with the jobs that are planned
	w     *Work
	o     *ForecastOptions
	until sched.Time
	past  *past // how others came; nil = no one knows
}

// drawing says what futures are drawn.
type drawing struct {
	past    *past // others come as in it; nil = none come
	until   sched.Time
	forever bool // jobs of which nothing is known never end
}

// drawn is what was drawn.
type drawn struct {
	n, cut int          // futures, and those of them that ended for too many events
	last   []sched.Time // by future: the last time that is not Never
	jobs   []times      // by job
	wanted []bool       // the same
}

// times are those drawn for one job.
type times struct{ starts, ends []sched.Time }

// numbers are the first n of the futures that there may be.
func numbers(n int) []uint64 {
	list := make([]uint64, n)
	for i := range list {
		list[i] = uint64(i)
	}
	return list
}

// draws draws futures. When ctx ends, those finished so far are all; with none it is the error of ctx.
func (l *look) draws(ctx context.Context, numbers []uint64, as drawing) (*drawn, error) {
	d := &drawn{jobs: make([]times, len(l.v.Jobs))}
	for _, number := range numbers {
		t, cut, err := l.draw(ctx, as, number)
		switch {
		case ctx.Err() != nil && d.n > 0:
			return d, nil
		case err != nil:
			return nil, err
		}
		d.n, d.wanted = d.n+1, t.wanted
		if cut {
			d.cut++
		}
		last := l.v.Now
		for j := range d.jobs {
			if t.wanted[j] {
				last = later(later(last, t.start[j]), t.end[j])
			}
			d.jobs[j].starts = append(d.jobs[j].starts, t.start[j])
			d.jobs[j].ends = append(d.jobs[j].ends, t.end[j])
		}
		d.last = append(d.last, last)
	}
	return d, nil
}

// later returns b, if it is a time later than a, else a.
func later(a, b sched.Time) sched.Time {
	if b == sched.Never {
		return a
	}
	return max(a, b)
}

// draw simulates one future: the moment with the jobs that are planned.
func (l *look) draw(ctx context.Context, as drawing, draw uint64) (_ *timesOf, cut bool, err error) {
	o, v := l.o, l.v
	left, whole := l.w.future(rand.New(rand.NewPCG(^o.Seed, draw))).drawAll(v, o.Seed, draw)
	if as.forever {
		l.outlast(left, whole)
	}
	world := o.world(v.Now, left)
	if o.Costs != nil {
		world.costs, world.known, world.guessed = o.Costs, len(v.Jobs), l.w.Guessed
		world.Runtime = o.Costs.runtime(world.Runtime, rand.New(rand.NewPCG(^o.Seed, ^draw)))
		whole = l.withStartUp(whole)
	}
	world.Arrivals = append(world.Arrivals, as.past.others(whole, as.until, rand.New(rand.NewPCG(o.Seed, ^draw)))...)
	d, err := l.m.simulate(world, left[:len(l.m.View().Jobs)])
	if err != nil {
		return nil, false, err
	}
	t := newTimes(v, o.Of)
	b := &bounded{Driver: d, until: as.until, events: o.Events, enough: func() bool { return t.unknown == 0 }}
	err = l.m.GoOn(ctx, b, t)
	return t, b.over && b.events < 0, err
}

// withStartUp returns works with what a start costs, of jobs that come again as others: those have no number.
func (l *look) withStartUp(whole []time.Duration) []time.Duration {
	list := slices.Clone(whole)
	for j := range list {
		if list[j] > 0 {
			list[j] += l.o.Costs.of(sched.JobID(j))
		}
	}
	return list
}

// outlast has jobs of which nothing is known last beyond all that is looked at.
func (l *look) outlast(left, whole []time.Duration) {
	for j := range l.v.Jobs {
		if l.isUnknown(sched.JobID(j)) {
			left[j], whole[j] = century/2, century/2
		}
	}
}

// isUnknown reports whether nothing is known of the work that a job has left.
func (l *look) isUnknown(j sched.JobID) bool {
	if l.v.Job(j).State == sched.Done {
		return false
	}
	_, basis := l.w.Left(l.v, j, 0.5)
	return basis == ByNothing
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

// sum returns the estimates of the jobs that are wanted. Starts to come are widened, by more where others come: what
// that does to ends is little next to what the work of the job itself may be.
func (l *look) sum(d *drawn, open bool) (list []Estimate) {
	by := 1.
	switch {
	case open:
		by = beyondModel
	case l.o.Others:
		by = beyondAlone
	}
	for i := range l.v.Jobs {
		if !d.wanted[i] {
			continue
		}
		id, now, t := sched.JobID(i), l.v.Now, &d.jobs[i]
		e := Estimate{Job: id}
		for _, at := range t.ends {
			if at != sched.Never {
				e.Within++
			}
		}
		e.Start, e.End = spanOf(slices.Clone(t.starts), now), spanOf(slices.Clone(t.ends), now)
		e.Start = widened(e.Start, now, by)
		e.End = notBefore(e.End, e.Start)
		_, e.Basis = l.w.Left(l.v, id, 0.5)
		list = append(list, e)
	}
	return list
}

// notBefore returns s with no quantile before that of a time which comes first, as the end of a job behind its start.
func notBefore(s, first Span) Span {
	s.P10, s.P50, s.P90 = max(s.P10, first.P10), max(s.P50, first.P50), max(s.P90, first.P90)
	return s
}

// alone says of jobs what is beyond the past as if no one else came, where others were to be taken in: how they come is
// not known for so long.
func (l *look) alone(ctx context.Context, list []Estimate) error {
	if !l.o.Others {
		return nil
	}
	known := l.v.Now
	if l.past != nil {
		known = known.Add(l.past.span())
	}
	beyond := func(s Span) bool { return s.P90 > known }
	if !slices.ContainsFunc(list, func(e Estimate) bool { return beyond(e.Start) || beyond(e.End) }) {
		return nil
	}
	closed := list
	if l.past != nil {
		d, err := l.draws(ctx, numbers(l.o.Draws), drawing{until: l.until})
		if err != nil {
			return err
		}
		closed = l.sum(d, false)
	}
	for i := range list {
		e, c := &list[i], &closed[i]
		if beyond(e.Start) {
			e.Start = c.Start
			e.Start.Alone = true
		}
		if beyond(e.End) {
			e.End, e.Within = c.End, c.Within
			e.End.Alone = true
		}
		e.End = notBefore(e.End, e.Start)
	}
	return nil
}

// twins is in how many futures it is tried what comes of it that jobs of which nothing is known go on. Ours.
const twins = 3

// unknown says which times are not known: those that come later by more than a tenth, in some future, if jobs of which
// nothing is known never end. The shortest futures are tried.
func (l *look) unknown(ctx context.Context, list []Estimate, as *drawn) error {
	nothing := make([]bool, len(l.v.Jobs))
	for j := range nothing {
		nothing[j] = l.isUnknown(sched.JobID(j))
	}
	if !slices.Contains(nothing, true) {
		return nil
	}
	moved := make([]bool, 2*len(list)) // start and end of each
	shortest := numbers(as.n)
	slices.SortStableFunc(shortest, func(a, b uint64) int { return cmp.Compare(as.last[a], as.last[b]) })
	for _, number := range shortest[:min(twins, as.n)] {
		until := l.slack(as.last[number]) + 1
		d, err := l.draws(ctx, []uint64{number}, drawing{past: l.past, forever: true, until: min(until, l.until)})
		if err != nil {
			return err
		}
		for i := range list {
			was, is := &as.jobs[list[i].Job], &d.jobs[list[i].Job]
			moved[2*i] = moved[2*i] || l.moves(was.starts[number], is.starts[0])
			moved[2*i+1] = moved[2*i+1] || l.moves(was.ends[number], is.ends[0])
		}
	}
	for i := range list {
		e := &list[i]
		if moved[2*i] {
			e.Start = l.noIdea(e.Start)
		}
		if e.Start.P10 == sched.Never && !e.Start.Unknown {
			continue // nor does it end
		}
		if nothing[e.Job] || e.Start.Unknown || moved[2*i+1] {
			e.End = notBefore(l.noIdea(e.End), e.Start)
		}
	}
	return nil
}

// slack returns a time that is later by a tenth of the time until then.
func (l *look) slack(at sched.Time) sched.Time { return at.Add(max(at.Sub(l.v.Now), 0) / 10) }

// moves reports whether a time was later by more than slack.
func (l *look) moves(was, is sched.Time) bool {
	return was != sched.Never && (is == sched.Never || is > l.slack(was))
}

// noIdea returns a time that is not known, unless it is over.
func (l *look) noIdea(s Span) Span {
	if s.P90 <= l.v.Now {
		return s
	}
	return Span{P10: l.v.Now, P50: sched.Never, P90: sched.Never, Unknown: true}
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

// beyondAlone is the same where no one else is taken to come: then the work of jobs alone is more alike. Measured by
// the matrix of promise 18, with seeds that it does not use: without it 81 % hold over all, but too few on traces.
const beyondAlone = 1.1

// widened returns an interval of which the end that is still to come lies further away from what was drawn. What is
// known exactly stays so.
func widened(s Span, now sched.Time, by float64) Span {
	if s.P10 == s.P90 {
		return s
	}
	if s.P10 > now && s.P10 != sched.Never {
		s.P10 = now.Add(time.Duration(float64(s.P10.Sub(now)) / by))
	}
	if late := float64(s.P90.Sub(now)) * by; s.P90 > now && s.P90 != sched.Never {
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
