package experiment

import (
	"context"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/model/skew"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/trace"
)

// palSystems are the rows of the experiment; ratios are over the first two.
var palSystems = []string{"packed-sticky", "packed", "pm-first", "pal"}

// palPart is one family of traces on one cluster, under all systems.
type palPart struct {
	Name     string   `json:"name"`
	Trace    string   `json:"trace"`
	Cluster  string   `json:"cluster"`
	Scores   string   `json:"scores"`
	Preset   string   `json:"preset"` // "" = the engine
	Load     float64  `json:"offered_load"`
	Round    float64  `json:"round_s"`
	Restart  float64  `json:"restart_s"`
	Spread   float64  `json:"spread_penalty"` // the key; 0 also in the artifact's simulator
	Interval string   `json:"interval"`       // what low and high of ratios are
	Seeds    int      `json:"seeds"`
	Rows     []palRow `json:"rows"`
}

// palRow is one system. Figures are means over seeds and traces.
type palRow struct {
	System     string    `json:"system"`
	AvgJCT     float64   `json:"avg_jct_s"`
	GeomeanJCT float64   `json:"geomean_jct_s"`
	Makespan   float64   `json:"makespan_s"`
	Busy       float64   `json:"gpu_busy"`
	Moves      float64   `json:"migrations"`
	Unfinished int       `json:"unfinished"`
	Engine     string    `json:"engine"` // what computed it: trainyard, or replica:NAME
	OverSticky palRatios `json:"over_packed_sticky"`
	OverPacked palRatios `json:"over_packed"`

	results [][]metrics.Result // by seed and trace
}

// palRatios are figures over those of a baseline, geometric means over traces.
type palRatios struct {
	AvgJCT     simulate.Interval `json:"avg_jct"`
	GeomeanJCT simulate.Interval `json:"geomean_jct"`
	Makespan   simulate.Interval `json:"makespan"`
	Busy       simulate.Interval `json:"gpu_busy"`
}

// palDraw is what one seed of a part plays.
type palDraw struct {
	traces []*trace.Trace
	scores *variability.Scores
}

// palExperiment compares PAL and PM-First with packed placement: as published on the draw of scores of the artifact, in
// the artifact's simulator and on our runtime model; with scores that last, drawn from the medians of measured GPUs;
// and where locality matters, on nodes of 8 GPUs with Philly's widths. What is not in the artifact's simulator runs in
// the engine, with the same cost of a restart.
func palExperiment(ctx context.Context, w io.Writer, o Options) error {
	parts, err := palParts(ctx, o)
	if err != nil {
		return fmt.Errorf("experiment: pal: %w", err)
	}
	return o.show(w, struct {
		Schema     string     `json:"schema"`
		Experiment string     `json:"experiment"`
		Published  any        `json:"published"`
		Parts      []*palPart `json:"parts"`
	}{"trainyard.experiment/v1", "pal", palPublished, parts}, func(w io.Writer) error { return printPAL(w, parts) })
}

// palPublished are the published ratios, of the abstract and, fig10, of the artifact's README. Against what the
// abstract compares, and what it calls utilisation, is not known to us.
var palPublished = map[string]float64{"abstract_pal_geomean_jct": 0.58, "abstract_pal_utilisation": 1.28,
	"abstract_pal_makespan":                0.53,
	"fig10_pal_avg_jct_over_packed_sticky": 0.57, "fig10_pm_first_avg_jct_over_packed_sticky": 0.60}

