package experiment

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// elasticRow is a system of the experiment, and how it does in one part. Figures are means over seeds.
type elasticRow struct {
	Name     string            `json:"name"`
	System   string            `json:"system"`
	Settings map[string]string `json:"settings"`
	Fixed    bool              `json:"fixed_batch"` // the baseline of the abstract: elastic in GPUs alone

	InWindow   float64 `json:"completed_in_window"`
	AvgJCT     float64 `json:"avg_jct_s"` // of all that finished
	DropRatio  float64 `json:"drop_ratio"`
	Busy       float64 `json:"gpu_busy"`
	Resizes    float64 `json:"resizes"`
	Unfinished int     `json:"unfinished"`
}

// elasticRows are the systems compared. The first is what is compared with the others.
func elasticRows(mode string) []elasticRow {
	rows := []elasticRow{
		{Name: "goodput, free batch", System: "elastic"},
		{Name: "throughput, free batch", System: "elastic", Settings: map[string]string{"objective": "throughput"}},
	}
	for _, rule := range []string{"min", "max", "random", "best", "per-gpu"} {
		rows = append(rows, elasticRow{Name: "batch " + rule, System: "elastic", Settings: map[string]string{"batch": rule}, Fixed: rule != "per-gpu"})
	}
	for i := range rows {
		rows[i].Settings = withDefaults(rows[i].Settings, map[string]string{"mode": mode})
	}
	if mode == "drop" {
		return rows
	}
	for _, system := range []string{"elastic-fifo", "afs-l", "optimus", "pollux"} {
		rows = append(rows, elasticRow{Name: system + ", free batch", System: system})
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

// elasticExperiment compares elastic scaling that chooses batch sizes with the same on fixed ones and with other systems:
// jobs are free to run at any batch size in a range, but what that costs in epochs is in their true length, whatever the
// objective assumes.
func elasticExperiment(ctx context.Context, w io.Writer, o Options) error {
	size := elasticSize{seeds: 1, clusters: []string{"10x4", "50x8"}, window: 8 * time.Hour}
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
	if !o.JSON {
		return printElastic(w, size, parts)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Schema     string        `json:"schema"`
		Experiment string        `json:"experiment"`
		Published  any           `json:"published"`
		Ours       any           `json:"ours"`
		Parts      []elasticPart `json:"parts"`
	}{"trainyard.experiment/v1", "elastic", elasticPublished, elasticBest(parts), parts})
}

// elasticPublished is all that the abstract tells, both "up to", against scaling the GPUs at a fixed batch size.
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
				p := elasticPart{Epochs: source, Cluster: c, Arrivals: arrivals.name, Mode: mode, Rows: elasticRows(mode)}
				if err := size.run(ctx, &p, arrivals, apps); err != nil {
					return nil, err
				}
				parts = append(parts, p)
			}
		}
	}
	return parts, nil
}

// run plays all systems on the same jobs.
func (size elasticSize) run(ctx context.Context, p *elasticPart, arrivals elasticArrival, apps map[string]speedup.App) error {
	c, err := cluster.Load(p.Cluster)
	if err != nil {
		return err
	}
	for seed := range size.seeds {
		t := elasticTrace(uint64(seed)+1, c.GPUs(), size.window, arrivals)
		p.Jobs += float64(len(t.Jobs)) / float64(size.seeds)
		for i := range p.Rows {
			if err := p.Rows[i].add(ctx, size, c, t, apps); err != nil {
				return fmt.Errorf("%s: %w", p.Rows[i].Name, err)
			}
		}
	}
	return nil
}

// add simulates one trace.
func (r *elasticRow) add(ctx context.Context, size elasticSize, c *cluster.Cluster, t *trace.Trace, apps map[string]speedup.App) error {
	settings := map[string]string{"curves": "oracle", "restart_overhead": fmt.Sprint(restart.Seconds())}
	maps.Copy(settings, r.Settings)
	out, err := (&Simulation{Trace: t, Cluster: c, System: r.System, Settings: settings, Apps: apps}).Run(ctx)
	if err != nil {
		return err
	}
	n := float64(size.seeds)
	for i := range out.PerJob {
		if j := &out.PerJob[i]; j.Outcome == sched.Finished && j.Finish <= sched.Time(size.window) {
			r.InWindow += 1 / n
		}
	}
	r.AvgJCT += out.AvgJCT / n
	r.DropRatio += float64(out.Rejected) / float64(max(out.Jobs, 1)) / n
	r.Busy += out.GPUBusy / n
	r.Resizes += float64(out.Resizes) / n
	r.Unfinished += out.Unfinished
	return ctx.Err()
}

// elasticRatios are what the first row has over the baselines of fixed batch size.
type elasticRatios struct {
	Jobs float64 `json:"jobs_completed"` // times as many
	JCT  float64 `json:"avg_jct"`        // times as fast; over queues alone, for what is dropped takes no time
}

// elasticBest returns the largest ratios of any part over any baseline of fixed batch size: what "up to" means.
func elasticBest(parts []elasticPart) (best elasticRatios) {
	for i := range parts {
		ours := &parts[i].Rows[0]
		for _, r := range parts[i].Rows[1:] {
			if !r.Fixed {
				continue
			}
			best.Jobs = max(best.Jobs, ours.InWindow/max(r.InWindow, 1))
			if parts[i].Mode == "queue" && ours.AvgJCT > 0 && r.Unfinished == 0 {
				best.JCT = max(best.JCT, r.AvgJCT/ours.AvgJCT)
			}
		}
	}
	return best
}
