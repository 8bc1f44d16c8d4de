package report

import (
	"slices"
	"time"

	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/sched"
)

// Report is what a file shows: what was run, and what came of it under each system. All systems had the same jobs.
type Report struct {
	Command []string // that writes the file again, without paths; nil = unknown
	Version string   // of the program
	Facts   []Fact   // what was run, for people
	Notes   []string // what to know before reading figures
	Systems []System // the first is what the others are compared with
	Tables  []Table  // figures of runs of which nothing else is kept
	Printed string   // what the command printed of them, for people
	Plan    any      // the document of plan --json; nil = none
	WhatIf  any      // the document of whatif --json, whose rows Systems follow; nil = none
	// Limit is how many bytes the packed data may have; 0 = any number. Beyond it the file keeps the jobs that matter
	// most, and of all others sums, see Write.
	Limit int64
	Unit  string // what jobs hold: GPU or slot; "" = GPU
	// Anonymous has jobs, users, models, classes and nodes numbered, and what may name a file left out.
	Anonymous bool

	kept  *keptDoc
	whole *Report // before jobs were left out; nil = none were
}

// Fact is a line about what was run.
type Fact struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// System is one run.
type System struct {
	Name     string
	Settings map[string]string
	Engine   string // what computed it
	LogHash  string // "" = unknown
	Result   metrics.Result
	Jobs     []metrics.Job      // in order of arrival
	Timeline *timeline.Timeline // nil = nothing is known of GPUs
	Parts    int                // of the log that it was read from; 0 = it was run
	Earlier  []string           // systems that decided before, with their settings, in order; nil = none

	attempts []timeline.Attempt // of the jobs that are kept, where not all are
	sums     *sumsDoc
	heat     *heat
}

// shown returns the attempts of the jobs that the file has.
func (s *System) shown() []timeline.Attempt {
	if s.sums != nil {
		return s.attempts
	}
	return s.Timeline.Attempts
}

// all returns the report with all jobs.
func (r *Report) all() *Report {
	if r.whole != nil {
		return r.whole
	}
	return r
}

// headDoc is the head of a file. Names are only ever added.
type headDoc struct {
	Schema    string      `json:"schema"`
	Version   string      `json:"version"`
	Command   []string    `json:"command,omitempty"`
	Facts     []Fact      `json:"facts"`
	Notes     []string    `json:"notes"`
	Anonymous bool        `json:"anonymous"`
	Unit      float64     `json:"unit_s"`  // of times in columns
	Rounded   bool        `json:"rounded"` // times were finer than that
	Systems   []systemDoc `json:"systems"`
	Tables    []Table     `json:"tables,omitempty"`
	Printed   string      `json:"printed,omitempty"`
	Plan      any         `json:"plan,omitempty"`
	WhatIf    any         `json:"whatif,omitempty"`
	Kept      *keptDoc    `json:"kept,omitempty"` // nil = all jobs
	Reasons   []string    `json:"reasons"`        // words of reasons by number
	Outcomes  []string    `json:"outcomes"`
	Classes   []string    `json:"classes"` // of losses, by number
	Types     []string    `json:"gpu_types"`
	Holds     string      `json:"unit,omitempty"` // what jobs hold, where that is no GPU
	// Compared is of jobs that finished under all systems; nil = there are not several, or no such jobs.
	Compared *comparedDoc `json:"compared,omitempty"`
}

type systemDoc struct {
	Name     string            `json:"name"`
	Settings map[string]string `json:"settings"`
	Engine   string            `json:"engine"`
	LogHash  string            `json:"log_hash,omitempty"`
	Result   metrics.Result    `json:"result"`
	GPUs     bool              `json:"gpus"` // attempts, series and losses are known
	Losses   *lossesDoc        `json:"losses,omitempty"`
	Series   *seriesDoc        `json:"series,omitempty"`
	Sums     *sumsDoc          `json:"sums,omitempty"` // where not all jobs are kept
	// Paired is how far its mean JCT is from that of the first; nil = it is that, or there are too few jobs.
	Paired *metrics.Paired `json:"paired,omitempty"`
}

// lossesDoc is timeline.Losses in GPU-hours.
type lossesDoc struct {
	From    float64     `json:"from_s"`
	To      float64     `json:"to_s"`
	All     float64     `json:"gpu_hours"`
	Classes []float64   `json:"classes"` // by class
	Users   []userDoc   `json:"users"`
	Width   float64     `json:"width_s"`
	Over    [][]float64 `json:"over"` // by class, then bucket
}

type userDoc struct {
	User    string    `json:"user"`
	Classes []float64 `json:"classes"` // useful, redone, coming up, stopping
}

// seriesDoc is timeline.Series.
type seriesDoc struct {
	From  float64   `json:"from_s"`
	Width float64   `json:"width_s"`
	Held  []float64 `json:"held"`
	GPUs  []float64 `json:"gpus"`
	Queue []float64 `json:"queue"`
	Asked []float64 `json:"asked"`
	Watts []float64 `json:"watts,omitempty"`
	// per hour: of nodes, and of energy
	Dollars       []float64 `json:"dollars_per_hour,omitempty"`
	EnergyDollars []float64 `json:"energy_dollars_per_hour,omitempty"`
}

