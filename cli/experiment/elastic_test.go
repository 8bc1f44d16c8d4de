package experiment

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/internal/shareddata"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/trace"
)

// asked is a job of a scripted run of elastic.
type asked struct {
	app    string
	submit float64 // seconds
	gpus   sched.Range
}

var upTo8 = sched.Range{Min: 1, Want: 1, Max: 8}

// proportional is the law of a job that is k times as fast on k GPUs.
type proportional struct{}

func (proportional) At(gpus float64) float64 { return gpus }

// worlds has applications: linear takes 800 s on one GPU, short 80 s, and big 256 samples an update, of which a GPU
// holds 64.
var worlds = map[string]speedup.App{
	"linear": speedup.Stages{{Size: 800, Law: proportional{}}},
	"short":  speedup.Stages{{Size: 80, Law: proportional{}}},
	"big": &speedup.Trainer{Name: "big", Time: speedup.Additive{Process: speedup.Affine{PerSample: .01}},
		Worth:  speedup.Samples{20000},
		Limits: speedup.Limits{Start: 256, Max: 256, MinPerGPU: 1, MaxPerGPU: 64}},
	"wide": &speedup.Trainer{Name: "wide", Time: speedup.Additive{Process: speedup.Affine{Fixed: .01, PerSample: .001},
		Reduce: ring(50)},
		Worth:  noiseScale{samples: 1e6, start: 32, noise: 500},
		Limits: speedup.Limits{Start: 32, Max: 512, MinPerGPU: 1, MaxPerGPU: 64}},
	"one-batch": &speedup.Trainer{Name: "one-batch",
		Time:  speedup.Additive{Process: speedup.Affine{Fixed: .01, PerSample: .001}, Reduce: ring(50)},
		Worth: speedup.Samples{1e6}, Limits: speedup.Limits{Start: 128, Max: 128, MinPerGPU: 1, MaxPerGPU: 64}},
	"accumulates": &speedup.Trainer{Name: "accumulates",
		Time:  speedup.Additive{Process: speedup.Affine{Fixed: .01, PerSample: .001}, Reduce: ring(50)},
		Worth: noiseScale{samples: 1e6, start: 32, noise: 500},
		Limits: speedup.Limits{Start: 32, Max: 512, MinPerGPU: 1, MaxPerGPU: 16, Accumulate: true,
			List: []int{32, 64, 128, 256, 512}}},
}

// decisions are the widths given, in order: time, job, width.
type decisions []string

// Log notes what is decided.
func (d *decisions) Log(_ *sched.View, e *sched.Event) {
	switch {
	case e.Kind == sched.Decided:
		*d = append(*d, fmt.Sprintf("%v: %d has %d", e.Time, e.Job, len(e.GPUs)))
	case e.Kind == sched.Rejected:
		*d = append(*d, fmt.Sprintf("%v: %d %v %v %v", e.Time, e.Job, e.Why.Code, e.Why.A, e.Why.B))
	}
}

// eventFunc is a Sink that calls itself.
type eventFunc func(v *sched.View, e *sched.Event)

// Log calls f.
func (f eventFunc) Log(v *sched.View, e *sched.Event) { f(v, e) }

func playElastic(t *testing.T, on string, jobs []asked, settings map[string]string) (decisions, []metrics.Job) {
	t.Helper()
	c, err := cluster.Load(on)
	if err != nil {
		t.Fatal(err)
	}
	tr := &trace.Trace{Format: "generated", Profiled: true}
	for i, j := range jobs {
		tr.Jobs = append(tr.Jobs, trace.Job{Spec: sched.JobSpec{Name: fmt.Sprint(i), Model: j.app,
			Submit: sched.Time(sched.Seconds(j.submit)), GPUs: j.gpus}})
	}
	var d decisions
	s := &simulate.Request{Trace: tr, Cluster: c, System: "elastic", Apps: worlds, Sinks: nil,
		Settings: plus(settings, map[string]string{"curves": "oracle", "restart_overhead": "10", "horizon": "0"})}
	s.Sinks = append(s.Sinks, &d)
	out, err := s.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return d, out.PerJob
}

