package experiment

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// elasticKind is a category of jobs: what an update costs, and which batch sizes there are. The numbers are ours; that
// there are three such categories is believed of the paper.
type elasticKind struct {
	name   string
	time   speedup.Additive
	limits speedup.Limits
	noise  float64 // samples at which a batch is worth half of its size, where nothing is measured

	dataset, network string // whose measured epochs stand for it
	target           float64
}

// ring is an all-reduce within a node of fast links and between nodes of 100 Gb/s.
func ring(megabytes float64) speedup.Ring {
	return speedup.Ring{Bytes: megabytes * 1e6, Bandwidth: 100e9, Latency: 10e-6, Network: 12.5e9,
		NetworkLatency: 30e-6}
}

var elasticKinds = []elasticKind{
	{"compute", speedup.Additive{Process: speedup.Affine{Fixed: .010, PerSample: .004}, Reduce: ring(100)},
		speedup.Limits{Start: 64, Max: 1024, MinPerGPU: 1, MaxPerGPU: 128}, 2000, "imagenet", "resnet50", 0.6},
	{"balanced", speedup.Additive{Process: speedup.Affine{Fixed: .030, PerSample: .010}, Reduce: ring(350)},
		speedup.Limits{Start: 8, Max: 256, MinPerGPU: 1, MaxPerGPU: 32}, 400, "librispeech", "deepspeech2", 40},
	{"communication", speedup.Additive{Process: speedup.Affine{Fixed: .010, PerSample: .0005}, Reduce: ring(550)},
		speedup.Limits{Start: 32, Max: 2048, MinPerGPU: 1, MaxPerGPU: 256}, 300, "cifar100", "shufflenetv2", 0.6},
}

// elasticHours are the lengths of jobs on one GPU at the best batch size there, each as likely.
var elasticHours = []float64{0.5, 2, 8}

// meanHours is their mean.
const meanHours = 3.5

// widestElastic is the most GPUs of a job.
const widestElastic = 16

// elasticApps returns an application for each category and length, and says where its epochs by batch size come from:
// from
// Zeus's training runs in the folder of public data, else from a gradient noise scale.
func elasticApps(data string) (map[string]speedup.App, string, error) {
	apps := make(map[string]speedup.App)
	source := "by a gradient noise scale, ours"
	var runs []speedup.TargetRun
	if data != "" {
		path := filepath.Join(data, "energy", "zeus", "summary_train.csv")
		f, err := os.Open(path)
		if err != nil {
			return nil, "", err
		}
		defer f.Close()
		if runs, err = speedup.ReadTargetRuns(f, path); err != nil {
			return nil, "", err
		}
		source = "measured by Zeus: ResNet-50 0.60, DeepSpeech2 40, ShuffleNetV2 0.60"
	}
	for i := range elasticKinds {
		k := &elasticKinds[i]
		for _, hours := range elasticHours {
			app, err := k.app(hours, runs)
			if err != nil {
				return nil, "", err
			}
			apps[nameOf(k, hours)] = app
		}
	}
	return apps, source, nil
}

func nameOf(k *elasticKind, hours float64) string { return fmt.Sprintf("%s-%gh", k.name, hours) }

// app returns an application that takes so many hours on one GPU.
func (k *elasticKind) app(hours float64, runs []speedup.TargetRun) (speedup.App, error) {
	t := &speedup.Trainer{Name: nameOf(k, hours), Time: k.time, Limits: k.limits}
	scale := func(samples float64) (speedup.Worth, error) {
		if runs == nil {
			return noiseScale{samples: samples, start: float64(k.limits.Start), noise: k.noise}, nil
		}
		e, err := speedup.EpochsTo(runs, k.dataset, k.network, k.target, samples)
		if err != nil {
			return nil, err
		}
		t.Limits.List = nil
		for i, b := range e.Batches { // the range a user would give: without what never gets there
			if e.Epochs[i] > 0 && b >= k.limits.Start && b <= k.limits.Max {
				t.Limits.List = append(t.Limits.List, b)
			}
		}
		t.Limits.Start, t.Limits.Max = t.Limits.List[0], slices.Max(t.Limits.List)
		return e, nil
	}
	var err error
	if t.Worth, err = scale(1); err != nil {
		return nil, err
	}
	spec := &sched.JobSpec{Model: t.Name, GPUs: sched.Rigid(1)}
	spec.GPUs.Max = widestElastic
	d, err := speedup.NominalDuration(t, spec, 8)
	if err != nil {
		return nil, err
	}
	t.Worth, err = scale(hours * float64(time.Hour) / float64(d))
	return t, err
}

// noiseScale is a Worth by which an update of b samples is worth b (start+noise)/(b+noise): epochs to a target grow
// linearly with the batch size. Source: efficiency of Pollux, specification of BOA, 3.5.
type noiseScale struct{ samples, start, noise float64 }

// Sizes returns the samples of the one phase, at the smallest batch size.
func (n noiseScale) Sizes() []float64 { return []float64{n.samples} }

// Gain discounts large batches.
func (n noiseScale) Gain(_, batch int) float64 {
	return float64(batch) * (n.start + n.noise) / (float64(batch) + n.noise)
}

// elasticArrival is a pattern of arrivals.
type elasticArrival struct {
	name  string
	load  float64 // hours of one GPU that arrive, over those that there are
	burst int     // jobs that arrive together
}

var elasticArrivals = []elasticArrival{{"low", 0.4, 1}, {"high", 1.2, 1}, {"bursty", 0.8, 20}}

// elasticTrace draws jobs that arrive over the window, by a Poisson process of bursts. Jobs ask for one GPU and take up
// to widestElastic.
func elasticTrace(seed uint64, gpus int, window time.Duration, a elasticArrival) *trace.Trace {
	r := rand.New(rand.NewPCG(seed, 21))
	t := &trace.Trace{Format: "generated", Profiled: true}
	gap := meanHours * float64(a.burst) / (a.load * float64(gpus)) * float64(time.Hour)
	for at := r.ExpFloat64() * gap; at < float64(window); at += r.ExpFloat64() * gap {
		for range a.burst {
			k := &elasticKinds[r.IntN(len(elasticKinds))]
			t.Jobs = append(t.Jobs, trace.Job{Spec: sched.JobSpec{
				Name: fmt.Sprint(len(t.Jobs)), Model: nameOf(k, elasticHours[r.IntN(len(elasticHours))]),
				Submit: sched.Time(time.Duration(at).Round(time.Millisecond)),
				GPUs:   sched.Range{Min: 1, Want: 1, Max: widestElastic},
			}})
		}
	}
	return t
}
