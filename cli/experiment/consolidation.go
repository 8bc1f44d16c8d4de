package experiment

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/trace"
)

// The rows of the experiment. The first placement of a system is not special; ratios are over pivot.
var (
	consolidationSystems    = []string{"tiresias-las", "fifo-skip"}
	consolidationPlacements = []string{"consolidate", pivot, "packed", "count"}
)

const pivot = "skew"

// restart is the default cost of a restart, see RuntimeKeys.
const restart = 62 * time.Second

// The parts of the experiment. A Philly run costs seconds, so it has few seeds, which draw models only.
const (
	testbedCluster, testbedSeeds = "15x4", 10
	phillyCluster, phillySeeds   = "170x8", 5
	phillyFile                   = "traces/philly/philly_gpu_jobs.csv.gz"
)

// studyModels are the ten models of the testbed.
var studyModels = []string{"vgg19", "vgg16", "vgg11", "alexnet", "resnet152", "resnet101", "resnet50", "inception4",
	"inception3", "googlenet"}

// study is one trace family on one cluster under all systems and placements.
type study struct {
	Trace   string     `json:"trace"`
	Cluster string     `json:"cluster"`
	Seeds   int        `json:"seeds"`
	Load    float64    `json:"offered_load"` // mean over seeds
	Restart float64    `json:"restart_s"`
	Rows    []studyRow `json:"rows"`
}

// studyRow is one system and placement. Figures are means over seeds.
type studyRow struct {
	System      string            `json:"system"`
	Placement   string            `json:"placement"`
	AvgJCT      float64           `json:"avg_jct_s"`
	AvgQueue    float64           `json:"avg_queue_s"`
	Free        float64           `json:"free_share"`
	Stranded    float64           `json:"stranded_share"`
	Slowdown    float64           `json:"slowdown"`
	Preemptions float64           `json:"preemptions"`
	Unfinished  int               `json:"unfinished"`
	Ratio       simulate.Interval `json:"jct_over_skew"`

	jcts []float64 // by seed
}

// consolidation is the over-consolidation of Gu et al., NSDI'19 (Tiresias), whose slides name it as a challenge: a gang
// that waits for GPUs on few nodes queues longer than one that takes what is free, and leaves GPUs free that others
// could have used. Against that stands the time lost by gangs that are spread, of models with one dominating tensor
// above all. It compares placement always consolidated, consolidated by model profile, on one node if that costs no
// waiting, and anywhere. The slow-down of a spread gang is our own model, see RuntimeKeys.
func consolidation(ctx context.Context, w io.Writer, o Options) error {
	testbed, err := testbedStudy(ctx, o)
	if err != nil {
		return fmt.Errorf("experiment: consolidation: %w", err)
	}
	studies := []*study{testbed}
	if o.Data != "" {
		philly, err := phillyStudy(ctx, o)
		if err != nil {
			return fmt.Errorf("experiment: consolidation: %w", err)
		}
		studies = append(studies, philly)
	}
	return o.show(w, struct {
		Schema     string   `json:"schema"`
		Experiment string   `json:"experiment"`
		Studies    []*study `json:"studies"`
	}{"trainyard.experiment/v1", "consolidation", studies}, func(w io.Writer) error { return printStudies(w, studies) })
}

func testbedStudy(ctx context.Context, o Options) (*study, error) {
	s := &study{Trace: "480 generated jobs (trace.Testbed), ten models in turn", Cluster: testbedCluster,
		Seeds: testbedSeeds}
	if o.Seeds > 0 {
		s.Seeds = o.Seeds
	}
	return s, s.run(ctx, trace.Testbed)
}

// phillyStudy draws a model for each job of the Philly trace, which has none.
func phillyStudy(ctx context.Context, o Options) (*study, error) {
	t, err := trace.Read(filepath.Join(o.Data, phillyFile), trace.Options{})
	if err != nil {
		return nil, err
	}
	s := &study{Trace: fmt.Sprintf("%d jobs of Philly, models drawn by seed: it has none", len(t.Jobs)),
		Cluster: phillyCluster,
		Seeds:   phillySeeds}
	if o.Seeds > 0 {
		s.Seeds = o.Seeds
	}
	return s, s.run(ctx, func(seed uint64) *trace.Trace { return withModels(t, seed) })
}

// withModels returns a copy of t in which each job has one of the ten models, each as likely.
func withModels(t *trace.Trace, seed uint64) *trace.Trace {
	c := *t
	c.Jobs = slices.Clone(t.Jobs)
	r := rand.New(rand.NewPCG(seed, 4))
	for i := range c.Jobs {
		c.Jobs[i].Spec.Model = studyModels[r.IntN(len(studyModels))]
	}
	return &c
}

