package tiresias_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/model/dist"
	"github.com/trainyard/trainyard/model/skew"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/order"
	"github.com/trainyard/trainyard/stage/place"
	"github.com/trainyard/trainyard/system/baseline"
	"github.com/trainyard/trainyard/system/tiresias"
	"github.com/trainyard/trainyard/trace"
)

// The tests run the systems in the engine on a simulated cluster. Sections of the paper are not numbered here: we know
// it by its abstract, its slides and its released simulator.

// run plays t on a cluster and returns what became of its jobs, in order of arrival.
func run(tb testing.TB, t *trace.Trace, spec string, s pipeline.Stages, r sim.Runtime,
	sinks ...eventlog.Sink) []metrics.Job {
	tb.Helper()
	c, err := cluster.Load(spec)
	if err != nil {
		tb.Fatal(err)
	}
	d, err := sim.New(t, c, sim.Options{Runtime: r})
	if err != nil {
		tb.Fatal(err)
	}
	rec := metrics.NewRecorder(len(t.Jobs))
	o := engine.Options{Sinks: append([]eventlog.Sink{rec}, sinks...)}
	if err := engine.Run(context.Background(), engine.NewState(eventlog.Header{}), d, pipeline.New(s), o); err != nil {
		tb.Fatal(err)
	}
	return rec.Jobs
}

// must returns the stages of a system whose parameters are right.
func must(s pipeline.Stages, err error) pipeline.Stages {
	if err != nil {
		panic(err)
	}
	return s
}

func las(q tiresias.Queues, p sched.Placer) pipeline.Stages { return must(tiresias.LAS(q, p)) }

// job is a row of a trace: times in seconds.
func job(name string, submit, gpus, duration int, model string) trace.Job {
	return trace.Job{Spec: sched.JobSpec{Name: name, Submit: sched.Time(submit) * second, GPUs: sched.Rigid(gpus),
		Model: model},
		Duration: time.Duration(duration) * time.Second}
}

const second = sched.Time(time.Second)

func traceOf(jobs ...trace.Job) *trace.Trace { return &trace.Trace{Jobs: jobs} }

func finishes(jobs []metrics.Job) (list []sched.Time) {
	for i := range jobs {
		list = append(list, jobs[i].Finish)
	}
	return list
}

// Ensure that the worked example of the authors' slides comes out as published: 9.3 under SRSF, 10.0 under discretised
// 2D-Gittins, 11.7 under 2D-LAS. Two GPUs, all jobs at 0, service 4, 8 and 12; only one job runs at a time. The other
// averages are ours. The slides' LAS has rounds of exactly one time unit: shorter and longer ones give other averages.
//
// The textbook Gittins index rises here, so alone, without queues, it runs jobs to completion: 10.0 comes of the
// boundary between queues.
//
// Reference: Gu et al., NSDI'19, slides.
func TestWorkedExample(t *testing.T) {
	tr := traceOf(job("J1", 0, 2, 2, ""), job("J2", 0, 1, 8, ""), job("J3", 0, 2, 6, ""))
	sample, err := dist.NewEmpirical([]float64{4, 8, 12})
	if err != nil {
		t.Fatal(err)
	}
	p, work := place.Count{}, tr.Oracle()
	queues := func(limits ...float64) tiresias.Queues { return tiresias.Queues{Thresholds: limits} }
	gittins := func(delta float64, limits ...float64) pipeline.Stages {
		return must(tiresias.Gittins(queues(limits...), tiresias.Known{Sizes: sample}, delta, p))
	}
	rounds := func(d time.Duration) pipeline.Stages { return baseline.LAS(p, false, d) }
	for _, c := range []struct {
		name    string
		stages  pipeline.Stages
		ends    []float64 // nil: the average alone
		average string
	}{
		{"SRSF", baseline.SRSF(p, baseline.Known{Work: work}), []float64{2, 10, 16}, "9.33"},
		{"FIFO", baseline.FIFO(p), []float64{2, 10, 16}, "9.33"},
		{"SRTF", baseline.SRTF(p, baseline.Known{Work: work}), []float64{2, 16, 8}, "8.67"},
		{"2D-LAS, rounds of 1", rounds(time.Second), []float64{5, 14, 16}, "11.67"},
		{"2D-LAS, rounds of 1/2", rounds(time.Second / 2), nil, "12.17"},
		{"2D-LAS, rounds of 1/4", rounds(time.Second / 4), nil, "12.42"},
		{"2D-LAS, rounds of 2", rounds(2 * time.Second), nil, "10.67"},
		{"2D-LAS, rounds of 4", rounds(4 * time.Second), nil, "10.67"},
		{"discretised 2D-LAS, K=2", las(queues(4), p), []float64{2, 12, 16}, "10.00"},
		{"discretised 2D-LAS, K=3", las(queues(4, 8), p), []float64{2, 12, 16}, "10.00"},
		{"discretised 2D-LAS, limit 2", las(queues(2), p), []float64{5, 11, 16}, "10.67"},
		{"discretised LAS by time", las(tiresias.Queues{Thresholds: []float64{4}, Seconds: true}, p),
			[]float64{2, 14, 16}, "10.67"},
		{"discretised 2D-Gittins, K=2", gittins(0, 4), []float64{2, 12, 16}, "10.00"},
		{"discretised 2D-Gittins, K=3", gittins(0, 4, 8), []float64{2, 12, 16}, "10.00"},
		{"discretised 2D-Gittins, quantum 4", gittins(4, 4), []float64{2, 12, 16}, "10.00"},
		{"continuous textbook 2D-Gittins", gittins(4), []float64{2, 10, 16}, "9.33"},
	} {
		got, sum := finishes(run(t, tr, "1x2", c.stages, sim.Runtime{})), 0.0
		for i, end := range got {
			sum += end.Seconds()
			if len(c.ends) > 0 && end.Seconds() != c.ends[i] {
				t.Errorf("%s: ends %v, want %v", c.name, got, c.ends)
				break
			}
		}
		if avg := fmt.Sprintf("%.2f", sum/3); avg != c.average {
			t.Errorf("%s: average %s, want %s (ends %v)", c.name, avg, c.average, got)
		}
	}
}

