// Package bench holds the benchmarks behind docs/inside/benchmarks.md. Times on a shared machine are noisy: quote the
// CPU seconds, and the ratio to the bare event heap measured in the same run.
package bench

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/internal/shareddata"
	"github.com/trainyard/trainyard/model/dist"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/trace"
)

// cpuSeconds is the CPU time of the process, user and system, garbage collection included.
func cpuSeconds() float64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	sec := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return sec(r.Utime) + sec(r.Stime)
}

// simulated runs one simulation per iteration and reports CPU seconds, events, microseconds per event and live memory.
func simulated(b *testing.B, s simulate.Request, sink func() eventlog.Sink) {
	b.Helper()
	var cpu float64
	var events uint64
	var mem runtime.MemStats
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		s.Sinks = nil
		if sink != nil {
			s.Sinks = []eventlog.Sink{sink()}
		}
		runtime.GC()
		runtime.ReadMemStats(&mem)
		before := mem.TotalAlloc
		c0 := cpuSeconds()
		b.StartTimer()
		out, err := s.Run(context.Background())
		b.StopTimer()
		if err != nil {
			b.Fatal(err)
		}
		cpu += cpuSeconds() - c0
		events = out.Events
		runtime.ReadMemStats(&mem)
		b.ReportMetric(float64(mem.TotalAlloc-before)/(1<<20), "MiB-allocated")
		b.ReportMetric(float64(mem.Sys)/(1<<20), "MiB-of-process")
		b.ReportMetric(float64(out.Finished), "finished")
		b.ReportMetric(float64(out.Preemptions), "preemptions")
		b.StartTimer()
	}
	cpu /= float64(b.N)
	b.ReportMetric(cpu, "cpu-s/run")
	b.ReportMetric(float64(events), "events/run")
	if events > 0 { // a replica has none
		b.ReportMetric(cpu/float64(events)*1e6, "us/event")
	}
}

