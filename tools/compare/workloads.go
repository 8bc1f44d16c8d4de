package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// workload is what is measured with either tree.
type workload struct {
	name  string
	bound float64 // fraction by which head may be above base
	needs string  // what is missing to run it, or empty
	pairs int     // at most, or 0
	alone bool    // it has no noise: once is enough
	run   func(ctx context.Context, t *tree) (figures, error)
}

// figures are measured values by unit.
type figures map[string]float64

// most is how many pairs are run at most.
func (w *workload) most() int {
	switch {
	case w.alone:
		return 1
	case w.pairs > 0:
		return w.pairs
	}
	return 1000
}

// longest bounds one run of a workload.
const longest = 10 * time.Minute

// workloads lists them. Without inputs, for a list of names, those of all systems are one.
func workloads(in *inputs) []*workload {
	if in == nil {
		in = &inputs{all: []string{"SYSTEM"}, data: "DATA", kube: "BINARIES"}
	}
	list := simulations(in)
	list = append(list, benchmarks(in)...)
	return append(list,
		&workload{name: "binary", bound: 0.01, alone: true, run: binarySize},
		&workload{name: "build", bound: 0.05, pairs: 3, run: coldBuild})
}

func simulations(in *inputs) []*workload {
	var list []*workload
	philly := filepath.Join(in.data, "traces", "philly", "philly_gpu_jobs.csv.gz")
	for _, system := range []string{"fifo", "fifo-skip", "srtf", "las", "tiresias-las", "tiresias-gittins"} {
		w := simulation("philly/"+system, "--system", system, "--trace", philly, "--cluster", "352x8")
		w.pairs = 5
		if in.data == "" {
			w.needs = "shared data"
		}
		list = append(list, w)
	}
	scores := filepath.Join(in.head, "internal", "freeze", "testdata", "input", "scores60.csv")
	for _, system := range in.all {
		args := []string{"--system", system, "--trace", filepath.Join(in.head, "examples", "testbed.csv"),
			"--cluster", "15x4", "--variability", scores}
		if slices.Contains(renting, system) {
			args = append(args, "--budget", "50")
		}
		list = append(list, simulation("testbed/"+system, args...))
	}
	list = append(list, simulation("long/tiresias-las", "--system", "tiresias-las", "--trace", in.long(),
		"--cluster", "250x8"))
	long := simulation("long/boa", "--system", "boa", "--budget", "1800", "--trace", in.long(), "--cluster", "250x8")
	return append(list, long)
}

// renting are the systems that must have a budget.
var renting = []string{"boa", "boa-exact", "equal-width"}

func simulation(name string, args ...string) *workload {
	args = append([]string{"simulate", "--quiet", "--json"}, args...)
	return &workload{name: "simulate/" + name, bound: 0.03, run: func(ctx context.Context, t *tree) (figures, error) {
		return repeated(func() (figures, error) { return t.do(ctx, t.dir, nil, t.binary(), args...) })
	}}
}

// enough is how many CPU seconds a run should take: clocks and starts of processes are too coarse for much less.
const enough = 0.2

// repeated runs something until it has taken enough, 20 times at most, and returns the means of its figures.
func repeated(run func() (figures, error)) (figures, error) {
	sum := figures{}
	for n := 1.0; ; n++ {
		f, err := run()
		if err != nil {
			return nil, err
		}
		for unit, v := range f {
			sum[unit] += v
		}
		if n < 20 && sum["CPU s"] < enough {
			continue
		}
		for unit := range sum {
			sum[unit] /= n
		}
		return sum, nil
	}
}

// benchmark is a benchmark of the tree: the same number of iterations each time, as CPU seconds are of the whole
// process.
type benchmark struct {
	name, function, sub string
	was                 string // name of the function in earlier trees, or empty
	times               string // iterations
	hints               []string
	kube                bool
	binaries            string // of a control plane
}

func benchmarks(in *inputs) []*workload {
	var list []*workload
	for _, b := range []benchmark{
		{name: "decision", function: "BenchmarkDecision", sub: "tiresias-las", times: "1x", hints: []string{"bench"}},
		{name: "log-write", function: "BenchmarkWriter", times: "3000000x", hints: []string{"eventlog", "engine"},
			was: "BenchmarkLogWriter"},
		{name: "log-hash", function: "BenchmarkHash", times: "10000000x", hints: []string{"eventlog", "engine"}},
		{name: "log-read", function: "BenchmarkReader", times: "10x", hints: []string{"eventlog", "engine"},
			was: "BenchmarkLogReader"},
		{name: "recovery", function: "BenchmarkOpen", sub: "events=1050000", times: "1x",
			hints: []string{"manager", "host"}},
		{name: "submit", function: "BenchmarkSubmit", times: "5000x", hints: []string{"crashtest"}},
		{name: "ps-known", function: "BenchmarkKnown", times: "5x", hints: []string{"crashtest"}},
		{name: "ps-why-queued", function: "BenchmarkQueued", times: "3x", hints: []string{"crashtest"}},
		{name: "kube-writes", function: "BenchmarkWrites", times: "1x", hints: []string{"kube/e2e"}, kube: true},
		{name: "kube-fill", function: "BenchmarkFill", times: "1x", hints: []string{"kube/e2e"}, kube: true},
		{name: "kube-forgotten", function: "BenchmarkForgotten", times: "1x", hints: []string{"kube/controller"}},
	} {
		b.binaries = in.kube
		w := &workload{name: "benchmark/" + b.name, bound: 0.03, run: b.run}
		if b.kube && in.kube == "" {
			w.needs = "a control plane"
		}
		list = append(list, w)
	}
	return list
}

func (b benchmark) run(ctx context.Context, t *tree) (figures, error) {
	function := b.function
	folder, err := t.find(function, b.hints)
	if err != nil && b.was != "" {
		function = b.was
		folder, err = t.find(function, b.hints)
	}
	if err != nil {
		return nil, err
	}
	binary, err := t.compile(ctx, folder)
	if err != nil {
		return nil, err
	}
	pattern := "^" + function + "$"
	if b.sub != "" {
		pattern += "/^" + b.sub + "$"
	}
	env := []string{"TRAINYARD_KUBE_BINS=" + b.binaries}
	return t.do(ctx, folder, env, binary, "-test.run", "^$", "-test.bench", pattern, "-test.benchtime", b.times,
		"-test.benchmem")
}

// binarySize is the size of the program.
func binarySize(_ context.Context, t *tree) (figures, error) {
	info, err := os.Stat(t.binary())
	if err != nil {
		return nil, err
	}
	return figures{"bytes": float64(info.Size())}, nil
}

// coldBuild builds the program with an empty cache.
func coldBuild(ctx context.Context, t *tree) (figures, error) {
	cache, err := os.MkdirTemp(t.out, "cache")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(cache)
	return t.do(ctx, t.dir, []string{"GOCACHE=" + cache}, "go", "build", "-o", filepath.Join(cache, "trainyard"),
		"./cmd/trainyard")
}

// systems returns the names of all systems.
func systems(ctx context.Context, trainyard string) (names []string, err error) {
	text, err := exec.CommandContext(ctx, trainyard, "systems", "--json").Output()
	if err != nil {
		return nil, fmt.Errorf("systems: %w", err)
	}
	var doc struct{ Systems []struct{ Name string } }
	if err := json.NewDecoder(strings.NewReader(string(text))).Decode(&doc); err != nil {
		return nil, fmt.Errorf("systems: %w", err)
	}
	for _, s := range doc.Systems {
		names = append(names, s.Name)
	}
	return names, nil
}