// diary keeps what the tests want to see of the log: how many nodes each job's first target spans, and notes.
type diary struct {
	nodes map[string]int
	notes []string
}

func (d *diary) Log(v *sched.View, e *sched.Event) {
	switch {
	case e.Kind == sched.Decided && len(e.GPUs) > 0:
		var on []sched.NodeID
		for _, g := range e.GPUs {
			if n := v.GPUs[g].Node; !slices.Contains(on, n) {
				on = append(on, n)
			}
		}
		if d.nodes == nil {
			d.nodes = map[string]int{}
		}
		if name := v.Jobs[e.Job].Spec.Name; d.nodes[name] == 0 {
			d.nodes[name] = len(on)
		}
	case e.Kind == sched.Noted:
		d.notes = append(d.notes, fmt.Sprintf("%v %v %s", e.Time, e.Why.Code, v.Jobs[e.Job].Spec.Name))
	}
}

// Ensure that a job whose model has one dominating tensor is consolidated: it waits for one node while there are enough
// GPUs on two, and that any other job takes GPUs where they are free.
// Reference: Gu et al., NSDI'19, placement by model profile.
func TestSkewedJobWaitsLowSkewJobSpreads(t *testing.T) {
	for _, c := range []struct {
		model string
		start sched.Time
		nodes int
	}{
		{"vgg19", 50 * second, 1}, {"vgg16", 50 * second, 1}, {"vgg11", 50 * second, 1}, {"alexnet", 50 * second, 1},
		{"resnet50", 10 * second, 2}, {"resnet101", 10 * second, 2}, {"resnet152", 10 * second, 2},
		{"inception3", 10 * second, 2}, {"inception4", 10 * second, 2}, {"googlenet", 10 * second, 2},
	} {
		tr := traceOf(job("a", 0, 3, 50, ""), job("b", 0, 3, 90, ""), job("new", 10, 2, 5, c.model))
		d := &diary{}
		got := run(t, tr, "2x4", las(tiresias.Queues{}, tiresias.Known{}.Placement(skew.PackLimit)), sim.Runtime{}, d)
		if got[2].Start != c.start || d.nodes["new"] != c.nodes {
			t.Errorf("%s: starts %v on %d nodes, want %v on %d", c.model, got[2].Start, d.nodes["new"], c.start,
				c.nodes)
		}
	}
}