// Ensure that admission by minima, strict order, squeezing, its cost, dropping and bounds are as in the specification
// of elastic scaling, section 4, tests 5 to 8 and 10.
func TestElasticBySpecification(t *testing.T) {
	linear := func(at float64) asked { return asked{"linear", at, upTo8} }
	rigid := func(app string, at float64, n int) asked { return asked{app, at, sched.Rigid(n)} }
	one := asked{"linear", 0, sched.Rigid(1)}
	for _, c := range []struct {
		name, cluster string
		jobs          []asked
		set           map[string]string
		want          []string // the first decisions
	}{
		{"5: a minimum of 4 by memory; the second waits", "1x4", []asked{{"big", 0, upTo8}, linear(1)}, nil,
			[]string{"0s: 0 has 4", "50s: 1 has 4"}},
		{"5: and is dropped", "1x4", []asked{{"big", 0, upTo8}, linear(1)}, map[string]string{"mode": "drop"},
			[]string{"0s: 0 has 4", "1s: 1 no-room 1 0"}},
		{"6: four of six enter, then the fifth", "1x4", []asked{one, rigid("short", 0, 1), one, one, one, one}, nil,
			[]string{"0s: 0 has 1", "0s: 1 has 1", "0s: 2 has 1", "0s: 3 has 1", "80s: 4 has 1", "800s: 5 has 1"}},
		{"7: strict order holds up the second", "1x4",
			[]asked{rigid("linear", 0, 2), rigid("linear", 1, 4), rigid("linear", 2, 1)}, nil,
			[]string{"0s: 0 has 2", "400s: 1 has 4", "600s: 2 has 1"}},
		{"7: the first is dropped, the second starts", "1x4",
			[]asked{rigid("linear", 0, 2), rigid("linear", 1, 4), rigid("linear", 2, 1)},
			map[string]string{"mode": "drop"}, []string{"0s: 0 has 2", "1s: 1 no-room 4 2", "2s: 2 has 1"}},
		{"7: the second overtakes", "1x4", []asked{rigid("linear", 0, 2), rigid("linear", 1, 4), rigid("linear", 2, 1)},
			map[string]string{"backfill": "on"}, []string{"0s: 0 has 2", "2s: 2 has 1"}},
		{"8: the sum is indifferent, the later has least", "1x8", []asked{linear(0), linear(1)}, nil,
			[]string{"0s: 0 has 8", "1s: 0 has 7", "1s: 1 has 1"}},
		{"8: with a horizon too", "1x8", []asked{linear(0), linear(1)}, map[string]string{"horizon": "100"},
			[]string{"0s: 0 has 8", "1s: 0 has 7", "1s: 1 has 1"}},
		{"8: fairness shares out", "1x8", []asked{linear(0), linear(1)}, map[string]string{"fairness": "0.01"},
			[]string{"0s: 0 has 8", "1s: 0 has 4", "1s: 1 has 4"}},
		{"10: no wider than k_max", "1x8", []asked{linear(0), linear(1)}, map[string]string{"k_max": "3"},
			[]string{"0s: 0 has 3", "1s: 1 has 3"}},
		{"decided at multiples of the interval", "1x8", []asked{linear(0), linear(1)},
			map[string]string{"interval": "60", "fairness": "0.01"},
			[]string{"0s: 0 has 8", "60s: 0 has 4", "60s: 1 has 4"}},
		{"who could never fit holds up no one", "1x2", []asked{{"big", 0, upTo8}, rigid("linear", 1, 1)}, nil,
			[]string{"1s: 1 has 1"}},
		{"and is rejected where no one waits", "1x2", []asked{{"big", 0, upTo8}, rigid("linear", 1, 1)},
			map[string]string{"mode": "drop"},
			[]string{"0s: 0 too-wide 3 2", "1s: 1 has 1"}},
	} {
		got, _ := playElastic(t, c.cluster, c.jobs, c.set)
		if len(got) < len(c.want) || !slices.Equal(got[:len(c.want)], c.want) {
			t.Errorf("%s: decided\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// Ensure that attempts run as was decided: width, batch size, micro-batches and the factor on the learning rate, which
// is the square root of the batch size over the smallest, and that all of it is in the log.
func TestElasticTargetsAreWhole(t *testing.T) {
	c, err := cluster.Load("1x8")
	if err != nil {
		t.Fatal(err)
	}
	tr := &trace.Trace{Format: "generated", Profiled: true}
	for i := range 5 {
		tr.Jobs = append(tr.Jobs, trace.Job{Spec: sched.JobSpec{Name: fmt.Sprint(i), Model: "accumulates",
			Submit: sched.Time(sched.Seconds(float64(10 * i))), GPUs: upTo8}})
	}
	decided, accumulated, larger := map[sched.JobID]sched.Target{}, 0, 0
	look := eventFunc(func(v *sched.View, e *sched.Event) {
		switch e.Kind {
		case sched.Decided:
			if decided[e.Job] = *e.Target; e.Target.Accum > 1 {
				accumulated++
			}
			if want := float32(speedup.SquareRootLR(int(e.Target.Batch), 32)); len(e.GPUs) > 0 &&
				e.Target.LRScale != want {
				t.Errorf("job %d: %+v, want the learning rate x %v", e.Job, *e.Target, want)
			}
			if e.Target.Batch > 32 {
				larger++
			}
		case sched.AttemptStarted:
			if j, want := &v.Jobs[e.Job], decided[e.Job]; j.Live != want.Config || int32(len(j.GPUs)) != want.Want {
				t.Errorf("job %d runs on %d GPUs as %+v, want %+v", e.Job, len(j.GPUs), j.Live, want)
			}
		}
	})
	var log bytes.Buffer
	w := eventlog.NewWriter(&log, eventlog.Header{Version: "test", Origin: "start", Trace: "five", System: "elastic",
		Cluster: "1x8"})
	s := &simulate.Request{Trace: tr, Cluster: c, System: "elastic", Apps: worlds, Sinks: []eventlog.Sink{look, w},
		Settings: map[string]string{"curves": "oracle", "restart_overhead": "10", "horizon": "0", "lr": "sqrt"}}
	if _, err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if accumulated == 0 || larger == 0 {
		t.Errorf("%d decisions accumulate, %d have larger batches: want both", accumulated, larger)
	}
	for _, said := range []string{`"batch":`, `"accum":`, `"lr_scale":`} {
		if !strings.Contains(log.String(), said) {
			t.Errorf("the log does not say %s", said)
		}
	}
}

// Ensure that every system that resizes jobs starts one whose batch does not fit on fewer than 4 GPUs, although it says
// that one is enough, and lets no one wait behind one that could never run.
func TestFewestByMemory(t *testing.T) {
	for _, system := range []string{"elastic", "elastic-fifo", "afs-l", "optimus", "pollux", "pollux-autoscale"} {
		for on, finished := range map[string]int{"1x4": 2, "1x2": 1} {
			c, err := cluster.Load(on)
			if err != nil {
				t.Fatal(err)
			}
			tr := &trace.Trace{Format: "generated", Profiled: true}
			for i, app := range []string{"big", "linear"} {
				gpus := upTo8
				if app == "big" {
					gpus.Want = 4
				}
				tr.Jobs = append(tr.Jobs, trace.Job{Spec: sched.JobSpec{Name: fmt.Sprint(i), Model: app, GPUs: gpus}})
			}
			s := &simulate.Request{Trace: tr, Cluster: c, System: system, Apps: worlds,
				Settings: map[string]string{"curves": "oracle", "restart_overhead": "10"}}
			out, err := s.Run(t.Context())
			if err != nil || out.Finished != finished {
				t.Errorf("%s on %s: %d finished, %v, want %d", system, on, out.Finished, err, finished)
			}
		}
	}
}

// Ensure that a job alone grows by a restart only where it pays within the horizon: (H-R) S_new > H S_old. The second
// of two ends, and the first could go from 4 GPUs to 8: worth it iff H > 2 R.
func TestElasticHorizon(t *testing.T) {
	jobs := []asked{{"linear", 0, upTo8}, {"short", 0, upTo8}}
	for horizon, grows := range map[string]bool{"19": false, "20": false, "21": true, "0": true} {
		got, _ := playElastic(t, "1x8", jobs, map[string]string{"fairness": "0.01", "horizon": horizon})
		if slices.Contains(got, "20s: 0 has 8") != grows {
			t.Errorf("horizon %s: decided %v, want it to grow: %v", horizon, got, grows)
		}
	}
}

// Ensure that a range of one batch size is the fixed-batch baseline, whichever the rule, and that free batch sizes are
// never slower than fixed ones for a job alone. Reference: specification of elastic scaling, section 4, test 13.
func TestElasticFixedBatchTwin(t *testing.T) {
	jobs := []asked{{"one-batch", 0, upTo8}, {"one-batch", 5, upTo8}, {"one-batch", 7, upTo8}}
	want, _ := playElastic(t, "2x4", jobs, nil)
	_, free := playElastic(t, "2x4", []asked{{"wide", 0, upTo8}}, nil)
	for _, rule := range []string{"min", "max", "random", "best", "per-gpu"} {
		if got, _ := playElastic(t, "2x4", jobs, map[string]string{"batch": rule}); !slices.Equal(got, want) {
			t.Errorf("batch=%s: %v, want %v", rule, got, want)
		}
		if _, fixed := playElastic(t, "2x4", []asked{{"wide", 0, upTo8}},
			map[string]string{"batch": rule}); fixed[0].JCT() < free[0].JCT() {
			t.Errorf("batch=%s: %v, free %v, want it no faster", rule, fixed[0].JCT(), free[0].JCT())
		}
	}
	if _, samples := playElastic(t, "2x4", []asked{{"wide", 0, upTo8}},
		map[string]string{"objective": "throughput"}); samples[0].JCT() <= free[0].JCT() {
		t.Errorf("objective=throughput: %v, goodput %v, want it slower: epochs count", samples[0].JCT(), free[0].JCT())
	}
}

// Ensure that relabelling jobs relabels what becomes of them, where no ties decide. Reference: test 14.
func TestElasticRelabelling(t *testing.T) {
	a, b := asked{"wide", 0, upTo8}, asked{"one-batch", 0, upTo8}
	_, ab := playElastic(t, "2x4", []asked{a, b}, nil)
	_, ba := playElastic(t, "2x4", []asked{b, a}, nil)
	if ab[0].JCT() != ba[1].JCT() || ab[1].JCT() != ba[0].JCT() {
		t.Errorf("%v and %v, the other way round %v and %v", ab[0].JCT(), ab[1].JCT(), ba[0].JCT(), ba[1].JCT())
	}
}

// Ensure that the experiment runs without data and with, prints what it rests on in 80 columns, the same twice, and
// that its JSON is one document.
func TestElasticOutput(t *testing.T) {
	size := elasticSize{seeds: 2, clusters: []string{"2x4"}, window: 2 * time.Hour}
	print := func(o Options) string {
		t.Helper()
		var b bytes.Buffer
		if err := size.report(context.Background(), &b, o); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	text := print(Options{})
	if again := print(Options{}); again != text {
		t.Errorf("second run printed\n%s\nafter\n%s", again, text)
	}
	text += print(Options{Data: shareddata.DataDir(t)})
	for line := range strings.Lines(text) {
		if len(line) > 81 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
	for _, said := range []string{"up to 2x", "published 2x, 10x", "noise scale", "measured by Zeus",
		"bursty arrivals, drop", "1.00 [1.00, 1.00]"} {
		if !strings.Contains(text, said) {
			t.Errorf("%q is not said in\n%s", said, text)
		}
	}
	var doc struct {
		Experiment string
		Parts      []elasticPart
	}
	if err := json.Unmarshal([]byte(print(Options{JSON: true})), &doc); err != nil || doc.Experiment != "elastic" ||
		len(doc.Parts) != 6 {
		t.Errorf("document %+v, %v", doc, err)
	}
}

// Ensure that ratios are means over pairs of seeds, not ratios of means, and that "up to" looks at queues alone for
// times.
func TestElasticRatios(t *testing.T) {
	first := []elasticSeed{{inWindow: 10, jct: 100}, {inWindow: 30, jct: 300}}
	row := elasticRow{Fixed: true, seeds: []elasticSeed{{inWindow: 5, jct: 300}, {inWindow: 30, jct: 300}}}
	ours := elasticRow{seeds: first}
	ours.sumUp(first)
	row.sumUp(first)
	if row.MoreJobs.Mean != 1.5 || row.Faster.Mean != 2 || row.AvgJCT.Mean != 300 || row.MoreJobs.Low != 1 ||
		row.MoreJobs.High != 2 {
		t.Errorf("%+v", row)
	}
	queue, drop := elasticPart{Mode: "queue", Rows: []elasticRow{ours, row}},
		elasticPart{Mode: "drop", Rows: []elasticRow{ours, row}}
	if best := elasticBest([]elasticPart{queue, drop}); best.Jobs.Mean != 1.5 || best.JCT.Mean != 2 {
		t.Errorf("at most %+v", best)
	}
	if best := elasticBest([]elasticPart{drop}); best.Jobs.Mean != 1.5 || best.JCT.Mean != 0 {
		t.Errorf("at most, of drops alone, %+v", best)
	}
}
