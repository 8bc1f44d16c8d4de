package simulate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/trace"
)

// row is a job of a trace: submit, GPUs, duration; times in seconds.
type row [3]int

func traceOf(rows ...row) *trace.Trace {
	t := &trace.Trace{Path: "test.csv"}
	for i, r := range rows {
		t.Jobs = append(t.Jobs, trace.Job{Duration: time.Duration(r[2]) * time.Second,
			Spec: sched.JobSpec{Name: fmt.Sprint("j", i), Submit: sched.Time(r[0]) * sched.Time(time.Second),
				GPUs: sched.Rigid(r[1])}})
	}
	return t
}

// times prints when jobs start and finish, in seconds.
func times(jobs []metrics.Job) string {
	var b strings.Builder
	for i := range jobs {
		fmt.Fprintf(&b, "%s %v-%v ", jobs[i].Name, sched.FormatSeconds(time.Duration(jobs[i].Start)),
			sched.FormatSeconds(time.Duration(jobs[i].Finish)))
	}
	return strings.TrimSpace(b.String())
}

// set makes settings of "key=value" words.
func set(words ...string) map[string]string {
	m := map[string]string{}
	for _, w := range words {
		k, v, _ := strings.Cut(w, "=")
		m[k] = v
	}
	return m
}

// Ensure that Check says what Run would, names key, value and what it wants, and that what it lets pass runs.
func TestCheckIsRun(t *testing.T) {
	typed := traceOf(row{0, 1, 5})
	typed.Jobs[0].GPUType = "a100"
	half := traceOf(row{0, 1, 5})
	half.Jobs[0].Duration += time.Second / 2
	for _, c := range []struct {
		name string
		s    Request
		want string // "" = it runs
	}{
		{"fine", Request{System: "fifo"}, ""},
		{"unknown system", Request{System: "fif"}, `system: "fif" is not known (did you mean "fifo"?)`},
		{"no system", Request{}, `system: "" is not known`},
		{"unknown key", Request{System: "fifo", Settings: set("restart_overhed=1")},
			`system: fifo takes no key "restart_overhed" (did you mean "restart_overhead"?)`},
		{"another system's key", Request{System: "fifo", Settings: set("quantum=1")},
			`system: fifo takes no key "quantum"`},
		{"bad value", Request{System: "fifo", Settings: set("min_run=soon")},
			`system: fifo: min_run="soon", want a number >= 0, in seconds`},
		{"bad value of the world", Request{System: "fifo", Settings: set("start_delay=-1")},
			`system: fifo: start_delay="-1", want a number >= 0, in seconds`},
		{"bad penalty", Request{System: "fifo", Settings: set("spread_penalty=x")},
			`system: fifo: spread_penalty="x", want `},
		{"unknown preset", Request{System: "fifo", Preset: "tiresia"},
			`preset: "tiresia" is not known (did you mean "tiresias"?)`},
		{"preset without the system", Request{System: "las", Preset: "helios"},
			`preset: helios has no system "las", only fifo, sjf, srtf`},
		{"quantum within restart", Request{System: "las", Settings: set("quantum=62")},
			`system: quantum 1m2s is not longer than restart_overhead 1m2s: jobs would restart and never progress; ` +
				`raise it`},
		{"quantum within a given restart", Request{System: "las", Settings: set("restart_overhead=300")},
			`system: quantum 5m0s is not longer than restart_overhead 5m0s`},
		{"quantum just longer", Request{System: "las", Settings: set("quantum=62.000000001")}, ""},
		{"round within restart", Request{System: "las", Round: time.Minute},
			`system: round 1m0s is not longer than restart_overhead 1m2s`},
		{"a round of an order that stands", Request{System: "srtf", Round: time.Minute}, ""},
		{"thresholds fall", Request{System: "tiresias-las", Settings: set("thresholds=5,4")},
			"system: tiresias-las: order: thresholds [5 4], want finite, positive and rising"},
		{"type no one has", Request{System: "fifo", Trace: typed, Cluster: mustLoad(t, "1x2:v100+1x2:k80")},
			`trace: test.csv: job j0 wants GPU type "a100", the cluster has v100, k80`},
		{"type of a cluster without types", Request{System: "fifo", Trace: typed}, ""},
		{"replica: placement", Request{System: "tiresias-las", Preset: "tiresias", Settings: set("placement=packed")},
			`preset: tiresias: placement="packed", want count`},
		{"replica: half seconds", Request{System: "tiresias-las", Preset: "tiresias", Trace: half},
			"preset: tiresias: job j0: submit 0s, duration 5.5s, want whole seconds"},
		{"replica: no distribution", Request{System: "tiresias-gittins", Preset: "tiresias"},
			"wants --set tiresias-gittins.distribution=FILE"},
		{"replica: none needed", Request{System: "tiresias-gittins", Preset: "tiresias",
			Settings: set("promote_knob=2")}, ""},
		{"replica: unit", Request{System: "tiresias-gittins", Preset: "tiresias",
			Settings: set("promote_knob=2", "unit=seconds")},
			"preset: tiresias: published: gittins ranks by GPU-seconds"},
		{"replica: bad value", Request{System: "tiresias-las", Preset: "tiresias", Settings: set("promote_knob=x")},
			`preset: tiresias: promote_knob="x", want `},
	} {
		s := c.s
		if s.Trace == nil {
			s.Trace = traceOf(row{0, 1, 5}, row{1, 2, 7})
		}
		if s.Cluster == nil {
			s.Cluster = mustLoad(t, "1x2")
		}
		err := s.Check()
		out, runErr := s.Run(context.Background())
		if fmt.Sprint(err) != fmt.Sprint(runErr) {
			t.Errorf("%s: Check says %v, Run %v", c.name, err, runErr)
		}
		switch {
		case c.want == "" && (err != nil || out.Finished != len(s.Trace.Jobs)):
			t.Errorf("%s: %v, %+v, want all finished", c.name, err, out)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

// alike are the scores of n GPUs that do not differ.
func alike(n int) *variability.Scores {
	s := &variability.Scores{Name: "alike", Classes: []string{"A"}, PM: [][]float64{make([]float64, n)}}
	for g := range n {
		s.PM[0][g] = 1
		s.GPUs = append(s.GPUs, variability.GPU{Name: fmt.Sprint(g)})
	}
	return s
}

// Ensure that every key of the simulated world has its documented default, and that every system takes it.
func TestRuntimeDefaults(t *testing.T) {
	tr := trace.Generate(trace.Generator{Seed: 2, Jobs: 40, Load: 1.2, GPUs: 8, Models: []string{"vgg16", "resnet50"},
		Mix:       []trace.Width{{GPUs: 1, Share: .4}, {GPUs: 3, Share: .6}},
		Durations: trace.Lognormal{Parts: []trace.Part{{Weight: 1, Mu: 6, Sigma: 1}}, Max: 9000}})
	c := *mustLoad(t, "2x4")
	c.Failures.MTBF, c.Failures.Repair, c.Failures.Seed = 2*time.Hour, time.Minute, 1
	run := func(sys string, settings map[string]string) string {
		h := &eventlog.Hash{}
		simulate(t, &Request{Trace: tr, Cluster: &c, System: sys, Settings: settings, Sinks: []eventlog.Sink{h},
			Known: alike(8), Budget: 6})
		return h.Sum()
	}
	other := set("restart_overhead=10", "start_delay=5", "stop_delay=5", "checkpoint_interval=30", "spread_penalty=3",
		"locality_penalty=2", "restart_at_first=yes", "report_interval=60")
	for _, sys := range system.Names() {
		all := map[string]string{}
		for _, k := range RuntimeKeys {
			all[k.Name] = k.Default
		}
		if run(sys, nil) != run(sys, all) {
			t.Errorf("%s: %v, the documented defaults, are not what leaving them out means", sys, all)
		}
	}
	want := run("srtf", set("placement=packed"))
	for _, k := range RuntimeKeys {
		if _, ok := other[k.Name]; !ok {
			// they name files: slowdown_test.go, spells_test.go
			elsewhere := []string{"classes", "locality", "slow_gpus",
				// of nothing without sleep, reports, sharing
				"boot_delay", "report_noise", "interference_noise", "interference_seed"}
			if !slices.Contains(elsewhere, k.Name) {
				t.Errorf("key %s: want a value here, or a test elsewhere", k.Name)
			}
			continue
		}
		if run("srtf", set("placement=packed", k.Name+"="+other[k.Name])) == want {
			t.Errorf("%s=%s changes nothing", k.Name, other[k.Name])
		}
	}
}

// Ensure that a GPU type of the trace keeps a job to the nodes of that type, by its name in the cluster, and that
// neither trace nor cluster is changed by a run.
func TestGPUTypesAreResolved(t *testing.T) {
	tr := traceOf(row{0, 1, 10}, row{0, 1, 10}, row{0, 2, 10}, row{0, 1, 10})
	for i, typ := range []string{"k80", "k80", "v100", ""} {
		tr.Jobs[i].GPUType = typ
	}
	c := mustLoad(t, "1x2:v100+1x1:k80")
	var on []string
	sink := sinkFunc(func(v *sched.View, e *sched.Event) {
		if e.Kind == sched.AttemptStarted {
			on = append(on, fmt.Sprint(v.Jobs[e.Job].Spec.Name, " ",
				c.Types[v.Nodes[v.GPUs[v.Jobs[e.Job].GPUs[0]].Node].Spec.Type], " ", e.Time))
		}
	})
	out := simulate(t, &Request{Trace: tr, Cluster: c, System: "fifo-skip", Settings: set("placement=count"),
		Sinks: []eventlog.Sink{sink}})
	if got, want := strings.Join(on, ", "), "j0 k80 0s, j2 v100 0s, j1 k80 10s, j3 v100 10s"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if out.Finished != 4 || tr.Jobs[0].Spec.Types != 0 || tr.Jobs[0].GPUType != "k80" {
		t.Errorf("%d finished, trace now %+v", out.Finished, tr.Jobs[0])
	}
}

type sinkFunc func(v *sched.View, e *sched.Event)

// Log calls f.
func (f sinkFunc) Log(v *sched.View, e *sched.Event) { f(v, e) }

// Ensure that commands of users take effect, by hand on one node of two GPUs: job 0 is cancelled at 4 and gives its
// GPUs to job 1, which is paused at 6 having run 2 s, and resumed at 20; job 2 takes the gap.
func TestInjectedCommands(t *testing.T) {
	at := func(sec int, c sched.Command, j sched.JobID) sched.Event {
		return sched.Event{Time: sched.Time(sec) * sched.Time(time.Second), Kind: sched.JobCommanded, Job: j,
			Code: int32(c)}
	}
	s := Request{Trace: traceOf(row{0, 2, 10}, row{0, 2, 10}, row{1, 2, 5}), Cluster: mustLoad(t, "1x2"),
		System: "fifo", Settings: set("restart_overhead=3"),
		Inject: []sched.Event{at(4, sched.CancelJob, 0), at(6, sched.PauseJob, 1), at(20, sched.ResumeJob, 1)}}
	out := simulate(t, &s)
	if got, want := times(out.PerJob), "j0 0-4 j1 4-31 j2 6-11"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if out.Finished != 2 || out.PerJob[0].Outcome != sched.Cancelled || out.PerJob[1].Run != 13*time.Second ||
		out.Preemptions != 0 {
		t.Errorf("%+v, %+v", out.Result, out.PerJob)
	}
	if len(s.Inject) != 3 || s.Inject[0].Job != 0 {
		t.Error("the injected events were changed")
	}
}

// Ensure that a preset gives defaults only: what is given wins, and what neither says is as without a preset.
func TestGivenBeatsPreset(t *testing.T) {
	tr := traceOf(row{0, 2, 100}, row{10, 1, 20}, row{20, 2, 50})
	run := func(preset string, words ...string) string {
		return times(simulate(t, &Request{Trace: tr, Cluster: mustLoad(t, "1x2"), System: "srtf", Preset: preset,
			Settings: set(words...)}).PerJob)
	}
	free := run("", "restart_overhead=0", "spread_penalty=0", "placement=count")
	if got := run("tiresias"); got != free || got != "j0 0-170 j1 10-30 j2 30-80" {
		t.Errorf("preset: %s, want free restarts: %s", got, free)
	}
	if got, want := run("tiresias", "restart_overhead=7"), run("", "restart_overhead=7"); got != want || got == free {
		t.Errorf("preset, restarts of 7 s given: %s, want %s", got, want)
	}
	for i := range Presets {
		for _, sys := range Presets[i].Systems() {
			info, err := system.Named(sys)
			if err == nil {
				err = CheckKeys(info, Presets[i].Name, Presets[i].Defaults(sys))
			}
			if err != nil {
				t.Errorf("preset %s: %v", Presets[i].Name, err)
			}
		}
	}
}

// Ensure that an ended context ends a run, that sinks hear everything, and that the outcome counts it.
func TestRunEndsAndTells(t *testing.T) {
	events := uint64(0)
	s := Request{Trace: traceOf(row{0, 1, 5}, row{1, 1, 5}), Cluster: mustLoad(t, "1x1"), System: "fifo",
		Sinks: []eventlog.Sink{sinkFunc(func(*sched.View, *sched.Event) { events++ })}}
	if out := simulate(t, &s); out.Events != events || events == 0 {
		t.Errorf("%d events counted, %d said", out.Events, events)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was cancelled", err)
	}
}

// integerTrace draws a small trace in whole seconds, with few values so that much falls together.
func integerTrace(r *rand.Rand, widths []int) *trace.Trace {
	var rows []row
	at := 0
	for range 2 + r.IntN(30) {
		if r.IntN(3) == 0 {
			at += r.IntN(60)
		}
		rows = append(rows, row{at, widths[r.IntN(len(widths))], 1 + r.IntN(100)})
	}
	return traceOf(rows...)
}

// Ensure that the replica of the released simulator with one queue is FIFO with skipping, which goes through the
// engine.
func TestReplicaWithOneQueueIsFIFOSkip(t *testing.T) {
	for seed := range uint64(150) {
		tr := integerTrace(rand.New(rand.NewPCG(seed, 6)), []int{1, 1, 2, 3, 4, 7, 8})
		run := func(sys string, words ...string) string {
			return times(simulate(t, &Request{Trace: tr, Cluster: mustLoad(t, "2x4"), System: sys, Preset: "tiresias",
				Settings: set(words...)}).PerJob)
		}
		if replica, engine := run("tiresias-las", "thresholds="), run("fifo-skip"); replica != engine {
			t.Fatalf("seed %d: replica\n%s\nengine\n%s", seed, replica, engine)
		}
	}
}

// Ensure that the queues of the replica and of the engine decide alike where no quirk of the released simulator acts.
// Its wake-up for a demotion is exact where the limit counts seconds; then demotions of jobs that stop and go on fall
// on whole seconds. Its list of ending jobs goes wrong only if an arrival and the end of a job that runs were to fall
// together: such traces are left out.
func TestReplicaAgainstEngineWithoutQuirks(t *testing.T) {
	compared, preempted, promoted := 0, int64(0), int64(0)
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 8))
		widths := [][]int{{1}, {1, 2, 3, 4, 5}}[seed%2]
		tr := integerTrace(r, widths)
		settings := set("unit=seconds", "placement=count", "restart_overhead=0",
			"thresholds="+[]string{"20", "10,30", "5,40,60", ""}[r.IntN(4)],
			"promote_knob="+[]string{"inf", "1", "3"}[r.IntN(3)])
		tie := false
		sink := sinkFunc(func(v *sched.View, e *sched.Event) {
			if e.Kind == sched.AttemptStarted {
				end := e.Time.Add(tr.Jobs[e.Job].Duration - e.Work)
				tie = tie || slices.ContainsFunc(tr.Jobs, func(j trace.Job) bool { return j.Spec.Submit == end })
			}
		})
		s := Request{Trace: tr, Cluster: mustLoad(t, []string{"1x2", "1x5"}[seed%2]), System: "tiresias-las",
			Settings: settings, Sinks: []eventlog.Sink{sink}}
		ours := simulate(t, &s)
		if tie {
			continue
		}
		s.Preset, s.Sinks = "tiresias", nil
		theirs := simulate(t, &s)
		if a, b := line(ours), line(theirs); a != b {
			t.Fatalf("seed %d: %v\nengine\n%s\nreplica\n%s", seed, settings, a, b)
		}
		compared, preempted, promoted = compared+1, preempted+ours.Preemptions, promoted+ours.Promotions
	}
	if compared < 100 || preempted < 100 || promoted < 20 {
		t.Errorf("%d traces compared, %d preemptions, %d promotions: too few to say anything", compared, preempted,
			promoted)
	}
}

func line(o *Outcome) string {
	var b strings.Builder
	for i := range o.PerJob {
		j := &o.PerJob[i]
		fmt.Fprintf(&b, "%s %v-%v run %v preempted %d promoted %d\n", j.Name, j.Start, j.Finish, j.Run, j.Preemptions,
			j.Promotions)
	}
	return b.String()
}
