package experiment

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/trace"
)

// The world of the experiment.
const (
	unsavedJobs = 600
	unsavedLoad = 0.9
	unsavedGPUs = 32
)

// unsavedSystems are the five, each in the form that runs real jobs.
var unsavedSystems = []string{"tiresias-las", "pal", "elastic", "eaco", "boa-exact"}

// unsavedShares are the parts of the jobs that never save.
var unsavedShares = []float64{0, .25, .5, 1}

// unsavedRow is one system where a part of the jobs never saves. Figures are means over seeds.
type unsavedRow struct {
	System  string            `json:"system"`
	Share   float64           `json:"never_save"`
	Unsaved string            `json:"unsaved"`
	JCT     simulate.Interval `json:"avg_jct_h"`
	Lost    simulate.Interval `json:"lost_gpu_hours"`
	Wait    simulate.Interval `json:"max_wait_h"`
	Left    int               `json:"unfinished"`
}

// unsavedExperiment compares the five systems where jobs never save: stopped like others, and left.
func unsavedExperiment(ctx context.Context, w io.Writer, o Options) error {
	seeds := 5
	if o.Seeds > 0 {
		seeds = o.Seeds
	}
	var rows []unsavedRow
	for _, name := range unsavedSystems {
		for _, share := range unsavedShares {
			for _, rule := range []sched.Unsaved{sched.StopUnsaved, sched.LeaveUnsaved} {
				r, err := unsavedRun(ctx, name, share, rule, seeds)
				if err != nil {
					return fmt.Errorf("experiment: unsaved: %s, %v never save, %v: %w", name, share, rule, err)
				}
				rows = append(rows, r)
			}
		}
	}
	return o.show(w, struct {
		Schema     string       `json:"schema"`
		Experiment string       `json:"experiment"`
		Seeds      int          `json:"seeds"`
		Rows       []unsavedRow `json:"rows"`
	}{"trainyard.experiment/v1", "unsaved", seeds, rows},
		func(w io.Writer) error { return printUnsaved(w, rows, seeds) })
}

// unsavedRun simulates one system with seeds 1 to seeds.
func unsavedRun(ctx context.Context, name string, share float64, rule sched.Unsaved, seeds int) (unsavedRow, error) {
	r := unsavedRow{System: name, Share: share, Unsaved: rule.String()}
	var jct, lost, wait []float64
	for seed := uint64(1); seed <= uint64(seeds); seed++ {
		out, err := unsavedOne(ctx, name, share, rule, seed)
		if err != nil {
			return r, err
		}
		jct, lost = append(jct, out.AvgJCT/3600), append(lost, out.LostGPUHours)
		wait = append(wait, out.MaxWait/3600)
		r.Left += out.Unfinished
	}
	r.JCT, r.Lost, r.Wait = simulate.Bootstrap(jct), simulate.Bootstrap(lost), simulate.Bootstrap(wait)
	return r, nil
}

// unsavedOne simulates one seed under the keys that real jobs have, but for the rule.
func unsavedOne(ctx context.Context, name string, share float64, rule sched.Unsaved, seed uint64) (*simulate.Outcome,
	error) {
	settings, err := system.LiveDefaults(name, map[string]string{"restart_overhead": fmt.Sprint(restart.Seconds()),
		"restart_at_first": "yes", "unsaved": rule.String()})
	if err != nil {
		return nil, err
	}
	delete(settings, "stragglers") // no GPU is slow here
	c, err := cluster.Load("4x8")
	if err != nil {
		return nil, err
	}
	req := simulate.Request{Trace: drawUnsaved(seed, share), Cluster: c, System: name, Settings: settings}
	switch name {
	case "boa-exact":
		spec := sched.PoolSpec{Name: "rented", GPUs: 8, Max: 8, Boot: 2 * time.Minute}
		req.Cluster = &cluster.Cluster{Name: "rented", Types: []string{"gpu"}, Racks: []string{""},
			Pools: []cluster.Pool{{PoolSpec: spec, Node: sched.NodeSpec{GPUs: 8}}}}
		req.Budget = unsavedGPUs
	case "pal":
		r := rand.New(rand.NewPCG(seed, 13))
		req.Scores = scoresBy("generated", unsavedGPUs, func(int) float64 { return math.Exp(.025 * r.NormFloat64()) })
	}
	return req.Run(ctx)
}

// drawUnsaved draws jobs of Philly's shape, half of which may be resized, and of which a part never saves; the others
// say that they do.
func drawUnsaved(seed uint64, share float64) *trace.Trace {
	t := trace.Generate(trace.Generator{Seed: seed, Jobs: unsavedJobs, Load: unsavedLoad, GPUs: unsavedGPUs,
		Models: []string{"resnet50", "bert", "vgg16"}, Users: 8,
		Mix: []trace.Width{{GPUs: 1, Share: .6}, {GPUs: 2, Share: .1}, {GPUs: 4, Share: .15}, {GPUs: 8, Share: .15}},
		Durations: trace.Lognormal{Parts: []trace.Part{{Weight: .7, Mu: 6.5, Sigma: 1.2},
			{Weight: .3, Mu: 9.5, Sigma: 1}}, Max: 86400}})
	r := rand.New(rand.NewPCG(seed, 22))
	for i := range t.Jobs {
		j := &t.Jobs[i]
		if j.Saves = trace.SavesWork; r.Float64() < share {
			j.Saves = trace.LosesWork
		}
		j.Spec.Saves = j.Saves == trace.SavesWork
		if w := j.Spec.GPUs.Want; r.IntN(2) == 0 {
			j.Spec.GPUs = sched.Range{Min: max(w/2, 1), Want: w, Max: min(2*w, 8)}
		}
	}
	return t
}

const unsavedFoot = `
JCT and the longest wait are hours, lost are GPU-hours that came to nothing
because a job was stopped for others; all are means over seeds with 95 %
bootstrap intervals. stop = jobs that do not save are stopped like others,
leave = they are not stopped for others, the default for real jobs.
`

func printUnsaved(w io.Writer, rows []unsavedRow, seeds int) error {
	var b strings.Builder
	b.WriteString("Jobs that never save, stopped for others or left\n\n")
	fmt.Fprintf(&b, "%d jobs of Philly's shape on %d GPUs, offered load %v, a restart %g s; seeds 1 to %d\n\n",
		unsavedJobs, unsavedGPUs, unsavedLoad, restart.Seconds(), seeds)
	fmt.Fprintf(&b, "%-13s %5s %-6s %-22s %-24s %s\n", "system", "never", "rule", "avg JCT", "lost", "longest wait")
	for i := range rows {
		r := &rows[i]
		fmt.Fprintf(&b, "%-13s %4.0f%% %-6s %-22s %-24s %s\n", r.System, 100*r.Share, r.Unsaved, short(r.JCT),
			short(r.Lost), short(r.Wait))
		if r.Left > 0 {
			fmt.Fprintf(&b, "%-13s %d jobs did not finish\n", "", r.Left)
		}
	}
	b.WriteString(unsavedFoot)
	_, err := io.WriteString(w, b.String())
	return err
}

// short prints an estimate with two digits.
func short(e simulate.Interval) string {
	if math.IsNaN(e.Low) {
		return fmt.Sprintf("%.2f", e.Mean)
	}
	return fmt.Sprintf("%.2f [%.2f, %.2f]", e.Mean, e.Low, e.High)
}
