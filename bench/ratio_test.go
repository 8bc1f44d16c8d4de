package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/trace"
)

// bound is a row of bounds.yaml: how much a system may cost on a workload. Of each pair one is given.
type bound struct {
	Workload, System string
	Must, Aim        float64 // CPU time over that of a bare heap
	MustS            float64 `yaml:"must_s"` // CPU seconds
	AimS             float64 `yaml:"aim_s"`
	MustNS           float64 `yaml:"must_ns_event"` // nanoseconds of an event that a sink adds
	AimNS            float64 `yaml:"aim_ns_event"`
}

// bounds is bounds.yaml.
type bounds struct {
	LeanS float64 `yaml:"lean_s"` // CPU seconds of Lean with events on Philly where rows in seconds hold
	Rows  []bound
}

// readBounds returns bounds.yaml.
func readBounds(b testing.TB) *bounds {
	b.Helper()
	text, err := os.ReadFile("bounds.yaml")
	if err != nil {
		b.Fatal(err)
	}
	var all bounds
	if err := yaml.UnmarshalWithOptions(text, &all, yaml.Strict()); err != nil {
		b.Fatal(err)
	}
	return &all
}

// workload is what systems are measured on.
type workload struct {
	name    string
	request func(b testing.TB) simulate.Request // without a system
	nodes   int                                 // of the cluster, of eight GPUs each; 0 = Lean does not play it
	sink    func() eventlog.Sink                // what it is that an event costs; nil = the whole run counts
}

// ratioWorkloads are the workloads of bounds.yaml.
func ratioWorkloads() []workload {
	philly := func(b testing.TB) simulate.Request {
		return simulate.Request{Trace: phillyTrace(b), Cluster: load(b, "352x8")}
	}
	drawn := func(spec string, g trace.Generator) func(testing.TB) simulate.Request {
		return func(b testing.TB) simulate.Request {
			return simulate.Request{Trace: trace.Generate(g), Cluster: load(b, spec)}
		}
	}
	many := func(gpus int) trace.Generator {
		return trace.Generator{Seed: 1, Jobs: 1_000_000, Load: .8, GPUs: gpus, Mix: trace.PhillyMix()}
	}
	return []workload{
		{name: "philly", request: philly, nodes: 352},
		{name: "philly-hash", request: philly, sink: func() eventlog.Sink { return new(eventlog.Hash) }},
		{name: "philly-jsonl", request: philly,
			sink: func() eventlog.Sink { return eventlog.NewWriter(io.Discard, eventlog.Header{}) }},
		{name: "million", request: drawn("1250x8", many(10_000)), nodes: 1250},
		{name: "million-100000", request: drawn("12500x8", many(100_000)), nodes: 12500},
		{name: "overload", request: func(b testing.TB) simulate.Request {
			return simulate.Request{Trace: testbedLike(1.3), Cluster: load(b, "160x8")}
		}},
		{name: "widths-3000", request: widths(30_000, 3000)},
		{name: "widths-300", request: widths(10_000, 300)},
		{name: "widths-3000-las", request: widths(6000, 3000)},
	}
}

// widths draws jobs of so many widths, 1.3 times what a cluster of 500 nodes can do.
func widths(jobs, kinds int) func(testing.TB) simulate.Request {
	return func(b testing.TB) simulate.Request {
		g := trace.Generator{Seed: 3, Jobs: jobs, Load: 1.3, GPUs: 4000}
		for w := range kinds {
			g.Mix = append(g.Mix, trace.Width{GPUs: w + 1, Share: 1})
		}
		return simulate.Request{Trace: trace.Generate(g), Cluster: load(b, "500x8")}
	}
}

const turns = 7

// figure is what the turns of one program gave.
type figure struct {
	cpu      float64 // seconds, the least
	all      []float64
	events   uint64
	bytesJob float64
	peak     float64 // MiB of the process while it ran, the trace included
	sum      string  // of the log
}

func (f *figure) add(cpu float64) {
	f.all = append(f.all, cpu)
	f.cpu = slices.Min(f.all)
}

// steady reports whether the least and the third of the turns differ by a fifth at most.
func (f *figure) steady() bool {
	s := slices.Sorted(slices.Values(f.all))
	return s[2] <= 1.2*s[0]
}

// timed returns the CPU seconds of one run of f, which is run so often that it takes a while.
func timed(f func(), times int) float64 {
	runtime.GC()
	from := cpuSeconds()
	for range times {
		f()
	}
	return (cpuSeconds() - from) / float64(times)
}

// measured is a workload with what its programs took.
type measured struct {
	jobs       int
	heap, lean figure
	systems    map[string]*figure
}

