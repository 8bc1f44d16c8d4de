package experiment

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/trainyard/trainyard/model/skew"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/trace"
)

// palFiles are the measurements that stand for the classes. Source: profiles.json of PAL's artifact.
var palFiles = [...]string{"resnet", "bert", "bert", "pagerank"}

// palDataParts are the parts on the published traces and measurements.
func palDataParts(ctx context.Context, o Options) ([]*palPart, error) {
	dir := filepath.Join(o.Data, "pal")
	var traces []*trace.Trace
	for i := 1; i <= 8; i++ {
		t, err := trace.Read(filepath.Join(dir, fmt.Sprintf("traces/workload-%d.csv", i)), trace.Options{})
		if err != nil {
			return nil, err
		}
		traces = append(traces, t)
	}
	drawn, err := readScoresFile(filepath.Join(dir, "golden/artifact-gpus-64.csv"))
	if err != nil {
		return nil, err
	}
	medians, err := palMedians(filepath.Join(dir, "variability"))
	if err != nil {
		return nil, err
	}
	base := palPart{Trace: "8 Sia-Philly workloads of 160 jobs", Cluster: "16x4", Round: 360}
	fidelity, ours, lasting := base, base, base
	fidelity.Name, fidelity.Preset, ours.Name, lasting.Name = "as published", "blox-pal", "the same in our engine",
		"per-GPU medians"
	ours.Spread, lasting.Spread = skew.Penalty, skew.Penalty
	for _, p := range []*palPart{&fidelity, &ours} {
		p.Scores, p.Seeds, p.Interval = "single runs drawn by the artifact", 1, "least and largest over workloads"
		err = p.run(ctx, func(uint64) palDraw { return palDraw{traces, drawn} })
		if err != nil {
			return nil, err
		}
	}
	lasting.Scores, lasting.Seeds, lasting.Interval = "medians of Longhorn GPUs, drawn by seed", 5,
		"95 % bootstrap over seeds"
	if o.Seeds > 0 {
		lasting.Seeds = o.Seeds
	}
	free, level := lasting, lasting
	free.Name, free.Preset, free.Spread = "per-GPU medians in the simulator released", "blox-pal", 0
	// what the two differ by, see docs/papers/pal.md
	level.Name, level.Spread = "per-GPU medians, no penalty by skew", 0
	for _, p := range []*palPart{&free, &lasting, &level} {
		err = p.run(ctx, func(seed uint64) palDraw { return palDraw{traces, drawMedians(seed, 64, medians)} })
		if err != nil {
			return nil, err
		}
	}
	return []*palPart{&fidelity, &ours, &free, &lasting, &level}, nil
}

func readScoresFile(path string) (*variability.Scores, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return variability.ReadScores(f, path)
}

// palMedians returns for each class the median score of every measured GPU.
func palMedians(dir string) (medians [len(palFiles)][]float64, err error) {
	for c, name := range palFiles {
		path := filepath.Join(dir, name+"-longhorn-agg.csv")
		f, err := os.Open(path)
		if err != nil {
			return medians, err
		}
		runs, err := variability.ReadRuns(f, path, variability.ByUUID)
		_ = f.Close()
		if err != nil {
			return medians, err
		}
		m, err := variability.Measure(runs, variability.ByGPU)
		if err != nil {
			return medians, err
		}
		for i := range m.GPUs {
			medians[c] = append(medians[c], m.GPUs[i].Score)
		}
	}
	return medians, nil
}

// drawMedians gives each GPU and class the median of some measured GPU, each as likely: classes hardly correlate.
func drawMedians(seed uint64, gpus int, medians [len(palFiles)][]float64) *variability.Scores {
	r := rand.New(rand.NewPCG(seed, 11))
	return scoresBy("medians", gpus, func(c int) float64 { return medians[c][r.IntN(len(medians[c]))] })
}

// scoresBy asks for the score of each GPU and class.
func scoresBy(name string, gpus int, draw func(class int) float64) *variability.Scores {
	s := &variability.Scores{Name: name, Classes: variability.Labels[:], PM: make([][]float64, len(variability.Labels))}
	for g := range gpus {
		s.GPUs = append(s.GPUs, variability.GPU{Name: fmt.Sprint(g)})
		for c := range s.PM {
			s.PM[c] = append(s.PM[c], draw(c))
		}
	}
	return s
}

// palModels are those whose class was published, so that every class is among the jobs.
var palModels = []string{"resnet50", "BERT", "GPT2", "DCGAN", "vgg19", "PointNet"}

// palJobs is enough to keep 128 GPUs busy for some days.
const palJobs = 2000

// drawPhilly draws jobs with Philly's widths and durations, cut at a day, models evenly, for 16 nodes of 8 GPUs. Scores
// spread as the medians measured on Frontera: for class A 4 % of the GPUs take 1.10 to 1.15 times as long and the
// others differ by 2.5 %, for B and C by 0.4 %, for D by 0.06 %.
func drawPhilly(seed uint64, load float64) palDraw { return drawPhillyJobs(seed, load, palJobs) }

func drawPhillyJobs(seed uint64, load float64, jobs int) palDraw {
	law := trace.Lognormal{Parts: trace.Philly().(trace.Lognormal).Parts, Max: 86400}
	t := trace.Generate(trace.Generator{Seed: seed, Jobs: jobs, Load: load, GPUs: 128, Mix: trace.PhillyMix(),
		Models: palModels, Durations: law})
	r := rand.New(rand.NewPCG(seed, 12))
	sd := [...]float64{0.025, 0.004, 0.004, 0.0006}
	return palDraw{[]*trace.Trace{t}, scoresBy("generated", 128, func(c int) float64 {
		if c == 0 && r.Float64() < 0.04 {
			return 1.10 + 0.05*r.Float64()
		}
		return math.Exp(sd[c] * r.NormFloat64())
	})}
}
