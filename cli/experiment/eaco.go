package experiment

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/model/power"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/trace"
)

// eacoPart is one stream of jobs on one cluster, under all systems.
type eacoPart struct {
	Name    string    `json:"name"`
	Trace   string    `json:"trace"`
	Nodes   int       `json:"nodes"`
	Load    float64   `json:"offered_load"`
	History string    `json:"history"`
	Seeds   int       `json:"seeds"`
	Rows    []eacoRow `json:"rows"`
}

// eacoPublished are the published ratios of EaCO, from the paper's text: energy and active nodes over each baseline.
var eacoPublished = map[string]float64{
	"28_nodes_energy_over_fifo": 0.61, "28_nodes_energy_over_fifo_packed": 0.755, "28_nodes_energy_over_gandiva": 0.917,
	"64_nodes_energy_over_each": 0.61,
	"28_nodes_active_over_fifo": 0.70, "28_nodes_active_over_fifo_packed": 0.71, "28_nodes_active_over_gandiva": 0.96,
	"64_nodes_active_over_each": 0.53,
	"run_over_fifo_at_most":     1.0323, "28_nodes_jtt_over_fifo": 0.03,
}

// eacoExperiment compares EaCO with fifo, fifo-packed and gandiva: jobs of the four measured models, 8 GPUs each, on 28
// nodes (scarce) and 64 (ample), each system with and without the rule that idle nodes sleep, so that what sleep saves
// and what sharing saves can be distinguished.
func eacoExperiment(ctx context.Context, w io.Writer, o Options) error {
	parts, err := eacoParts(ctx, o)
	if err != nil {
		return fmt.Errorf("experiment: eaco: %w", err)
	}
	return o.show(w, struct {
		Schema     string      `json:"schema"`
		Experiment string      `json:"experiment"`
		Published  any         `json:"published"`
		Parts      []*eacoPart `json:"parts"`
	}{"trainyard.experiment/v1", "eaco", eacoPublished, parts}, func(w io.Writer) error { return printEaCO(w, parts) })
}

func eacoParts(ctx context.Context, o Options) ([]*eacoPart, error) {
	seeds, jobs := 5, 600
	if o.Seeds > 0 {
		seeds = o.Seeds
	}
	tables, capped := standInTables(), standInCaps()
	draws := []eacoDraw{{"generated, arrivals of a Poisson process", poissonArrivals(jobs)}}
	if o.Data != "" {
		var err error
		if tables, err = readSharingFile(filepath.Join(o.Data, "colocation/eaco/eaco_tables.csv")); err != nil {
			return nil, err
		}
		if capped, err = readCapFile(filepath.Join(o.Data, "energy/zeus/summary_power_v100.csv")); err != nil {
			return nil, err
		}
		for _, d := range []struct{ name, path string }{{"Philly", "traces/philly/philly_gpu_jobs.csv.gz"},
			{"Venus", "traces/venus/venus_gpu_jobs.csv.gz"}} {
			arrivals, err := recordedArrivals(filepath.Join(o.Data, d.path), jobs, 8)
			if err != nil {
				return nil, err
			}
			draws = append(draws, eacoDraw{d.name + ", arrivals of its jobs of 8 GPUs", arrivals})
		}
	}
	var parts []*eacoPart
	for _, d := range draws {
		for _, nodes := range []int{28, 64} {
			p := &eacoPart{Name: fmt.Sprintf("%s, %d nodes", d.name, nodes), Trace: d.name, Nodes: nodes, Seeds: seeds,
				History: "learned", Rows: eacoRows(capped)}
			if err := p.run(ctx, tables, d.arrivals); err != nil {
				return nil, err
			}
			parts = append(parts, p)
		}
	}
	return parts, nil
}

// eacoDraw is where arrivals come from.
type eacoDraw struct {
	name     string
	arrivals func(seed uint64) []sched.Time
}

// eacoLoad is the load offered to 28 nodes, whole nodes asked for: more than there are, so that jobs queue; 64 nodes
// have room for all.
const eacoLoad = 1.3

// poissonArrivals draws arrivals one by one.
func poissonArrivals(jobs int) func(seed uint64) []sched.Time {
	return func(seed uint64) []sched.Time {
		r, at := rand.New(rand.NewPCG(seed, 21)), 0.0
		list := make([]sched.Time, jobs)
		for i := range list {
			list[i] = sched.Time(sched.Seconds(at))
			at += r.ExpFloat64()
		}
		return list
	}
}

