package experiment

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/stage/watch"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/trace"
)

// The world of the experiment.
const (
	stragglerCluster = "16x8"
	stragglerNode    = 8
	stragglerGPUs    = 128
	stragglerLoad    = 0.8
	stragglerReport  = time.Minute
	stragglerNoise   = 0.02

	quietJobs = 146_000 // without faults: about nine months
)

// stragglerRows are the systems, each with what it knows of slow GPUs. Ratios are over the first and the last of a
// system.
var stragglerRows = []struct{ system, knows string }{
	{"pal", "none"}, {"pal", "watch"}, {"pal", "oracle"}, {"packed", "none"}, {"packed", "watch"}, {"packed", "oracle"}}

// stragglerPart is one scenario under all rows.
type stragglerPart struct {
	Scenario string         `json:"scenario"`
	Seeds    int            `json:"seeds"`
	Faults   int            `json:"faults"`
	Load     float64        `json:"offered_load"`
	Rows     []stragglerRow `json:"rows"`
}

// stragglerRow is one system. Figures are means over seeds.
type stragglerRow struct {
	System      string            `json:"system"`
	Knows       string            `json:"stragglers"`
	AvgJCT      simulate.Interval `json:"avg_jct_s"`
	Lost        simulate.Interval `json:"lost_gpu_hours_per_fault"`
	OverNone    simulate.Interval `json:"avg_jct_over_none"`
	OverOracle  simulate.Interval `json:"avg_jct_over_oracle"`
	Moves       float64           `json:"migrations"`
	Quarantines float64           `json:"quarantines"`
	Met         int               `json:"faults_met"` // that a job worked on, all seeds together
	Found       int               `json:"faults_found"`
	Detect50    float64           `json:"detect_p50_s"` // from the start of a fault; 0 = none was found
	Detect90    float64           `json:"detect_p90_s"`
	Unfinished  int               `json:"unfinished"`

	jcts, lost, delays []float64
}

// quietTime is what a watcher says where nothing is wrong.
type quietTime struct {
	GPUDays     float64 `json:"gpu_days"`
	Reports     int     `json:"reports"`
	Quarantines float64 `json:"quarantines_per_1000_gpu_days"`
	Said        float64 `json:"gpus_said_to_be_slow_per_1000_gpu_days"`
}

// stragglers compares systems that find out by the progress of jobs which GPUs are slow for a while with those that
// know nothing of it and with oracles, and counts what is found where there is nothing to find.
func stragglers(ctx context.Context, w io.Writer, o Options) error {
	seeds, jobs := 10, quietJobs
	if o.Seeds > 0 {
		seeds = o.Seeds
		jobs = min(jobs, quietJobs/10*seeds) // a look at it costs less
	}
	parts, err := stragglerParts(ctx, 1, seeds)
	if err != nil {
		return fmt.Errorf("experiment: stragglers: %w", err)
	}
	quiet, err := quietRun(ctx, 1, jobs)
	if err != nil {
		return fmt.Errorf("experiment: stragglers: %w", err)
	}
	return o.show(w, struct {
		Schema     string           `json:"schema"`
		Experiment string           `json:"experiment"`
		Parts      []*stragglerPart `json:"parts"`
		Quiet      *quietTime       `json:"without_faults"`
	}{"trainyard.experiment/v1", "stragglers", parts, quiet},
		func(w io.Writer) error { return printStragglers(w, parts, quiet) })
}