// Ensure that a skewed job preempts no job as long as that would not give it a place of its own: on each node three
// GPUs are held by a job of a lower queue and one by a job of its own queue. Once high0 ends on the first node it takes
// that node, and the lowest-ranked job alone is preempted: low0, which ranks before low1, moves over. A job that may be
// spread preempts both at once. Reference: Gu et al., NSDI'19, placement by model profile.
func TestSkewedJobPreemptsNobodyInVain(t *testing.T) {
	for _, c := range []struct {
		model       string
		start       sched.Time
		preemptions []int32 // low0, low1
	}{
		{"vgg19", 80 * second, []int32{0, 1}},
		{"resnet50", 60 * second, []int32{1, 1}},
	} {
		tr := traceOf(job("low0", 0, 3, 500, ""), job("low1", 0, 3, 500, ""), job("high0", 40, 1, 40, ""),
			job("high1", 40, 1, 60, ""),
			job("new", 60, 4, 10, c.model))
		got := run(t, tr, "2x4", las(tiresias.Queues{Thresholds: []float64{100}},
			tiresias.Known{}.Placement(skew.PackLimit)), sim.Runtime{})
		if p := []int32{got[0].Preemptions, got[1].Preemptions}; got[4].Start != c.start ||
			!slices.Equal(p, c.preemptions) {
			t.Errorf("%s: starts %v, low jobs preempted %d times, want %v, %d", c.model, got[4].Start, p, c.start,
				c.preemptions)
		}
		if wide := c.model == "vgg19"; wide != (got[0].Migrations == 1) {
			t.Errorf("%s: low0 moved %d times", c.model, got[0].Migrations)
		}
		if got[2].Preemptions+got[3].Preemptions+got[4].Preemptions != 0 {
			t.Errorf("%s: a job of the first queue was preempted", c.model)
		}
	}
}

// Ensure that a job is demoted at the very nanosecond at which width times run time reaches the limit, also when its
// run was broken off, and that an equal job that waits starts then: 100 GPU-seconds are 33.333333334 s on 3 GPUs.
// Reference: Gu et al., NSDI'19, discretised 2D-LAS: a job is demoted when its attained service reaches the threshold.
func TestDemotedAtTheThreshold(t *testing.T) {
	q := tiresias.Queues{Thresholds: []float64{100}}
	for _, c := range []struct {
		gpus int
		at   sched.Time
	}{{1, 100 * second}, {3, 33_333_333_334}, {4, 25 * second}, {7, 14_285_714_286}} {
		tr := traceOf(job("old", 0, c.gpus, 500, ""), job("new", 5, c.gpus, 1, ""))
		d := &diary{}
		got := run(t, tr, fmt.Sprintf("1x%d", c.gpus), las(q, place.Count{}), sim.Runtime{}, d)
		want := []string{fmt.Sprintf("%v demoted old", c.at)}
		if got[1].Start != c.at || !slices.Equal(d.notes, want) {
			t.Errorf("%d GPUs: next job starts %v, want %v; notes %q, want %q", c.gpus, got[1].Start, c.at, d.notes,
				want)
		}
	}
	// Demoted at 10 s after 20 GPU-seconds, off from 10 to 15, at 30 GPU-seconds 20 s after the start.
	tr := traceOf(job("old", 0, 2, 500, ""), job("new", 10, 2, 5, ""))
	d := &diary{}
	run(t, tr, "1x2", las(tiresias.Queues{Thresholds: []float64{20, 30}}, place.Count{}), sim.Runtime{}, d)
	if want := []string{"10s demoted old", "20s demoted old"}; !slices.Equal(d.notes, want) {
		t.Errorf("in two runs: notes %q, want %q", d.notes, want)
	}
}

// Ensure that a job is promoted to the first queue when it has waited knob times as long as it ran, both since its last
// promotion, and that both clocks start again then. With knob 1/2 and limit 4, on one GPU: a runs 0-4 and is promoted
// at 6 behind b, which runs 4-8; a runs 8-12, because its four seconds count again, and is promoted at 14 after two
// more of waiting; b, promoted at 10, runs 12-14. Reference: Gu et al., NSDI'19, PROMOTEKNOB.
func TestPromotionResetsBothClocks(t *testing.T) {
	tr := traceOf(job("a", 0, 1, 9, ""), job("b", 0, 1, 6, ""))
	d := &diary{}
	got := run(t, tr, "1x1", las(tiresias.Queues{Thresholds: []float64{4}, Knob: 0.5}, place.Count{}), sim.Runtime{}, d)
	want := []string{"4s demoted a", "6s promoted a", "8s demoted b", "10s promoted b", "12s demoted a",
		"14s promoted a"}
	if !slices.Equal(d.notes, want) {
		t.Errorf("notes %q, want %q", d.notes, want)
	}
	if ends := finishes(got); !slices.Equal(ends, []sched.Time{15 * second, 14 * second}) {
		t.Errorf("ends %v, want 15s, 14s", ends)
	}
	// Knob inf: pure two-dimensional attained service.
	got = run(t, tr, "1x1", las(tiresias.Queues{Thresholds: []float64{4}, Knob: math.Inf(1)}, place.Count{}),
		sim.Runtime{})
	if ends := finishes(got); !slices.Equal(ends, []sched.Time{13 * second, 15 * second}) {
		t.Errorf("without promotion: ends %v, want 13s, 15s", ends)
	}
}