func load(b testing.TB, spec string) *cluster.Cluster {
	b.Helper()
	c, err := cluster.Load(spec)
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func phillyTrace(b testing.TB) *trace.Trace {
	b.Helper()
	t, err := trace.Read(filepath.Join(shareddata.DataDir(b), "traces/philly/philly_gpu_jobs.csv.gz"), trace.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return t
}

// BenchmarkPhilly replays all 111,549 Philly jobs on 352 nodes of 8 GPUs, with the default placement and restart cost
// of each system. Bound: 0.5 s CPU and 200 MB in addition to reading, log off.
func BenchmarkPhilly(b *testing.B) {
	t, c := phillyTrace(b), load(b, "352x8")
	for _, name := range []string{"fifo", "fifo-skip", "fifo-easy", "sjf", "srtf", "srsf", "las", "tiresias-las",
		"tiresias-gittins"} {
		b.Run(name, func(b *testing.B) {
			simulated(b, simulate.Request{Trace: t, Cluster: c, System: name}, nil)
		})
	}
}

// BenchmarkPhillyLogged is BenchmarkPhilly with the log written (to nowhere) or hashed.
func BenchmarkPhillyLogged(b *testing.B) {
	t, c := phillyTrace(b), load(b, "352x8")
	for _, name := range []string{"fifo", "srtf", "tiresias-las"} {
		b.Run("jsonl/"+name, func(b *testing.B) {
			simulated(b, simulate.Request{Trace: t, Cluster: c, System: name},
				func() eventlog.Sink { return eventlog.NewWriter(io.Discard, eventlog.Header{}) })
		})
		b.Run("hash/"+name, func(b *testing.B) {
			simulated(b, simulate.Request{Trace: t, Cluster: c, System: name}, func() eventlog.Sink {
				return new(eventlog.Hash)
			})
		})
	}
}

// million are generated jobs with Philly's widths and durations on 10,000 GPUs.
func million(jobs int, load float64, gpus int) *trace.Trace {
	return trace.Generate(trace.Generator{Seed: 1, Jobs: jobs, Load: load, GPUs: gpus, Mix: trace.PhillyMix()})
}

// BenchmarkMillion: 10^6 jobs on 1,250 nodes of 8 GPUs under tiresias-las. Bound: 8 s and 1.5 GiB.
func BenchmarkMillion(b *testing.B) {
	c := load(b, "1250x8")
	for _, l := range []float64{.8, 1.1} {
		b.Run(fmt.Sprintf("load=%v", l), func(b *testing.B) {
			simulated(b, simulate.Request{Trace: million(1_000_000, l, 10_000), Cluster: c, System: "tiresias-las"},
				nil)
		})
	}
}

// BenchmarkScaling: cost per event from 10^4 to 10^6 jobs at load 0.8; the exponent of cost over events is its slope.
func BenchmarkScaling(b *testing.B) {
	c := load(b, "1250x8")
	for _, n := range []int{10_000, 30_000, 100_000, 300_000, 1_000_000} {
		b.Run(fmt.Sprintf("jobs=%d", n), func(b *testing.B) {
			simulated(b, simulate.Request{Trace: million(n, .8, 10_000), Cluster: c, System: "tiresias-las"}, nil)
		})
	}
}

// yarnSizes is the distribution of job sizes released with Tiresias.
func yarnSizes(b *testing.B) *dist.Empirical {
	b.Helper()
	path := filepath.Join(shareddata.DataDir(b), "traces/tiresias/yarn-gput1000.csv")
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	sizes, err := dist.Read(f, path)
	if err != nil {
		b.Fatal(err)
	}
	return sizes
}

// testbedLike are 5,000 jobs like those of the Tiresias testbed: widths, durations, models, whole seconds.
func testbedLike(load float64) *trace.Trace {
	return trace.Generate(trace.Generator{Seed: 5, Jobs: 5000, Load: load, GPUs: 1280, Quantum: time.Second,
		Mix: []trace.Width{{GPUs: 1, Share: 240}, {GPUs: 2, Share: 40}, {GPUs: 4, Share: 80}, {GPUs: 8, Share: 90},
			{GPUs: 16, Share: 25}, {GPUs: 32, Share: 5}},
		Durations: trace.Pareto{Shape: .6, Min: 120, Max: 7200},
		Models: []string{"vgg19", "vgg16", "vgg11", "alexnet", "resnet152", "resnet101", "resnet50", "inception4",
			"inception3", "googlenet"}})
}

// BenchmarkFiveThousand: 5,000 jobs like those of the Tiresias testbed (widths, durations, models, whole seconds) on
// 160 nodes of 8 GPUs, busy and overloaded. Bound: 20 ms; the published simulator takes 13 s of CPU.
func BenchmarkFiveThousand(b *testing.B) {
	c, sizes := load(b, "160x8"), yarnSizes(b)
	for _, l := range []float64{.9, 1.3} {
		t := testbedLike(l)
		for _, name := range []string{"fifo", "srtf", "tiresias-las", "tiresias-gittins"} {
			b.Run(fmt.Sprintf("load=%v/%s", l, name), func(b *testing.B) {
				simulated(b, simulate.Request{Trace: t, Cluster: c, System: name}, nil)
			})
		}
		for _, name := range []string{"tiresias-las", "tiresias-gittins"} {
			b.Run(fmt.Sprintf("load=%v/%s-preset", l, name), func(b *testing.B) {
				simulated(b, simulate.Request{Trace: t, Cluster: c, System: name, Preset: "tiresias",
					Files: system.Distribution.Holds(sizes)}, nil)
			})
		}
	}
}

// BenchmarkDecision measures single decisions (Decide, the check and exchange of targets not included) that
// change something, in clusters that cannot keep up, with about 10^4 active jobs. Bound: p99 100 us.
func BenchmarkDecision(b *testing.B) {
	c := load(b, "250x8")
	t := trace.Generate(trace.Generator{Seed: 1, Jobs: 60_000, Load: 4, GPUs: 2000, Mix: trace.PhillyMix(),
		Durations: trace.Lognormal{Parts: []trace.Part{{Weight: 1, Mu: 8, Sigma: 1}}, Max: 86400},
		Models:    []string{"vgg16", "resnet50", "alexnet", "inception3"}})
	start := time.Now()
	clock := func() int64 { return int64(time.Since(start)) }
	for _, name := range []string{"tiresias-las", "srtf", "tiresias-gittins"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s := simulate.Request{Trace: t, Cluster: c, System: name, Clock: clock}
				active := &activeJobs{}
				s.Sinks = []eventlog.Sink{active}
				out, err := s.Run(context.Background())
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(out.DecisionP50, "p50-us")
				b.ReportMetric(out.DecisionP99, "p99-us")
				b.ReportMetric(float64(active.sum)/float64(active.events), "active-jobs")
			}
		})
	}
}

