package experiment

import (
	"context"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/trace"
)

// elasticRow is a system of the experiment, and how it does in one part. Figures are means over seeds with their
// intervals.
type elasticRow struct {
	Name     string            `json:"name"`
	System   string            `json:"system"`
	Settings map[string]string `json:"settings"`
	Fixed    bool              `json:"fixed_batch"` // the baseline of the abstract: elastic in GPUs alone

	InWindow   simulate.Interval `json:"completed_in_window"`
	AvgJCT     simulate.Interval `json:"avg_jct_s"` // of all that finished
	DropRatio  simulate.Interval `json:"drop_ratio"`
	Busy       simulate.Interval `json:"gpu_busy"`
	Resizes    simulate.Interval `json:"resizes"`
	Unfinished int               `json:"unfinished"` // over all seeds

	// What the first row has over this one, by pairs of seeds.
	MoreJobs simulate.Interval `json:"first_over_this_completed"`
	Faster   simulate.Interval `json:"this_over_first_jct"`

	seeds []elasticSeed
}

// elasticSeed is what came of one trace.
type elasticSeed struct{ inWindow, jct, dropped, busy, resizes float64 }

// elasticRows are the systems compared. The first is what is compared with the others.
func elasticRows(mode string) []elasticRow {
	rows := []elasticRow{
		{Name: "goodput", System: "elastic"},
		{Name: "throughput", System: "elastic", Settings: map[string]string{"objective": "throughput"}},
	}
	for _, rule := range []string{"min", "max", "random", "best"} {
		rows = append(rows, elasticRow{Name: "fixed " + rule, System: "elastic",
			Settings: map[string]string{"batch": rule}, Fixed: true})
	}
	rows = append(rows, elasticRow{Name: "per GPU", System: "elastic", Settings: map[string]string{"batch": "per-gpu"}})
	for i := range rows {
		rows[i].Settings = plus(rows[i].Settings, map[string]string{"mode": mode})
	}
	if mode == "drop" {
		return rows // the others know no dropping
	}
	for _, system := range []string{"elastic-fifo", "afs-l", "optimus", "pollux"} {
		rows = append(rows, elasticRow{Name: system, System: system})
	}
	return rows
}

// elasticPart is one cluster under one pattern of arrivals in one mode.
type elasticPart struct {
	Epochs   string       `json:"epochs"` // where epochs by batch size come from
	Cluster  string       `json:"cluster"`
	Arrivals string       `json:"arrivals"`
	Mode     string       `json:"mode"`
	Jobs     float64      `json:"jobs"`
	Rows     []elasticRow `json:"rows"`
}

// elasticSize says how large the experiment is.
type elasticSize struct {
	seeds    int
	clusters []string
	window   time.Duration
}

// plus returns settings with those of more added that it does not have.
func plus(settings, more map[string]string) map[string]string {
	all := maps.Clone(more)
	maps.Copy(all, settings)
	return all
}

// elasticExperiment compares elastic scaling that chooses batch sizes with the same on fixed ones and with other
// systems: jobs are free to run at any batch size in a range, but what that costs in epochs is in their true length,
// whatever the objective assumes.
func elasticExperiment(ctx context.Context, w io.Writer, o Options) error {
	size := elasticSize{seeds: 5, clusters: []string{"10x4", "50x8"}, window: 8 * time.Hour}
	if o.Seeds > 0 {
		size.seeds = o.Seeds
	}
	return size.report(ctx, w, o)
}

func (size elasticSize) report(ctx context.Context, w io.Writer, o Options) error {
	parts, err := size.parts(ctx, o)
	if err != nil {
		return fmt.Errorf("experiment: elastic: %w", err)
	}
	return o.show(w, struct {
		Schema     string        `json:"schema"`
		Experiment string        `json:"experiment"`
		Published  any           `json:"published"`
		Ours       any           `json:"ours"`
		Parts      []elasticPart `json:"parts"`
	}{"trainyard.experiment/v1", "elastic", elasticPublished, elasticBest(parts), parts},
		func(w io.Writer) error { return printElastic(w, size, parts) })
}

// elasticPublished is all that the abstract says, both "up to", against scaling the GPUs at a fixed batch size.
var elasticPublished = map[string]float64{"jobs_completed": 2, "avg_jct": 10}