// Ensure that one queue, or limits above all service, is first come first served with skipping, whatever the placement.
// Reference: Gu et al., NSDI'19, discretised 2D-LAS: FIFO inside a queue.
func TestOneQueueIsFIFOSkip(t *testing.T) {
	for seed := range uint64(5) {
		tr := trace.Testbed(seed)
		for _, p := range []sched.Placer{place.Count{}, place.Consolidate{},
			tiresias.Known{}.Placement(skew.PackLimit)} {
			want := run(t, tr, "15x4", baseline.FIFOSkip(p), sim.Runtime{Restart: time.Minute})
			for _, limits := range [][]float64{nil, {1e7}, {1e7, 2e7}} {
				got := run(t, tr, "15x4", las(tiresias.Queues{Thresholds: limits}, p),
					sim.Runtime{Restart: time.Minute})
				if diff := firstDifference(got, want); diff != "" {
					t.Errorf("seed %d, %T, limits %v: %s", seed, p, limits, diff)
				}
			}
		}
	}
}

// Ensure that with one GPU per job GPU time is time: limits in seconds are limits in GPU-seconds, and the shortest
// remaining service is the shortest remaining time. Whole seconds, because sums of seconds and of GPU-seconds round
// differently below that.
// Reference: Gu et al., NSDI'19, two-dimensional attained service is width times time.
func TestOneGPUPerJobHasOneDimension(t *testing.T) {
	for seed := range uint64(5) {
		tr := trace.Generate(trace.Generator{Seed: seed, Jobs: 400, Load: 1.2, GPUs: 8, Quantum: time.Second})
		q := tiresias.Queues{Thresholds: tiresias.DefaultThresholds, Knob: 4}
		seconds := q
		seconds.Seconds = true
		got := run(t, tr, "2x4", las(seconds, place.Count{}), sim.Runtime{})
		if diff := firstDifference(got, run(t, tr, "2x4", las(q, place.Count{}), sim.Runtime{})); diff != "" {
			t.Errorf("seed %d: %s", seed, diff)
		}
		got = run(t, tr, "2x4", baseline.SRSF(place.Count{}, baseline.Known{Work: tr.Oracle()}), sim.Runtime{})
		if diff := firstDifference(got, run(t, tr, "2x4",
			baseline.SRTF(place.Count{}, baseline.Known{Work: tr.Oracle()}), sim.Runtime{})); diff != "" {
			t.Errorf("seed %d: SRSF and SRTF: %s", seed, diff)
		}
	}
}

// firstDifference compares outcomes in all figures, by arrival.
func firstDifference(got, want []metrics.Job) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d jobs, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			return fmt.Sprintf("job %s:\n got %+v\nwant %+v", want[i].Name, got[i], want[i])
		}
	}
	return ""
}

