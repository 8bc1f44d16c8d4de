package server

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/sched"
)

// calibrationID is the operation that takes a Calibrator.
const calibrationID = "calibration"

// Calibrator is a Historian that keeps forecasts that were given.
type Calibrator interface {
	Historian
	// Foretold keeps forecasts, which may be of many jobs at once.
	Foretold(list ...explain.Foretold)
	// Forecasts returns those that are kept, the oldest first.
	Forecasts() ([]explain.Foretold, error)
}

// mostForecasts is how many are kept.
const mostForecasts = 100_000

// leads are the lead times that are distinguished, in seconds; 0 = any.
var leads = []float64{0, 60, 600, 3600, 6 * 3600, 86400, math.MaxInt32}

// foretold has what an answer says of a job kept.
func foretold(h Host, a *Answer, id sched.JobID) {
	c, able := h.(Calibrator)
	if e := a.Forecast.Of(id); able && e != nil {
		c.Foretold(explain.Foretold{At: a.Forecast.At, Job: id, System: h.Header().System, Start: e.Start,
			End: e.End})
	}
}

// calibration says how often forecasts came true.
func (p *past) calibration(ctx context.Context, _ *nothing) (api.Calibration, error) {
	done, err := inTurn(ctx, p.turn)
	if err != nil {
		return api.Calibration{}, err
	}
	defer done()
	c := p.s.o.Host.(Calibrator)
	list, err := c.Forecasts()
	if err != nil {
		return api.Calibration{}, fmt.Errorf("calibration: %w", err)
	}
	j := judge{came: map[sched.JobID][]sched.Time{}}
	err = p.s.o.Host.Look(ctx, func(*sched.View) {
		j.now = p.now()
		_, jobs := p.s.o.Host.Result()
		j.jobs = slices.Clone(jobs)
		j.starts(c.Timeline().Snapshot(j.now).Attempts)
	})
	if err != nil {
		return api.Calibration{}, err
	}
	doc := api.Calibration{Schema: "trainyard.calibration/v1", Kept: len(list), Most: mostForecasts, Expected: .8}
	if len(list) > 0 {
		doc.Since = p.when(list[0].At)
	}
	doc.Rows = j.rows(list)
	return doc, nil
}

// judge compares forecasts with what came.
type judge struct {
	now  sched.Time
	jobs []metrics.Job
	came map[sched.JobID][]sched.Time // when attempts of a job were up, in order
}

// starts notes when attempts were up.
func (j *judge) starts(list []timeline.Attempt) {
	for i := range list {
		if a := &list[i]; a.Up != sched.None {
			j.came[a.Job] = append(j.came[a.Job], a.Up)
		}
	}
}

// rows counts by what is said, system and lead time.
func (j *judge) rows(list []explain.Foretold) []api.Calibrating {
	systems := []string{""}
	for i := range list {
		if !slices.Contains(systems, list[i].System) {
			systems = append(systems, list[i].System)
		}
	}
	rows := []api.Calibrating{}
	for _, of := range []string{"start", "end"} {
		for _, system := range systems {
			for n, lead := range leads {
				row := api.Calibrating{Of: of, System: system, Lead: lead, PIT: make([]int, 4)}
				for i := range list {
					if f := &list[i]; system == "" || f.System == system {
						j.count(&row, f, n)
					}
				}
				if lead == 0 || row.Judged+row.Pending > 0 {
					rows = append(rows, row)
				}
			}
		}
	}
	return rows
}

// count counts a forecast, if its lead time is that of a row.
func (j *judge) count(row *api.Calibrating, f *explain.Foretold, lead int) {
	s, of := f.End, j.end
	if row.Of == "start" {
		if s, of = f.Start, j.start; s.P90 <= f.At { // it was up
			return
		}
	}
	if !known(&s) {
		if lead == 0 {
			row.Void++
		}
		return
	}
	if !ahead(&s, f.At, lead) {
		return
	}
	at, never := of(f)
	switch {
	case never:
		row.Void++
		return
	case at == sched.None && j.now > s.P90:
		at = sched.Never // whenever it comes, it is late
	case at == sched.None:
		row.Pending++
		return
	}
	row.Judged++
	bin := 0
	for _, q := range []sched.Time{s.P10 - 1, s.P50, s.P90} {
		if at > q {
			bin++
		}
	}
	row.PIT[bin]++
	*[]*int{&row.Early, &row.Inside, &row.Inside, &row.Late}[bin]++
}

// ahead reports whether what is said of a time lies as far ahead as a lead time.
func ahead(s *explain.Span, at sched.Time, lead int) bool {
	after := s.P50.Sub(at).Seconds()
	return lead == 0 || after <= leads[lead] && (lead == 1 || after > leads[lead-1])
}

// known reports whether a forecast said an interval.
func known(s *explain.Span) bool { return !s.Unknown && s.P50 != sched.Never && s.P90 != sched.Never }

// start returns when a job was up next after a forecast, None = not yet; or that it never will be.
func (j *judge) start(f *explain.Foretold) (at sched.Time, never bool) {
	for _, at := range j.came[f.Job] {
		if at > f.At {
			return at, false
		}
	}
	return sched.None, j.over(f.Job)
}

// end returns when a job ended by itself, None = not yet; or that it never will.
func (j *judge) end(f *explain.Foretold) (at sched.Time, never bool) {
	if !j.over(f.Job) {
		return sched.None, false
	}
	job := &j.jobs[f.Job]
	return job.Finish, job.Outcome != sched.Finished && job.Outcome != sched.Failed
}

// over reports whether a job is done, or not known any more.
func (j *judge) over(id sched.JobID) bool {
	return int(id) >= len(j.jobs) || j.jobs[id].Outcome != sched.NoOutcome
}