func (size elasticSize) parts(ctx context.Context, o Options) ([]elasticPart, error) {
	apps, source, err := elasticApps(o.Data)
	if err != nil {
		return nil, err
	}
	var parts []elasticPart
	for _, c := range size.clusters {
		for _, arrivals := range elasticArrivals {
			for _, mode := range []string{"queue", "drop"} {
				p := elasticPart{Epochs: source, Cluster: c, Arrivals: arrivals.name, Mode: mode,
					Rows: elasticRows(mode)}
				if err := size.run(ctx, &p, arrivals, apps); err != nil {
					return nil, err
				}
				parts = append(parts, p)
			}
		}
	}
	return parts, nil
}

// run plays all systems on the same jobs, and sums up over seeds.
func (size elasticSize) run(ctx context.Context, p *elasticPart, arrivals elasticArrival,
	apps map[string]speedup.App) error {
	c, err := cluster.Load(p.Cluster)
	if err != nil {
		return err
	}
	for seed := range size.seeds {
		t := elasticTrace(uint64(seed)+1, c.GPUs(), size.window, arrivals)
		p.Jobs += float64(len(t.Jobs)) / float64(size.seeds)
		for i := range p.Rows {
			if err := p.Rows[i].add(ctx, size.window, c, t, apps); err != nil {
				return fmt.Errorf("%s: %w", p.Rows[i].Name, err)
			}
		}
	}
	for i := range p.Rows {
		p.Rows[i].sumUp(p.Rows[0].seeds)
	}
	return nil
}

// add simulates one trace.
func (r *elasticRow) add(ctx context.Context, window time.Duration, c *cluster.Cluster, t *trace.Trace,
	apps map[string]speedup.App) error {
	settings := map[string]string{"curves": "oracle", "restart_overhead": fmt.Sprint(restart.Seconds())}
	maps.Copy(settings, r.Settings)
	out, err := (&simulate.Request{Trace: t, Cluster: c, System: r.System, Settings: settings, Apps: apps}).Run(ctx)
	if err != nil {
		return err
	}
	s := elasticSeed{jct: out.AvgJCT, dropped: float64(out.Rejected) / float64(max(out.Jobs, 1)), busy: out.GPUBusy,
		resizes: float64(out.Resizes)}
	for i := range out.PerJob {
		if j := &out.PerJob[i]; j.Outcome == sched.Finished && j.Finish <= sched.Time(window) {
			s.inWindow++
		}
	}
	r.seeds = append(r.seeds, s)
	r.Unfinished += out.Unfinished
	return ctx.Err()
}

// sumUp fills in the figures, first being the seeds of the first row.
func (r *elasticRow) sumUp(first []elasticSeed) {
	over := func(f func(s, first *elasticSeed) float64) simulate.Interval {
		values := make([]float64, len(r.seeds))
		for i := range values {
			values[i] = f(&r.seeds[i], &first[i])
		}
		return simulate.Bootstrap(values)
	}
	r.InWindow = over(func(s, _ *elasticSeed) float64 { return s.inWindow })
	r.AvgJCT = over(func(s, _ *elasticSeed) float64 { return s.jct })
	r.DropRatio = over(func(s, _ *elasticSeed) float64 { return s.dropped })
	r.Busy = over(func(s, _ *elasticSeed) float64 { return s.busy })
	r.Resizes = over(func(s, _ *elasticSeed) float64 { return s.resizes })
	r.MoreJobs = over(func(s, first *elasticSeed) float64 { return first.inWindow / max(s.inWindow, 1) })
	r.Faster = over(func(s, first *elasticSeed) float64 { return s.jct / max(first.jct, 1) })
}

// elasticRatios are what the first row has over the baselines of fixed batch size.
type elasticRatios struct {
	Jobs simulate.Interval `json:"jobs_completed"` // times as many
	JCT  simulate.Interval `json:"avg_jct"`        // times as fast; over queues alone, for what is dropped takes no time
}

// elasticBest returns the largest mean ratios of any part over any baseline of fixed batch size: what "up to" means.
func elasticBest(parts []elasticPart) (best elasticRatios) {
	for i := range parts {
		for _, r := range parts[i].Rows[1:] {
			if r.Fixed && r.MoreJobs.Mean > best.Jobs.Mean {
				best.Jobs = r.MoreJobs
			}
			if r.Fixed && parts[i].Mode == "queue" && r.Unfinished == 0 && r.Faster.Mean > best.JCT.Mean {
				best.JCT = r.Faster
			}
		}
	}
	return best
}
