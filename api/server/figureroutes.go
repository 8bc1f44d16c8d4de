package server

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/sched"
)

// mostPoints is how many points of a series may be asked for, usualPoints how many there are where no one asks.
const (
	mostPoints  = 2000
	usualPoints = 200
)

// rangeInput is a span of time.
type rangeInput struct {
	From string `query:"from" doc:"from then on, RFC 3339; nothing = from the first submission on"`
	To   string `query:"to" doc:"up to then, RFC 3339; nothing = up to now"`
}

// span returns the span that is asked for, in times of the host.
func (p *past) span(in *rangeInput) (from, to sched.Time, err error) {
	now := p.now()
	from, to = 0, now
	for _, x := range []struct {
		name, text string
		to         *sched.Time
	}{{"from", in.From, &from}, {"to", in.To, &to}} {
		if x.text == "" {
			continue
		}
		at, bad := time.Parse(time.RFC3339Nano, x.text)
		if bad != nil {
			return 0, 0, fmt.Errorf("%w: %s %q, want a time as %s", api.ErrMalformed, x.name, x.text,
				p.when(now))
		}
		*x.to = max(sched.Time(at.Sub(p.s.origin)), 0)
	}
	switch {
	case from > now:
		err = fmt.Errorf("%w: from %s is to come, want a time up to %s", api.ErrMalformed, in.From, p.when(now))
	case from > to:
		err = fmt.Errorf("%w: from %s is behind to %s, want it before", api.ErrMalformed, in.From,
			cmp.Or(in.To, p.when(now)))
	}
	return from, min(to, now), err
}

type seriesInput struct {
	From   string `query:"from" doc:"as of users"`
	To     string `query:"to" doc:"as of users"`
	Name   string `query:"name" doc:"what: held, busy, gpus, queue, asked, watts, kwh, dollars_per_hour, cost"`
	Points int    `query:"points" minimum:"1" maximum:"2000" default:"200" doc:"at most"`
}

// series returns a figure over time.
func (p *past) series(ctx context.Context, in *seriesInput) (api.Series, error) {
	f, known := timeline.FigureNamed(in.Name)
	if !known {
		return api.Series{}, fmt.Errorf("%w: name %q, want one of %s", api.ErrMalformed, in.Name,
			strings.Join(timeline.FigureWords(), ", "))
	}
	from, to, err := p.span(&rangeInput{in.From, in.To})
	if err != nil {
		return api.Series{}, err
	}
	line, _, err := p.copied(ctx)
	if err != nil {
		return api.Series{}, err
	}
	points := min(cmp.Or(in.Points, usualPoints), mostPoints)
	list := line.Points(f, from, to, points)
	doc := api.Series{Schema: "trainyard.series/v1", Name: in.Name, Unit: unitOf(f), Known: list.Known,
		Width: list.Width.Seconds(), Points: make([]api.Bucket, len(list.List))}
	if len(line.Jobs) > 0 {
		doc.From, doc.To = p.when(list.From), p.when(list.To)
	}
	for i, x := range list.List {
		doc.Points[i] = api.Bucket{At: p.when(x.From), Low: x.Low, Mean: x.Mean, High: x.High}
	}
	return doc, nil
}

// unitOf is what a figure counts.
func unitOf(f timeline.Figure) string {
	switch f {
	case timeline.Queue:
		return "jobs"
	case timeline.Power:
		return "W"
	case timeline.Energy:
		return "kWh"
	case timeline.Spend:
		return "dollars an hour"
	case timeline.Cost:
		return "dollars"
	}
	return "GPUs"
}

// copied returns copies of who held what when, up to now, and of what has come of all jobs.
func (p *past) copied(ctx context.Context) (line *timeline.Timeline, jobs []metrics.Job, err error) {
	done, err := inTurn(ctx, p.turn)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	err = p.s.o.Host.Look(ctx, func(*sched.View) {
		_, list := p.s.o.Host.Result()
		jobs = slices.Clone(list)
		line = p.s.o.Host.(Historian).Timeline().Snapshot(p.now())
	})
	return line, jobs, err
}

// users returns what each user got.
func (p *past) users(ctx context.Context, in *rangeInput) (api.Users, error) {
	from, to, err := p.span(in)
	if err != nil {
		return api.Users{}, err
	}
	line, jobs, err := p.copied(ctx)
	if err != nil {
		return api.Users{}, err
	}
	doc := api.Users{Schema: "trainyard.users/v1", Users: usersOf(line, jobs, from, to)}
	if len(line.Jobs) > 0 {
		doc.From, doc.To = p.when(max(from, firstSubmit(line))), p.when(to)
	}
	for i := range doc.Users {
		doc.Hours += doc.Users[i].Hours
	}
	for i := range doc.Users {
		if u := &doc.Users[i]; doc.Hours > 0 {
			u.Share = u.Hours / doc.Hours
		}
	}
	return doc, nil
}

func firstSubmit(line *timeline.Timeline) sched.Time {
	first := line.Jobs[0].Submit
	for i := range line.Jobs {
		first = min(first, line.Jobs[i].Submit)
	}
	return first
}