// Ensure that a clock that ticks k times as fast changes nothing: with all times of the trace, thresholds, restart and
// quantum times k, every time of every job is times k. Promotion is a ratio of times and has no unit. Limits are
// multiples of all widths, so that all moments are whole seconds and nothing is rounded.
func TestScalingTimeScalesOutcomes(t *testing.T) {
	systems := map[string]func(tr *trace.Trace, k int) pipeline.Stages{
		"fifo":      func(*trace.Trace, int) pipeline.Stages { return baseline.FIFO(place.Consolidate{}) },
		"fifo-skip": func(*trace.Trace, int) pipeline.Stages { return baseline.FIFOSkip(place.Consolidate{}) },
		"srtf": func(tr *trace.Trace, _ int) pipeline.Stages {
			return baseline.SRTF(place.Consolidate{}, baseline.Known{Work: tr.Oracle()})
		},
		"srsf": func(tr *trace.Trace, _ int) pipeline.Stages {
			return baseline.SRSF(place.Consolidate{}, baseline.Known{Work: tr.Oracle()})
		},
		"las": func(_ *trace.Trace, k int) pipeline.Stages {
			return baseline.LAS(place.Consolidate{}, false, time.Duration(k)*time.Minute)
		},
		"tiresias-las": func(_ *trace.Trace, k int) pipeline.Stages {
			return las(scaledQueues(k, 0), tiresias.Known{}.Placement(skew.PackLimit))
		},
		"tiresias-las, knob 2": func(_ *trace.Trace, k int) pipeline.Stages {
			return las(scaledQueues(k, 2), tiresias.Known{}.Placement(skew.PackLimit))
		},
		"queues with an index": func(_ *trace.Trace, k int) pipeline.Stages {
			q := scaledQueues(k, 2)
			o, err := order.NewMLFQ(q.Thresholds, false, q.Knob, steps(1280*k))
			return must(pipeline.Stages{Order: o, Place: tiresias.Known{}.Placement(skew.PackLimit), Preempt: true},
				err)
		},
	}
	for seed := range uint64(2) {
		tr := trace.Testbed(seed)
		for name, stages := range systems {
			want := run(t, tr, "15x4", stages(tr, 1), sim.Runtime{Restart: 20 * time.Second})
			for _, k := range []int{2, 3, 7} {
				fast := scaled(tr, k)
				got := run(t, fast, "15x4", stages(fast, k), sim.Runtime{Restart: time.Duration(20*k) * time.Second})
				for i := range got {
					g, w := &got[i], &want[i]
					f := sched.Time(k)
					if g.Start != w.Start*f || g.Finish != w.Finish*f || g.Run != w.Run*time.Duration(k) ||
						g.Preemptions != w.Preemptions || g.Promotions != w.Promotions {
						t.Errorf("%s, seed %d, times %d: job %s:\n got %+v\nfrom %+v", name, seed, k, w.Name, *g, *w)
						break
					}
				}
			}
		}
	}
}

func scaledQueues(k int, knob float64) tiresias.Queues {
	return tiresias.Queues{Thresholds: []float64{float64(3200 * k), float64(7040 * k)}, Knob: knob}
}

// steps is an index that falls at every multiple of it. A Gittins table would do but for its edges, which are no whole
// numbers: jobs cross them at moments that are rounded to nanoseconds, and then ties fall one way or the other.
type steps int

var _ order.Index = steps(0)

func (s steps) At(a float64, _ int) (index, until float64) {
	n := math.Floor(a / float64(s))
	return 1 / (1 + n), (n + 1) * float64(s)
}

func scaled(tr *trace.Trace, k int) *trace.Trace {
	jobs := slices.Clone(tr.Jobs)
	for i := range jobs {
		jobs[i].Spec.Submit *= sched.Time(k)
		jobs[i].Duration *= time.Duration(k)
	}
	return traceOf(jobs...)
}