// stragglerParts runs the scenarios with seeds first, first+1, ...
func stragglerParts(ctx context.Context, first uint64, seeds int) ([]*stragglerPart, error) {
	var parts []*stragglerPart
	for i := range scenarios {
		p := &stragglerPart{Scenario: scenarios[i].name, Seeds: seeds}
		if err := p.run(ctx, &scenarios[i], first); err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

func (p *stragglerPart) run(ctx context.Context, s *scenario, first uint64) error {
	for _, r := range stragglerRows {
		p.Rows = append(p.Rows, stragglerRow{System: r.system, Knows: r.knows})
	}
	for seed := first; seed < first+uint64(p.Seeds); seed++ {
		d := drawPhilly(seed, stragglerLoad)
		arrivals := d.traces[0].Jobs[len(d.traces[0].Jobs)-1].Spec.Submit
		faults := s.draw(seed, int(arrivals/sched.Time(24*time.Hour)))
		p.Faults += len(faults)
		p.Load += trace.Describe(d.traces[0]).OfferedLoad(stragglerGPUs) / float64(p.Seeds)
		for i := range p.Rows {
			if err := p.Rows[i].add(ctx, d, faults, seed); err != nil {
				return err
			}
		}
	}
	for i := range p.Rows {
		none, oracle := &p.Rows[i/3*3], &p.Rows[i/3*3+2]
		p.Rows[i].sum(none, oracle, p.Seeds)
	}
	return nil
}

// play simulates one draw under a system; t sees it.
func play(ctx context.Context, name, knows string, d palDraw, t *toll, seed uint64) (*simulate.Outcome, error) {
	c, err := cluster.Load(stragglerCluster)
	if err != nil {
		return nil, err
	}
	sim := simulate.Request{Trace: d.traces[0], Cluster: c, System: name, Scores: d.scores, Sinks: []eventlog.Sink{t},
		Settings: map[string]string{"restart_overhead": fmt.Sprint(restart.Seconds()), "stragglers": knows,
			"report_interval": fmt.Sprint(stragglerReport.Seconds()), "report_noise": fmt.Sprint(stragglerNoise)},
		NoiseSeed: seed}
	var slow []variability.Spell
	for _, f := range t.faults {
		slow = append(slow, f.spells()...)
	}
	sim.Files = system.SlowGPUs.Holds(slow)
	t.met, t.seen = make([]bool, len(t.faults)), make([]sched.Time, len(t.faults))
	sim.Adapt = func(st *pipeline.Stages) {
		for _, p := range st.Provision {
			if w, ok := p.(*watch.Stragglers); ok {
				t.suspects, t.revision = func(g sched.GPUID) bool { return w.Factor(g) > 1 }, w.Revision
			}
		}
	}
	return sim.Run(ctx)
}

// add simulates one seed.
func (r *stragglerRow) add(ctx context.Context, d palDraw, faults []fault, seed uint64) error {
	t := &toll{faults: faults}
	out, err := play(ctx, r.System, r.Knows, d, t, seed)
	if err != nil {
		return err
	}
	r.jcts = append(r.jcts, out.AvgJCT)
	r.lost = append(r.lost, t.lost/3600/float64(max(1, len(faults))))
	r.Moves += float64(out.Migrations)
	r.Quarantines += float64(t.quarantines)
	r.Unfinished += out.Unfinished
	for i := range faults {
		if t.met[i] {
			r.Met++
		}
		if t.met[i] && t.seen[i] > 0 {
			r.Found++
			r.delays = append(r.delays, t.seen[i].Sub(faults[i].begin()).Seconds())
		}
	}
	return nil
}

func (r *stragglerRow) sum(none, oracle *stragglerRow, seeds int) {
	r.AvgJCT, r.Lost = simulate.Bootstrap(r.jcts), simulate.Bootstrap(r.lost)
	r.OverNone, r.OverOracle = simulate.RatioOf(r.jcts, none.jcts), simulate.RatioOf(r.jcts, oracle.jcts)
	r.Moves /= float64(seeds)
	r.Quarantines /= float64(seeds)
	if len(r.delays) > 0 {
		slices.Sort(r.delays)
		r.Detect50, r.Detect90 = quantile(r.delays, .5), quantile(r.delays, .9)
	}
}

// quantile returns the q-quantile of sorted values by nearest rank.
func quantile(sorted []float64, q float64) float64 {
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// quietRun plays so many jobs without faults, in one run, under PAL that watches.
func quietRun(ctx context.Context, seed uint64, jobs int) (*quietTime, error) {
	t := &toll{}
	out, err := play(ctx, "pal", "watch", drawPhillyJobs(seed, stragglerLoad, jobs), t, seed)
	if err != nil {
		return nil, err
	}
	q := &quietTime{GPUDays: out.Makespan / 86400 * stragglerGPUs, Reports: t.reports}
	q.Quarantines = 1000 * float64(t.quarantines) / q.GPUDays
	q.Said = 1000 * float64(t.said) / q.GPUDays
	return q, nil
}