// recordedArrivals returns a run of as many arrivals of jobs of so many GPUs, 0 = any number, from a place drawn by
// seed.
func recordedArrivals(path string, jobs int, gpus int32) (func(seed uint64) []sched.Time, error) {
	t, err := trace.Read(path, trace.Options{})
	if err != nil {
		return nil, err
	}
	var all []sched.Time
	for i := range t.Jobs {
		if gpus == 0 || t.Jobs[i].Spec.GPUs.Want == gpus {
			all = append(all, t.Jobs[i].Spec.Submit)
		}
	}
	if len(all) < jobs {
		return nil, fmt.Errorf("%s: %d jobs of %d GPUs (0 = any), want at least %d", path, len(all), gpus, jobs)
	}
	return func(seed uint64) []sched.Time {
		from := rand.New(rand.NewPCG(seed, 22)).IntN(len(all) - jobs + 1)
		return all[from : from+jobs]
	}, nil
}

// eacoHours are the hours that the four models train alone. Source: table 1 of the paper.
var eacoHours = []struct {
	model string
	hours float64
}{{"AlexNet", 34.76}, {"ResNet-18", 35.13}, {"ResNet-50", 36.01}, {"VGG-16", 36.13}}

// eacoTrace gives each arrival one of the four models, and scales time so that 28 nodes are offered eacoLoad.
func eacoTrace(seed uint64, arrivals []sched.Time) *trace.Trace {
	r := rand.New(rand.NewPCG(seed, 23))
	t := &trace.Trace{Format: "generated"}
	work := 0.0
	for i := range arrivals {
		m := eacoHours[r.IntN(len(eacoHours))]
		work += m.hours * 3600
		t.Jobs = append(t.Jobs, trace.Job{Duration: sched.Seconds(m.hours * 3600),
			Spec: sched.JobSpec{Name: fmt.Sprint(i), Model: m.model, GPUs: sched.Rigid(8),
				Epochs: simulate.TableEpochs}})
	}
	span := (arrivals[len(arrivals)-1] - arrivals[0]).Seconds()
	scale := work / (28 * eacoLoad) / max(span, 1)
	for i := range arrivals {
		t.Jobs[i].Spec.Submit = sched.Time(sched.Seconds((arrivals[i] - arrivals[0]).Seconds() * scale))
	}
	return t
}

// eacoCluster returns nodes of 8 GPUs that draw what the paper's tables say.
func eacoCluster(nodes int) (*cluster.Cluster, error) {
	c, err := cluster.Load(fmt.Sprintf("%dx8:v100", nodes))
	if err != nil {
		return nil, err
	}
	for i := range c.Nodes {
		c.Nodes[i].IdleW, c.Nodes[i].Curve = power.FittedIdleW,
			sched.PowerCurve{Scale: power.FittedScaleW, Exponent: power.FittedExponent}
	}
	return c, nil
}

// standInCaps stand for Zeus's curves where they are not at hand: what its best cap does to ResNet-50 on a V100, energy
// -23 %, time +18 %.
func standInCaps() simulate.CapCurves {
	return simulate.CapCurves{"resnet50": {{Limit: 150, Power: 250 * (1 - .23) / 1.18, Speed: 1 / 1.18},
		{Limit: 250, Power: 250, Speed: 1}}}
}

func readCapFile(path string) (simulate.CapCurves, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return simulate.ReadCaps(f, path)
}

func readSharingFile(path string) (*simulate.Sharing, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return simulate.ReadSharing(f, path)
}

// standInTables stand for the paper's where they are not at hand: use and memory of the four models, table 1; sets slow
// each other down by the generic factors.
func standInTables() *simulate.Sharing {
	return &simulate.Sharing{Name: "generic factors",
		Models: map[string]simulate.SoloUse{"AlexNet": {Use: .0472, Memory: .0421},
			"ResNet-18": {Use: .1117, Memory: .1463}, "ResNet-50": {Use: .3661, Memory: .4392},
			"VGG-16": {Use: .4801, Memory: .5129}},
		Sets: genericSets()}
}