// sums adds up what users got from one time to another.
type sums struct {
	line     *timeline.Timeline
	from, to sched.Time
	by       map[string]*api.UserFigures
	waited   map[string]time.Duration
}

// usersOf adds up what each user got from one time to another, who held most first; ties by name.
func usersOf(line *timeline.Timeline, jobs []metrics.Job, from, to sched.Time) []api.UserFigures {
	s := &sums{line, from, to, make(map[string]*api.UserFigures), make(map[string]time.Duration)}
	for id := range line.Jobs[:min(len(line.Jobs), len(jobs))] {
		s.job(sched.JobID(id), &jobs[id])
	}
	for i := range line.Attempts {
		s.attempt(&line.Attempts[i])
	}
	list := make([]api.UserFigures, 0, len(s.by))
	for name, u := range s.by {
		if u.Finished > 0 {
			u.Wait = s.waited[name].Seconds() / float64(u.Finished)
		}
		if u.Jobs+u.Finished+u.Failed+u.Preempted > 0 || u.Hours > 0 {
			list = append(list, *u)
		}
	}
	slices.SortFunc(list, func(a, b api.UserFigures) int {
		return cmp.Or(cmp.Compare(b.Hours, a.Hours), cmp.Compare(a.User, b.User))
	})
	return list
}

// of returns the figures of the user of a job.
func (s *sums) of(id sched.JobID) *api.UserFigures {
	name := s.line.Jobs[id].User
	if s.by[name] == nil {
		s.by[name] = &api.UserFigures{User: name}
	}
	return s.by[name]
}

func (s *sums) within(t sched.Time) bool { return t != sched.None && s.from <= t && t <= s.to }

func (s *sums) job(id sched.JobID, j *metrics.Job) {
	u := s.of(id)
	if s.within(s.line.Jobs[id].Submit) {
		u.Jobs++
	}
	if !s.within(j.Finish) {
		return
	}
	switch j.Outcome {
	case sched.Finished:
		u.Finished++
		u.Energy += float64(j.Energy) / 3.6e6
		s.waited[u.User] += max(j.Finish.Sub(j.Submit)-j.Run, 0)
	case sched.Failed:
		u.Failed++
	}
}

func (s *sums) attempt(a *timeline.Attempt) {
	u, end := s.of(a.Job), s.to
	if a.Ended != sched.None {
		end = min(s.to, a.Ended)
	}
	width := float64(a.Width())
	u.Hours += width * max(end.Sub(max(a.Ordered, s.from)), 0).Hours()
	if !s.within(a.Ended) {
		return
	}
	u.Lost += width * a.Lost().Hours()
	if a.Outcome == sched.Preempted {
		u.Preempted++
	}
}

// forecasting is how long all jobs may be looked ahead of.
const forecasting = 5 * time.Second

// forecast says when all jobs that are not done are expected to start and end. The Host has it once for all who ask at
// one moment.
func (p *past) forecast(ctx context.Context, _ *nothing) (api.Outlook, error) {
	seq := p.s.o.Host.LastEvent()
	f, err := outlook(ctx, p.s.o.Host, int(forecasting.Milliseconds()))
	if err != nil {
		return api.Outlook{}, err
	}
	doc := api.Outlook{Schema: "trainyard.forecast/v1", Seq: seq, Known: f != nil, Jobs: []api.Expected{},
		Busy: []api.Band{}, Queue: []api.Band{}}
	err = p.s.o.Host.Look(ctx, func(v *sched.View) {
		doc.At = p.when(v.Now)
		x := whyWriter{Renderer: p.s.says(v)}
		if f != nil {
			x.Forecast = f
			doc.At, doc.Until, doc.Draws, doc.Rests = p.when(f.At), p.when(f.Until), f.Draws, x.Rests()
		}
		for id := range v.Jobs {
			if v.Jobs[id].State != sched.Done {
				doc.Jobs = append(doc.Jobs, p.expected(&x, f, sched.JobID(id)))
			}
		}
	})
	if f != nil {
		doc.Busy, doc.Queue = p.bands(f.Busy), p.bands(f.Queue)
	}
	return doc, err
}

func (p *past) expected(x *whyWriter, f *explain.Forecast, id sched.JobID) api.Expected {
	j := x.View.Job(id)
	doc := api.Expected{ID: int(id), Ref: p.s.o.Site.Ref(id, j.Spec), Name: j.Spec.Name,
		State: stateOf(x.View, j), GPUs: int(j.Spec.GPUs.Want)}
	if n := len(j.Target); n > 0 {
		doc.GPUs = n
	}
	if e := f.Of(id); e != nil {
		doc.Start, doc.End = x.expected(e)
	}
	return doc
}

func (p *past) bands(list []explain.Band) []api.Band {
	docs := make([]api.Band, len(list))
	for i, b := range list {
		docs[i] = api.Band{At: p.when(b.At), Low: b.P10, Median: b.P50, High: b.P90}
	}
	return docs
}