// activeJobs averages, over events, the number of jobs that have arrived and are not done.
type activeJobs struct{ now, sum, events int64 }

func (a *activeJobs) Log(v *sched.View, e *sched.Event) {
	switch {
	case e.Kind == sched.JobArrived:
		a.now++
	case e.Kind == sched.AttemptEnded && v.Jobs[e.Job].State == sched.Done:
		a.now--
	}
	a.sum += a.now
	a.events++
}

// BenchmarkPALArtifact plays workload 1 of PAL's artifact, 160 jobs on 16x4, rounds of 300 s, PAL under FIFO: in the
// replica, the trace repeated, and in the engine. Bound: 10 ms; the released simulator takes 94 s of CPU.
func BenchmarkPALArtifact(b *testing.B) {
	dir := filepath.Join(shareddata.DataDir(b), "pal")
	t, err := trace.Read(filepath.Join(dir, "traces/workload-1.csv"), trace.Options{})
	if err != nil {
		b.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, "golden/artifact-gpus-64.csv"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	scores, err := variability.ReadScores(f, f.Name())
	if err != nil {
		b.Fatal(err)
	}
	for _, preset := range []string{"blox-pal", ""} {
		for _, name := range []string{"packed-sticky", "packed", "pm-first", "pal"} {
			b.Run("preset="+preset+"/"+name, func(b *testing.B) {
				simulated(b, simulate.Request{Trace: t, Cluster: load(b, "16x4"), System: name, Preset: preset,
					Scores: scores}, nil)
			})
		}
	}
}

// BenchmarkPALRound measures the rounds of a run on 1,250 nodes of 8 GPUs: 11,500 jobs of Philly's widths, 1 to 10
// hours long, arrive at once, so that some 5,800 run and as many wait, and all are placed again every 300 s. Bound: p99
// 20 ms. Times are of the processor, the collection of garbage included, so that what else runs on the machine counts
// little.
func BenchmarkPALRound(b *testing.B) {
	t := trace.Generate(trace.Generator{Seed: 1, Jobs: 11_500, Load: 1000, GPUs: 10_000, Mix: trace.PhillyMix(),
		Durations: trace.Pareto{Shape: 1, Min: 3600, Max: 36000},
		Models:    []string{"resnet50", "BERT", "GPT2", "DCGAN", "vgg19", "PointNet"}})
	r := rand.New(rand.NewPCG(1, 2))
	s := &variability.Scores{Name: "drawn", Classes: []string{"A", "B", "C", "D"}, PM: make([][]float64, 4)}
	for g := range 10_000 {
		s.GPUs = append(s.GPUs, variability.GPU{Name: fmt.Sprint(g)})
		for c, sd := range []float64{0.05, 0.01, 0.01, 0.002} {
			s.PM[c] = append(s.PM[c], math.Exp(sd*r.NormFloat64()))
		}
	}
	for _, name := range []string{"packed", "pm-first", "pal"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				out, err := (&simulate.Request{Trace: t, Cluster: load(b, "1250x8"), System: name, Scores: s,
					Clock: func() int64 {
						return int64(1e9 * cpuSeconds())
					}}).Run(context.Background())
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(out.DecisionP50/1e3, "p50-cpu-ms")
				b.ReportMetric(out.DecisionP99/1e3, "p99-cpu-ms")
				b.ReportMetric(float64(out.Migrations), "moves")
				b.ReportMetric(out.Makespan/300, "rounds")
			}
		})
	}
}