func palParts(ctx context.Context, o Options) ([]*palPart, error) {
	var parts []*palPart
	if o.Data != "" {
		published, err := palDataParts(ctx, o)
		if err != nil {
			return nil, err
		}
		parts = published
	}
	seeds := 5
	if o.Seeds > 0 {
		seeds = o.Seeds
	}
	for _, load := range []float64{0.7, 0.9, 1.1} {
		p := &palPart{Name: fmt.Sprintf("locality, load %v", load), Cluster: "16x8", Seeds: seeds, Round: 300,
			Spread: skew.Penalty, Interval: "95 % bootstrap over seeds",
			Trace:  fmt.Sprintf("%d generated jobs, Philly's widths, durations cut at a day", palJobs),
			Scores: "ours, spread as Frontera's medians"}
		if err := p.run(ctx, func(seed uint64) palDraw { return drawPhilly(seed, load) }); err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// run fills in the rows: every system on the same draws.
func (p *palPart) run(ctx context.Context, draw func(seed uint64) palDraw) error {
	c, err := cluster.Load(p.Cluster)
	if err != nil {
		return err
	}
	for _, name := range palSystems {
		p.Rows = append(p.Rows, palRow{System: name})
	}
	if p.Preset == "" {
		p.Restart = restart.Seconds()
	}
	for seed := range p.Seeds {
		d := draw(uint64(seed) + 1)
		for _, t := range d.traces {
			p.Load += trace.Describe(t).OfferedLoad(c.GPUs()) / float64(p.Seeds*len(d.traces))
		}
		for i := range p.Rows {
			if err := p.Rows[i].add(ctx, p, c, d); err != nil {
				return err
			}
		}
	}
	for i := range p.Rows {
		p.Rows[i].sum(p.Rows[0].results, p.Rows[1].results)
	}
	return nil
}

// add simulates the traces of one seed.
func (r *palRow) add(ctx context.Context, p *palPart, c *cluster.Cluster, d palDraw) error {
	var results []metrics.Result
	for _, t := range d.traces {
		sim := simulate.Request{Trace: t, Cluster: c, System: r.System, Preset: p.Preset,
			Round: time.Duration(p.Round) * time.Second, Scores: d.scores}
		if p.Preset == "" {
			sim.Settings = map[string]string{"restart_overhead": fmt.Sprint(restart.Seconds()),
				"spread_penalty": fmt.Sprint(p.Spread)}
		}
		out, err := sim.Run(ctx)
		if err != nil {
			return err
		}
		results, r.Engine = append(results, out.Result), out.Engine
	}
	r.results = append(r.results, results)
	return ctx.Err()
}

func (r *palRow) sum(sticky, packed [][]metrics.Result) {
	n := float64(len(r.results) * len(r.results[0]))
	for _, seed := range r.results {
		for i := range seed {
			x := &seed[i]
			r.AvgJCT += x.AvgJCT / n
			r.GeomeanJCT += x.GeomeanJCT / n
			r.Makespan += x.Makespan / n
			r.Busy += x.GPUBusy / n
			r.Moves += float64(x.Migrations) / n
			r.Unfinished += x.Unfinished
		}
	}
	r.OverSticky, r.OverPacked = palRatiosOf(r.results, sticky), palRatiosOf(r.results, packed)
}

func palRatiosOf(got, base [][]metrics.Result) palRatios {
	of := func(f func(*metrics.Result) float64) simulate.Interval { return palRatio(got, base, f) }
	return palRatios{
		AvgJCT:     of(func(r *metrics.Result) float64 { return r.AvgJCT }),
		GeomeanJCT: of(func(r *metrics.Result) float64 { return r.GeomeanJCT }),
		Makespan:   of(func(r *metrics.Result) float64 { return r.Makespan }),
		Busy:       of(func(r *metrics.Result) float64 { return r.GPUBusy }),
	}
}

// palRatio is the mean over seeds of the geometric mean over traces of a ratio; with one seed and several traces the
// interval is the least and the largest of these.
func palRatio(got, base [][]metrics.Result, f func(*metrics.Result) float64) simulate.Interval {
	var bySeed []float64
	low, high := math.Inf(1), math.Inf(-1)
	for s := range got {
		logs := 0.0
		for i := range got[s] {
			x := f(&got[s][i]) / f(&base[s][i])
			low, high = min(low, x), max(high, x)
			logs += math.Log(x)
		}
		bySeed = append(bySeed, math.Exp(logs/float64(len(got[s]))))
	}
	e := simulate.Bootstrap(bySeed)
	if len(got) == 1 && len(got[0]) > 1 {
		e.Low, e.High = low, high
	}
	return e
}
