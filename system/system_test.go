package system_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/model/dist"
	"github.com/trainyard/trainyard/model/skew"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
	"github.com/trainyard/trainyard/trace"
)

// small is a trace that keeps two nodes of four GPUs busy for a while: long enough to reach every queue and quantum,
// and with models, users and widths above a node. Every sixth job may be resized.
func small() *trace.Trace {
	tr := trace.Generate(trace.Generator{Seed: 3, Jobs: 60, Load: 1.3, GPUs: 8,
		Models: []string{"vgg16", "resnet50", "alexnet"}, Users: 4,
		Mix: []trace.Width{{GPUs: 1, Share: .5}, {GPUs: 2, Share: .2}, {GPUs: 3, Share: .1},
			{GPUs: 4, Share: .1}, {GPUs: 6, Share: .1}},
		Durations: trace.Lognormal{Parts: []trace.Part{{Weight: .8, Mu: 6, Sigma: 1},
			{Weight: .2, Mu: 8.5, Sigma: .5}}, Max: 20000}})
	for i := 0; i < len(tr.Jobs); i += 6 {
		g := &tr.Jobs[i].Spec.GPUs
		g.Min, g.Max = 1, 8
	}
	return tr
}

// build returns a system under settings, with an oracle and a given distribution if sizes is set.
func build(info *system.Info, tr *trace.Trace, sizes *dist.Empirical, settings map[string]string) (system.System,
	error) {
	return info.Build(system.Knowledge{Work: tr.Oracle(), Files: filesOf(sizes), Scores: scores(), PerNode: 4,
		MostGPUs: 8, Budget: 6}, key.NewSettings(settings), nil)
}

func filesOf(sizes *dist.Empirical) key.Contents {
	if sizes == nil {
		return nil
	}
	return system.Distribution.Holds(sizes)
}

// scores are those of 8 GPUs, some slower than others.
func scores() *variability.Scores {
	s := &variability.Scores{Name: "small", Classes: []string{"A", "B"},
		PM: [][]float64{{1, 1.2, .9, 1, 2.5, .9, 1, 1.2}, {1, 1, 1.1, 1, 1, 1.1, 1, 1}}}
	for g := range s.PM[0] {
		s.GPUs = append(s.GPUs, variability.GPU{Name: fmt.Sprint(g)})
	}
	return s
}

// base are settings under which every key of a system can make a difference.
func base(info *system.Info) map[string]string {
	set := map[string]string{}
	for _, name := range info.KeyNames() {
		switch name {
		case "placement":
			set[name] = "skew"
		case "order":
			set[name] = "srtf"
		}
	}
	return set
}

// run simulates a system and returns the hash of its events and its figures. more are sinks that are given its Decider.
func run(t *testing.T, info *system.Info, tr *trace.Trace, settings map[string]string,
	more ...func(sched.Decider) eventlog.Sink) (string, metrics.Result) {
	t.Helper()
	sys, err := build(info, tr, nil, settings)
	if err != nil {
		t.Fatalf("%s %v: %v", info.Name, settings, err)
	}
	c, err := cluster.Load("2x4")
	if err != nil {
		t.Fatal(err)
	}
	r := sim.Runtime{Restart: 30 * time.Second,
		Slowdown: func(_ *sched.View, j *trace.Job, _ []sched.GPUID, nodes, need int) float64 {
			f, _ := skew.Of(j.Spec.Model)
			if nodes <= need {
				f = 0
			}
			return 1 + float64(skew.Penalty*f)
		}}
	d, err := sim.New(tr, c, sim.Options{Runtime: r})
	if err != nil {
		t.Fatal(err)
	}
	h, rec := &eventlog.Hash{}, metrics.NewRecorder(len(tr.Jobs))
	sinks := []eventlog.Sink{h, rec}
	for _, f := range more {
		sinks = append(sinks, f(sys.Decider))
	}
	if err := engine.Run(context.Background(), engine.NewState(eventlog.Header{ShareLimit: sys.ShareLimit}), d,
		sys.Decider, engine.Options{Sinks: sinks}); err != nil {
		t.Fatal(err)
	}
	return h.Sum(), rec.Result(info.Name)
}