// run fills in the rows: every row on the same traces.
func (s *study) run(ctx context.Context, traceOf func(seed uint64) *trace.Trace) error {
	c, err := cluster.Load(s.Cluster)
	if err != nil {
		return err
	}
	s.Restart = restart.Seconds()
	for _, sys := range consolidationSystems {
		for _, p := range consolidationPlacements {
			s.Rows = append(s.Rows, studyRow{System: sys, Placement: p})
		}
	}
	for seed := range s.Seeds {
		t := traceOf(uint64(seed) + 1)
		s.Load += trace.Describe(t).OfferedLoad(c.GPUs()) / float64(s.Seeds)
		for i := range s.Rows {
			if err := s.Rows[i].add(ctx, t, c, s.Seeds); err != nil {
				return err
			}
		}
	}
	for i := range s.Rows {
		for k := range s.Rows {
			if s.Rows[k].Placement == pivot && s.Rows[k].System == s.Rows[i].System {
				s.Rows[i].Ratio = simulate.RatioOf(s.Rows[i].jcts, s.Rows[k].jcts)
			}
		}
	}
	return nil
}

// add simulates one trace, one of seeds, and adds its share to the means.
func (r *studyRow) add(ctx context.Context, t *trace.Trace, c *cluster.Cluster, seeds int) error {
	sink := &strands{gpus: c.GPUs()}
	sim := simulate.Request{Trace: t, Cluster: c, System: r.System, Sinks: []eventlog.Sink{sink},
		Settings: map[string]string{"placement": r.Placement, "restart_overhead": fmt.Sprint(restart.Seconds())}}
	out, err := sim.Run(ctx)
	if err != nil {
		return err
	}
	free, stranded, slowdown := sink.shares()
	n := float64(seeds)
	r.AvgJCT += out.AvgJCT / n
	r.AvgQueue += out.AvgQueue / n
	r.Free += free / n
	r.Stranded += stranded / n
	r.Slowdown += slowdown / n
	r.Preemptions += float64(out.Preemptions) / n
	r.Unfinished += out.Unfinished
	r.jcts = append(r.jcts, out.AvgJCT)
	return nil
}

const studyHead = `Over-consolidation: what consolidating gangs saves, and what it costs.
Published: nothing with figures. The slides of Tiresias (NSDI'19) name it as a
challenge; its released simulator has no cost of placement. The slow-down of a
spread gang, 1 + the largest tensor's share of its model, is our own model.
`

const studyFoot = `
free      share of the cluster that stood free while some job waited
stranded  the same, while a job waited that asked for no more than was free
slow      GPU time spent per GPU time of work, restarts left out
JCT/skew  mean over seeds of the ratio to placement skew on the same trace, with
          its 95 % bootstrap interval
consolidate: as few nodes as an empty cluster would need, or wait. skew: so for
skewed models, others packed. packed: one node if one has room, else anywhere.
count: the lowest free GPUs, wherever they are.
`

func printStudies(w io.Writer, studies []*study) error {
	var b strings.Builder
	b.WriteString(studyHead)
	for _, s := range studies {
		fmt.Fprintf(&b, "\nTrace    %s\nCluster  %s, offered load %.2f\nRestart  %g s at every start of a job but "+
			"its first\nSeeds    1 to %d\n",
			s.Trace, s.Cluster, s.Load, s.Restart, s.Seeds)
		for i := range s.Rows {
			r := &s.Rows[i]
			if i == 0 || s.Rows[i-1].System != r.System {
				fmt.Fprintf(&b, "\n%-12s %7s %7s %6s %8s %5s %7s %s\n", r.System, "JCT s", "queue s", "free",
					"stranded", "slow", "preempt", "JCT/skew")
			}
			fmt.Fprintf(&b, "%-12s %7.0f %7.0f %5.1f%% %7.1f%% %5.3f %7.0f %s\n", r.Placement, r.AvgJCT, r.AvgQueue,
				100*r.Free, 100*r.Stranded, r.Slowdown, r.Preemptions, r.Ratio)
			if r.Unfinished > 0 {
				fmt.Fprintf(&b, "%-12s %d jobs did not finish\n", "", r.Unfinished)
			}
		}
	}
	b.WriteString(studyFoot)
	_, err := io.WriteString(w, b.String())
	return err
}
