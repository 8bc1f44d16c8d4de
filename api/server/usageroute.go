package server

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/sched"
)

type usageInput struct {
	By    string  `query:"by" default:"user" doc:"what rows are by, between commas: day, user, group, model, job"`
	From  string  `query:"from" doc:"as of users"`
	To    string  `query:"to" doc:"as of users"`
	Zone  string  `query:"tz" default:"UTC" doc:"time zone of days, as Europe/Berlin"`
	Price float64 `query:"price" minimum:"0" default:"0" doc:"money that a GPU costs an hour"`
	KWh   float64 `query:"kwh" minimum:"0" default:"0" doc:"money that a kWh costs"`
}

// usage returns what jobs used.
func (p *past) usage(ctx context.Context, in *usageInput) (doc api.Usage, err error) {
	by, zone, err := p.usageBy(in)
	if err != nil {
		return doc, err
	}
	line, jobs, err := p.copied(ctx)
	if err != nil {
		return doc, err
	}
	by.Finish = func(id sched.JobID) sched.Time {
		if int(id) >= len(jobs) || jobs[id].Outcome == sched.NoOutcome {
			return sched.None
		}
		return jobs[id].Finish
	}
	doc = api.Usage{Schema: "trainyard.usage/v1", By: strings.Split(in.By, ","), Rows: []api.UsageRow{}}
	if len(line.Jobs) > 0 {
		doc.From, doc.To = p.when(max(by.From, firstSubmit(line))), p.when(by.To)
	}
	rows := timeline.UsageOf(line, by)
	for i := range rows {
		row := p.usageRow(&rows[i], line, jobs, zone)
		row.Cost = in.Price*row.Held + in.KWh*row.KWh
		doc.Rows = append(doc.Rows, row)
	}
	sortUsage(doc.Rows)
	doc.Energy = p.energySource(doc.Rows)
	return doc, nil
}

// sortUsage puts days in order, and of a day who held most first; ties by name and number.
func sortUsage(rows []api.UsageRow) {
	slices.SortStableFunc(rows, func(a, b api.UsageRow) int {
		return cmp.Or(strings.Compare(a.Day, b.Day), cmp.Compare(b.Held, a.Held), strings.Compare(a.User, b.User),
			strings.Compare(a.Group, b.Group), strings.Compare(a.Model, b.Model))
	})
}

// energySource says where the energy of rows is from; "" = none is known.
func (p *past) energySource(rows []api.UsageRow) string {
	if !slices.ContainsFunc(rows, func(r api.UsageRow) bool { return r.KWh > 0 }) {
		return ""
	}
	if m, able := p.s.o.Host.(Accountant); able && m.Metered() {
		return "measured"
	}
	return "modelled"
}

// usageBy reads what a table is to be by.
func (p *past) usageBy(in *usageInput) (by timeline.UsageBy, zone *time.Location, err error) {
	for _, x := range []float64{in.Price, in.KWh} {
		if !(x >= 0) || math.IsInf(x, 0) {
			return by, nil, fmt.Errorf("%w: price or kwh %v, want a number >= 0", api.ErrMalformed, x)
		}
	}
	if by.From, by.To, err = p.span(&rangeInput{in.From, in.To}); err != nil {
		return by, nil, err
	}
	name := cmp.Or(in.Zone, "UTC")
	if zone, err = time.LoadLocation(name); err != nil || name == "Local" {
		return by, nil, fmt.Errorf("%w: tz %q, want a time zone, as Europe/Berlin", api.ErrMalformed, in.Zone)
	}
	for word := range strings.SplitSeq(in.By, ",") {
		switch word {
		case "day":
			by.Day = func(at sched.Time) (from, to sched.Time) { return p.day(at, zone) }
		case "user":
			by.User = true
		case "group":
			by.Group = true
		case "model":
			by.Model = true
		case "job":
			by.Job = true
		default:
			return by, nil, fmt.Errorf("%w: by %q, want some of %s between commas", api.ErrMalformed, word,
				strings.Join(api.UsageWords, ", "))
		}
	}
	return by, zone, nil
}

// day returns the day of a time in a time zone.
func (p *past) day(at sched.Time, zone *time.Location) (from, to sched.Time) {
	t := p.s.origin.Add(time.Duration(at)).In(zone)
	from = sched.Time(time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, zone).Sub(p.s.origin))
	to = sched.Time(time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, zone).Sub(p.s.origin))
	return min(from, at), max(to, at+1) // midnight may not exist, or come twice
}

// usageRow returns the document of a row. Of the energy of a job it has the part that it has of what the job held.
func (p *past) usageRow(r *timeline.UsageRow, line *timeline.Timeline, jobs []metrics.Job,
	zone *time.Location) api.UsageRow {
	doc := api.UsageRow{User: r.Key.User, Group: r.Key.Group, Model: r.Key.Model, Jobs: r.Jobs,
		Held: r.Held().Hours(), Useful: r.By[timeline.Useful].Hours(), Redone: r.By[timeline.Redone].Hours(),
		ComingUp: r.By[timeline.ComingUp].Hours(), Stopping: r.By[timeline.Stopping].Hours(),
		RedoneBy: make(map[string]float64), Wait: r.Wait.Hours()}
	for c := range timeline.Causes {
		if hours := r.Redone[c].Hours(); hours > 0 {
			doc.RedoneBy[c.String()] = hours
		}
	}
	if r.Key.Day != 0 {
		doc.Day = p.s.origin.Add(r.Key.Day - 1).In(zone).Format(time.DateOnly)
	}
	if r.Key.Job != sched.None {
		id := int(r.Key.Job)
		doc.Job, doc.Name = &id, line.Jobs[id].Name
	}
	for _, s := range r.Shares {
		if int(s.Job) < len(jobs) {
			doc.KWh += s.Of(float64(jobs[s.Job].Energy)) / 3.6e6
		}
	}
	return doc
}