// words returns the words of the numbers below n.
func words[T ~uint8](n T, word func(T) string) (list []string) {
	for i := range n {
		list = append(list, word(i))
	}
	return list
}

// head makes the head. What differs between two runs of the same command, such as the time that a decision took, is
// left out.
func (r *Report) head(u unit) *headDoc {
	h := &headDoc{Schema: "trainyard.report/v1", Version: r.Version, Command: r.Command, Facts: r.Facts,
		Notes: append([]string{}, r.Notes...), Tables: r.Tables, Printed: r.Printed, Plan: r.Plan, WhatIf: r.WhatIf,
		Kept: r.kept, Systems: []systemDoc{}, Anonymous: r.Anonymous, Unit: u.of.Seconds(), Rounded: u.rounded,
		Reasons:  words(sched.WhyAfter+1, sched.ReasonCode.String),
		Outcomes: words(sched.RejectedJob+1, sched.Outcome.String),
		Classes:  words(timeline.Classes, timeline.Class.String), Types: []string{}, Compared: r.all().compared()}
	if r.Unit != "GPU" {
		h.Holds = r.Unit
	}
	for i := range r.Systems {
		s := &r.Systems[i]
		d := systemDoc{Name: s.Name, Settings: s.Settings, Engine: s.Engine, LogHash: s.LogHash, Result: s.Result,
			Sums: s.sums}
		if i > 0 && r.Systems[0].Result.Finished == s.Result.Finished {
			d.Paired = metrics.PairJobs(r.all().Systems[i].Jobs, r.all().Systems[0].Jobs)
		}
		d.Result.Wall, d.Result.DecisionP50, d.Result.DecisionP99 = 0, 0, 0
		if s.Timeline != nil {
			d.GPUs, d.Losses, d.Series = true, lossesOf(s.Timeline.Losses()), seriesOf(s.Timeline.Series())
			h.Types = slices.Clone(s.Timeline.Types)
		}
		h.Systems = append(h.Systems, d)
	}
	return h
}

func lossesOf(l *timeline.Losses) *lossesDoc {
	d := &lossesDoc{From: l.From.Seconds(), To: l.To.Seconds(), All: l.All.Hours(), Users: []userDoc{},
		Width: l.Width.Seconds(), Over: [][]float64{}}
	for c := range timeline.Classes {
		d.Classes = append(d.Classes, l.By[c].Hours())
		over := []float64{}
		for _, a := range l.Over[c] {
			over = append(over, rounded(a.Hours()))
		}
		d.Over = append(d.Over, over)
	}
	for i := range l.Users {
		u := userDoc{User: l.Users[i].User}
		for _, a := range l.Users[i].By {
			u.Classes = append(u.Classes, rounded(a.Hours()))
		}
		d.Users = append(d.Users, u)
	}
	return d
}

func seriesOf(s timeline.Series) *seriesDoc {
	d := &seriesDoc{From: s.From.Seconds(), Width: s.Width.Seconds()}
	for _, c := range []struct {
		from  []float64
		to    *[]float64
		known bool // else it may be unknown
	}{{s.Held, &d.Held, true}, {s.GPUs, &d.GPUs, true}, {s.Queue, &d.Queue, true}, {s.Asked, &d.Asked, true},
		{s.Watts, &d.Watts, false}, {s.Dollars, &d.Dollars, false}, {s.EnergyDollars, &d.EnergyDollars, false}} {
		if c.known {
			*c.to = []float64{}
		}
		for _, x := range c.from {
			*c.to = append(*c.to, rounded(x))
		}
	}
	return d
}

// unit is the unit of times in columns.
type unit struct {
	of      time.Duration
	rounded bool
}

// in returns a time in the unit; None stays.
func (u unit) in(t sched.Time) int64 {
	if t == sched.None {
		return -1
	}
	return int64(time.Duration(t).Round(u.of) / u.of)
}

// unitOf returns the coarsest unit, of a second at most and a millisecond at least, in which all times are whole.
func (r *Report) unitOf() unit {
	u := unit{of: time.Second}
	finer := func(t sched.Time) {
		for t != sched.None && time.Duration(t)%u.of != 0 && !u.rounded {
			if u.of == time.Millisecond {
				u.rounded = true
				return
			}
			u.of /= 10
		}
	}
	for i := range r.Systems {
		s := &r.Systems[i]
		for k := range s.Jobs {
			finer(s.Jobs[k].Submit)
			finer(s.Jobs[k].Start)
			finer(s.Jobs[k].Finish)
			finer(sched.Time(s.Jobs[k].Run))
		}
		if s.Timeline == nil {
			continue
		}
		for k, list := 0, s.shown(); k < len(list); k++ {
			a := &list[k]
			for _, t := range []sched.Time{a.Ordered, a.Work, a.Kept, a.Stopped, a.Ended} {
				finer(t)
			}
		}
	}
	return u
}