// Ensure that every system says what it is, is found by its name, and names no key twice.
func TestTable(t *testing.T) {
	names := system.Names()
	for i, info := range system.Table() {
		if info.Line == "" || info.Assumes == "" || info.Source == "" || info.Name != names[i] ||
			slices.Index(names, info.Name) != i {
			t.Errorf("row %d: %+v, want all said, and a name of its own", i, info)
		}
		found, err := system.Named(info.Name)
		if err != nil || found.Name != info.Name {
			t.Errorf("%s is not found: %v", info.Name, err)
		}
		keys := info.KeyNames()
		for k, name := range keys {
			if slices.Index(keys, name) != k {
				t.Errorf("%s: key %s twice", info.Name, name)
			}
		}
		for _, k := range slices.Concat(info.Keys, info.CommonKeys(), info.ProvisioningKeys()) {
			if k.Doc == "" || !slices.Contains(keys, k.Name) {
				t.Errorf("%s: key %+v without a word, or not among %v", info.Name, k, keys)
			}
		}
	}
	system.Table()[0].Name = "changed"
	if system.Names()[0] != names[0] {
		t.Error("the table can be changed from outside")
	}
}

// Ensure that the common keys carry the defaults of the system, and that asking for them changes no other's.
func TestCommonKeys(t *testing.T) {
	for name, want := range map[string]string{"tiresias-las": "skew", "fifo": "consolidate"} {
		info, err := system.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		keys := info.CommonKeys()
		if keys[0].Name != "placement" || keys[0].Default != want {
			t.Errorf("%s: %+v, want placement %s by default", name, keys[0], want)
		}
	}
	if system.Common[0].Default != "consolidate" {
		t.Errorf("common default is now %q", system.Common[0].Default)
	}
}