// Ensure that the order of rows in a file means nothing where no two jobs are submitted together: each job, by its
// name, fares the same.
func TestOrderOfRowsMeansNothing(t *testing.T) {
	for seed := range uint64(3) {
		tr := trace.Testbed(seed)
		for i := range tr.Jobs {
			tr.Jobs[i].Spec.Submit = sched.Time(30*i) * second
		}
		want := run(t, tr, "15x4", las(tiresias.Queues{Thresholds: tiresias.DefaultThresholds, Knob: 2},
			tiresias.Known{}.Placement(skew.PackLimit)), sim.Runtime{})
		rows := slices.Clone(tr.Jobs)
		rand.New(rand.NewPCG(seed, 7)).Shuffle(len(rows), func(i, k int) { rows[i], rows[k] = rows[k], rows[i] })
		var file bytes.Buffer
		fmt.Fprintln(&file, "job_id,num_gpu,submit_time,iterations,model_name,duration,interval")
		for i := range rows {
			s := &rows[i].Spec
			fmt.Fprintf(&file, "%s,%d,%d,1,%s,%d,0\n", s.Name, s.GPUs.Want, s.Submit/second, s.Model,
				int(rows[i].Duration.Seconds()))
		}
		shuffled, err := trace.Parse(&file, "shuffled.csv", trace.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := run(t, shuffled, "15x4", las(tiresias.Queues{Thresholds: tiresias.DefaultThresholds, Knob: 2},
			tiresias.Known{}.Placement(skew.PackLimit)), sim.Runtime{})
		if diff := firstDifference(got, want); diff != "" {
			t.Errorf("seed %d: %s", seed, diff)
		}
	}
}

// naive is discretised 2D-LAS written down as plainly as possible: every second it settles every job, moves it between
// queues and hands all GPUs out again, down the queues. Limits must be multiples of all widths, knobs whole.
type naive struct {
	gpus   int
	limits []int
	knob   int // 0 = never
	queues [][]*naiveJob
}

type naiveJob struct {
	submit, gpus, left         int
	start, end                 int
	executed, waited           int // since the last promotion
	queue                      int
	running                    bool
	preemptions, promotions    int
	arrived, finished, started bool
}

func (n *naive) play(jobs []*naiveJob) {
	n.queues = make([][]*naiveJob, len(n.limits)+1)
	for now, open := 0, len(jobs); open > 0; now++ {
		for _, j := range jobs { // a second has passed
			switch {
			case !j.arrived || j.finished:
			case j.running:
				j.executed++
				j.left--
			case j.executed > 0:
				j.waited++
			}
		}
		for _, j := range jobs { // ends, then arrivals
			if j.running && j.left == 0 {
				j.running, j.finished, j.end = false, true, now
				n.leave(j)
				open--
			}
		}
		for _, j := range jobs {
			if j.submit == now {
				j.arrived = true
				n.enter(j, 0)
			}
		}
		for _, j := range jobs {
			if j.arrived && !j.finished {
				n.move(j)
			}
		}
		n.handOut(now)
	}
}

func (n *naive) leave(j *naiveJob) {
	q := n.queues[j.queue]
	n.queues[j.queue] = slices.Delete(q, slices.Index(q, j), slices.Index(q, j)+1)
}

func (n *naive) enter(j *naiveJob, queue int) {
	j.queue = queue
	n.queues[queue] = append(n.queues[queue], j)
}

// move demotes a running job whose service has reached the limit of its queue, and promotes one that waited long
// enough.
func (n *naive) move(j *naiveJob) {
	switch {
	case j.running && j.queue < len(n.limits) && j.executed*j.gpus >= n.limits[j.queue]:
		n.leave(j)
		n.enter(j, j.queue+1)
	case !j.running && n.knob > 0 && j.queue > 0 && j.executed > 0 && j.waited >= n.knob*j.executed:
		j.executed, j.waited = 0, 0
		j.promotions++
		n.leave(j)
		n.enter(j, 0)
	}
}

// handOut gives all GPUs out again, skipping jobs that do not fit, and sorts those that run before those that wait.
func (n *naive) handOut(now int) {
	free := n.gpus
	for _, q := range n.queues {
		for _, j := range q {
			had := j.running
			j.running = j.gpus <= free
			if j.running {
				free -= j.gpus
			}
			if had && !j.running {
				j.preemptions++
			}
			if j.running && !j.started {
				j.started, j.start = true, now
			}
		}
		slices.SortStableFunc(q, func(a, b *naiveJob) int { return rank(a) - rank(b) })
	}
}

func rank(j *naiveJob) int {
	if j.running {
		return 0
	}
	return 1
}

// Ensure that the engine, which acts on events alone and through indices, decides what the naive twin decides that
// looks at everything every second: on random small traces, in starts, ends, preemptions and promotions.
func TestNaiveTwin(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		limits := [][]int{{}, {8}, {16, 40}, {8, 24, 80}, {64}}[r.IntN(5)]
		n := &naive{gpus: 8, limits: limits, knob: r.IntN(4)}
		q := tiresias.Queues{Knob: float64(n.knob)}
		for _, l := range limits {
			q.Thresholds = append(q.Thresholds, float64(l))
		}
		var jobs []trace.Job
		var twins []*naiveJob
		for i, now := 0, 0; i < 40; i++ {
			gpus, duration := 1<<r.IntN(4), 1+r.IntN(30)
			jobs = append(jobs, job(strconv.Itoa(i), now, gpus, duration, ""))
			twins = append(twins, &naiveJob{submit: now, gpus: gpus, left: duration})
			now += r.IntN(12)
		}
		n.play(twins)
		for i, g := range run(t, traceOf(jobs...), "2x4", las(q, place.Count{}), sim.Runtime{}) {
			w := twins[i]
			got := [4]int{int(g.Start / second), int(g.Finish / second), int(g.Preemptions), int(g.Promotions)}
			want := [4]int{w.start, w.end, w.preemptions, w.promotions}
			if got != want || g.Finish%second != 0 {
				t.Errorf("seed %d, limits %v, knob %d: job %d: start, end, preemptions, promotions %v, want %v", seed,
					limits, n.knob, i, got, want)
				break
			}
		}
	}
}