// measure runs heap, Lean and systems in turn. Where the heap's own turns differ too much it is done again, three times
// at most; then the workload is void, and nil is returned.
func measure(b *testing.B, w *workload, systems []string) *measured {
	b.Helper()
	s := w.request(b)
	s.System = systems[0]
	work := heapOf(b, s)
	times := max(1, 1_000_000/max(1, len(work)))
	for range 3 {
		m := &measured{jobs: len(s.Trace.Jobs), systems: make(map[string]*figure)}
		for range turns {
			m.heap.add(timed(work.play, times))
			if w.nodes > 0 {
				m.lean.add(timed(func() { newLean(s.Trace, w.nodes, 8, true).run() }, 1))
			}
			for _, name := range systems {
				if m.systems[name] == nil {
					m.systems[name] = &figure{}
				}
				s.System = name
				m.systems[name].turn(b, s, w.sink)
			}
		}
		if m.heap.steady() {
			return m
		}
	}
	return nil
}

// turn runs a system once. With a sink only what that adds is counted.
func (f *figure) turn(b *testing.B, s simulate.Request, sink func() eventlog.Sink) {
	b.Helper()
	run := func(sinks ...eventlog.Sink) float64 {
		s.Sinks = sinks
		return timed(func() {
			out, err := s.Run(context.Background())
			if err != nil {
				b.Fatal(err)
			}
			f.events = out.Events
		}, 1)
	}
	if f.sum == "" { // untimed, and it warms up
		hash := new(eventlog.Hash)
		run(hash)
		f.sum = hash.Sum()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	resetPeak()
	cpu := run()
	f.peak = peak()
	runtime.ReadMemStats(&after)
	f.bytesJob = float64(after.TotalAlloc-before.TotalAlloc) / float64(len(s.Trace.Jobs))
	if sink != nil {
		cpu = max(run(sink())-cpu, 0)
	}
	f.add(cpu)
}

// resetPeak has the kernel forget the process's largest size so far, where it can.
func resetPeak() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// peak returns the largest size of the process in MiB; 0 = the kernel does not say.
func peak() float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kib, _ := strconv.ParseFloat(strings.Fields(rest + " 0")[0], 64)
	return kib / 1024
}

// BenchmarkRatio is `make bench-ratio`: what each workload costs next to a bare heap and Lean, in turn in one process,
// the least of seven turns each. It fails where a row of bounds.yaml is beyond its must by more than 15 %.
func BenchmarkRatio(b *testing.B) {
	all := readBounds(b)
	slower := leanOnPhilly(b) / all.LeanS
	fmt.Printf("Lean on Philly takes %.2f of what it takes on the machine of rows in seconds.\n", slower)
	for _, w := range ratioWorkloads() {
		b.Run(w.name, func(b *testing.B) {
			var systems []string
			var rows []bound
			for _, r := range all.Rows {
				if _, err := system.Named(r.System); r.Workload == w.name && err == nil {
					rows, systems = append(rows, r), append(systems, r.System)
				}
			}
			if len(systems) == 0 {
				return
			}
			m := measure(b, &w, systems)
			if m == nil {
				fmt.Printf("%s: void: the heap's own runs differ by more than a fifth\n", w.name)
				return
			}
			fmt.Printf("\n%s, %d jobs: heap %.4f s", w.name, m.jobs, m.heap.cpu)
			if w.nodes > 0 {
				fmt.Printf(", Lean %.4f s (%.1f heaps)", m.lean.cpu, m.lean.cpu/m.heap.cpu)
			}
			fmt.Printf("\n%-17s %8s %6s %9s %8s %8s %6s %6s  %s\n", "system", "CPU s", "heaps", "ns/event", "B/job",
				"peak MiB", "must", "aim", "hash")
			for _, r := range rows {
				if !r.print(m, w.sink != nil, slower) {
					b.Errorf("%s, %s: beyond its must by more than 15 %%", r.Workload, r.System)
				}
			}
		})
	}
}

// print prints a row and reports whether its must holds, but for 15 %.
func (r *bound) print(m *measured, sink bool, slower float64) bool {
	f := m.systems[r.System]
	ns := f.cpu / float64(f.events) * 1e9
	value, must, aim, unit := f.cpu/m.heap.cpu, r.Must, r.Aim, ""
	switch {
	case sink:
		value, must, aim, unit = ns, r.MustNS*slower, r.AimNS*slower, "ns"
	case r.MustS > 0:
		value, must, aim, unit = f.cpu, r.MustS*slower, r.AimS*slower, "s"
	}
	digits := 0
	if unit == "s" {
		digits = 3
	}
	fmt.Printf("%-17s %8.4f %6.1f %9.0f %8.0f %8.0f %6s %6s  %s\n", r.System, f.cpu, f.cpu/m.heap.cpu, ns, f.bytesJob,
		f.peak, strconv.FormatFloat(must, 'f', digits, 64)+unit, strconv.FormatFloat(aim, 'f', digits, 64)+unit, f.sum)
	return value <= 1.15*must
}

// leanOnPhilly returns the CPU seconds of Lean with events on Philly, the least of seven.
func leanOnPhilly(b *testing.B) float64 {
	b.Helper()
	t := phillyTrace(b)
	var f figure
	for range turns {
		f.add(timed(func() { newLean(t, 352, 8, true).run() }, 1))
	}
	return f.cpu
}