// Ensure that a name which is not known gives a hint where one is near.
func TestNamed(t *testing.T) {
	for name, want := range map[string]string{"tiresias_las": `did you mean "tiresias-las"?`,
		"SRTF":      `did you mean "srtf"?`,
		"fifo-easi": `did you mean "fifo-easy"?`, "": `system: "" is not known;`,
		"quux": `system: "quux" is not known;`} {
		if _, err := system.Named(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
}

// Ensure that every system finishes every job of a small trace, and that its events are the same on each run and
// however many threads there are.
func TestAllFinishTheSameWay(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	tr, sums := small(), map[string]string{}
	for _, info := range system.Table() {
		var first string
		for i, threads := range []int{4, 1, 4} {
			runtime.GOMAXPROCS(threads)
			sum, res := run(t, &info, tr, nil)
			if res.Finished != len(tr.Jobs) || res.MaxWait == 0 && !info.Rents {
				t.Errorf("%s: %d of %d finished, longest wait %v: want all, and some waiting", info.Name, res.Finished,
					len(tr.Jobs), res.MaxWait)
			}
			if i == 0 {
				first = sum
			}
			if sum != first {
				t.Errorf("%s: run %d gives %s, the first %s", info.Name, i, sum, first)
			}
		}
		if other, ok := sums[first]; ok && !info.Rents { // those differ where there is something to rent
			t.Errorf("%s and %s decide alike: the trace says nothing", info.Name, other)
		}
		sums[first] = info.Name
	}
}

// Ensure that the documented default of each key is what leaving it out means.
func TestDocumentedDefaults(t *testing.T) {
	tr := small()
	for _, info := range system.Table() {
		want, _ := run(t, &info, tr, nil)
		all := map[string]string{}
		for _, k := range slices.Concat(info.Keys, info.CommonKeys(), info.ProvisioningKeys()) {
			if k.Default == "" {
				continue // nothing that could be given means the same
			}
			all[k.Name] = k.Default
			if got, _ := run(t, &info, tr, map[string]string{k.Name: k.Default}); got != want {
				t.Errorf("%s: %s=%s, its default, gives other events than leaving it out", info.Name, k.Name, k.Default)
			}
		}
		if got, _ := run(t, &info, tr, all); got != want {
			t.Errorf("%s: all defaults, %v, give other events than none", info.Name, all)
		}
	}
}

// Ensure that every key has an effect: some value of it other than the default gives other events. The keys that name
// files are read elsewhere.
func TestEveryKeyIsHeeded(t *testing.T) {
	values := map[string]string{"placement": "packed", "pack_limit": "0.05", "min_run": "2000", "preempt_limit": "1",
		"user_limit": "4", "unit": "seconds", "quantum": "100",
		"thresholds": "900", "promote_knob": "0.5", "delta": "300", "order": "las", "move_cost": "0", "tolerance": "3",
		"replace_every": "3000", "backfill": "on",
		"interval": "1000", "mode": "drop", "k_max": "1", "sizes": "oracle", "scores": "use"}
	elsewhere := []string{"stragglers", "power_cap",
		// where jobs may not be stopped: unsaved_test.go
		"unsaved", "loss_rail", "keep_free",
		// where jobs have priorities: priority_test.go
		"priority", "priority_age", "priority_preempts",
		// where jobs share: system/eaco
		"history", "late", "exclusive_priority", "u_threshold", "mem_threshold", "slowdown_limit", "max_jobs",
		"patience", "model_parallel", "kwh_per_job_hour", "share_memory",
		// where there is something to rent
		"provision", "reserve", "max_gpus", "keep", "sleep", "budget", "utility", "information", "curves", "max_nodes",
		"seed",
		"month_budget", "month_carry", "month_zone", "month_from", "priority_weight", "correct",
		"objective", "batch", "lr", "fairness", "horizon", "pay"} // known applications: package experiment
	tr := small()
	for _, info := range system.Table() {
		want, _ := run(t, &info, tr, base(&info))
		for _, k := range slices.Concat(info.Keys, info.CommonKeys(), info.ProvisioningKeys()) {
			value, ok := values[k.Name]
			if ok == (k.Files != nil || slices.Contains(elsewhere, k.Name)) {
				t.Errorf("key %s: want it here or elsewhere", k.Name)
			}
			if !ok || info.Rents && k.Name != "user_limit" || (k.Name == "min_run" || k.Name == "preempt_limit") &&
				!preempts(t, &info, tr) {
				continue
			}
			settings := base(&info)
			settings[k.Name] = value
			if got, _ := run(t, &info, tr, settings); got == want {
				t.Errorf("%s: %s=%s changes nothing", info.Name, k.Name, value)
			}
		}
	}
}

func preempts(t *testing.T, info *system.Info, tr *trace.Trace) bool {
	t.Helper()
	preempts := false
	look := func(st *pipeline.Stages) { preempts = st.Preempt || st.Allocate != nil }
	if info.Stages == nil {
		return true
	}
	if _, err := info.Build(system.Knowledge{Work: tr.Oracle(), Scores: scores(), PerNode: 4, MostGPUs: 8, Budget: 6},
		key.NewSettings(nil), look); err != nil {
		t.Fatal(err)
	}
	return preempts
}

// Ensure that a wrong value of any key is an error that names the system, the key, the value and what is wanted, under
// every placement.
func TestWrongValues(t *testing.T) {
	tr := small()
	numbers := []string{"x", "-1", "NaN", "", "1e999", "1,5"}
	wrong := map[string][]string{
		"placement":     {"Packed", "x", ""},
		"pack_limit":    append([]string{"Learned"}, numbers...),
		"min_run":       append([]string{"inf", "1e12"}, numbers...),
		"preempt_limit": {"x", "-1", "1.5", "", "auto", "inf"},
		"user_limit":    {"x", "-1", "1.5", "", "99999999999999999999", "inf"},
		"unit":          {"gpu", "second", ""},
		"quantum":       append([]string{"inf", "1e12"}, numbers...),
		"thresholds":    {"x", "1,,2", "NaN", "1;2", ","},
		"promote_knob":  numbers,
		"delta":         numbers,
		"order":         {"pal", "x", ""},
		"move_cost":     append([]string{"inf"}, numbers...),
		"replace_every": append([]string{"inf"}, numbers...),
		"backfill":      {"yes", "", "On"},
		"unsaved":       {"maybe", "", "Leave"},
		"pay":           {"yes", "", "On"},
		"priority":      {"class", "", "Own"}, "priority_preempts": {"on", "", "Yes"},
		"priority_age": append([]string{"inf", "1e12"}, numbers...),
		"stragglers":   {"on", "Watch", ""},
		"utility":      append([]string{"0", "1.5", "inf"}, numbers...),
	}
	for _, info := range system.Table() {
		for _, k := range slices.Concat(info.Keys, info.CommonKeys(), info.ProvisioningKeys()) {
			for _, value := range wrong[k.Name] {
				for _, placement := range []string{"count", "skew"} {
					settings := base(&info)
					if _, takes := settings["placement"]; takes {
						settings["placement"] = placement
					}
					settings[k.Name] = value
					_, err := build(&info, tr, nil, settings)
					want := fmt.Sprintf("system: %s: %s=%q, want ", info.Name, k.Name, value)
					if err == nil || !strings.HasPrefix(err.Error(), want) {
						t.Errorf("%s=%q: %v, want it to start with %s", k.Name, value, err, want)
					}
				}
			}
		}
	}
}

// Ensure that values which are numbers but make no sense together are refused, and that the first wrong one is named.
func TestWrongTogether(t *testing.T) {
	for _, c := range []struct{ name, key, value, want string }{
		{"tiresias-las", "thresholds", "5,5", "order: thresholds [5 5], want finite, positive and rising"},
		{"tiresias-las", "thresholds", "-1", "positive"},
		{"tiresias-gittins", "thresholds", "0", "positive"},
		{"tiresias-gittins", "thresholds", "5,inf", "finite"},
		{"fifo", "placement", "pakced", `did you mean "packed"?`},
		{"las", "unit", "gpu-second", `did you mean "gpu-seconds"?`},
	} {
		info, err := system.Named(c.name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = build(info, small(), nil, map[string]string{c.key: c.value}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s=%s: %v, want %s", c.name, c.key, c.value, err, c.want)
		}
	}
	for name, want := range map[string]bool{"fifo": true, "las": true, "fifo-easy": false, "srtf": false,
		"tiresias-gittins": true, "optimus": false, "afs-l": false} {
		info, err := system.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := info.Build(system.Knowledge{}, key.NewSettings(nil), nil); (err == nil) != want {
			t.Errorf("%s without knowledge: %v, want it built: %v", name, err, want)
		}
	}
	for name, want := range map[string]bool{"elastic": true, "elastic-fifo": true, "pollux": true,
		"pollux-autoscale": true, "optimus": false, "afs-l": false} {
		info, err := system.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := info.Build(system.Knowledge{PerNode: 4, MostGPUs: 8}, key.NewSettings(nil),
			nil); (err == nil) != want {
			t.Errorf("%s without knowledge of work: %v, want it built: %v", name, err, want)
		}
	}
}

// Ensure that min_run and user_limit hold in every system: no attempt is preempted earlier, no user holds more.
func TestCommonLimitsHold(t *testing.T) {
	tr := small()
	const least, most = 400 * time.Second, 6
	for _, info := range system.Table() {
		sys, err := build(&info, tr, nil, map[string]string{"min_run": "400", "user_limit": "6", "quantum": "120"})
		if err != nil {
			t.Fatal(err)
		}
		c, err := cluster.Load("2x4")
		if err != nil {
			t.Fatal(err)
		}
		d, err := sim.New(tr, c, sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		check := sink(func(v *sched.View, e *sched.Event) {
			held := map[string]int{}
			for i := range v.Jobs {
				held[v.Jobs[i].Spec.User] += len(v.Jobs[i].Target)
			}
			for user, n := range held {
				if n > most {
					t.Fatalf("%s: %v: user %s holds %d GPUs", info.Name, e.Time, user, n)
				}
			}
			if e.Kind == sched.Ordered && sched.ActionKind(e.Code) == sched.Stop &&
				e.Time.Sub(v.Jobs[e.Job].LastStart) < least {
				t.Fatalf("%s: job %d, up since %v, is stopped at %v", info.Name, e.Job, v.Jobs[e.Job].LastStart, e.Time)
			}
		})
		if err := engine.Run(context.Background(), engine.NewState(eventlog.Header{ShareLimit: sys.ShareLimit}), d,
			sys.Decider, engine.Options{Sinks: []eventlog.Sink{check}}); err != nil {
			t.Fatal(err)
		}
	}
}

type sink func(v *sched.View, e *sched.Event)

// Log calls s.
func (s sink) Log(v *sched.View, e *sched.Event) { s(v, e) }
