package simulate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/model/power"
	"github.com/trainyard/trainyard/model/skew"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
	"github.com/trainyard/trainyard/system/pal"
	"github.com/trainyard/trainyard/trace"
)

// Simulation is one run of one system on one trace and one cluster.
type Simulation struct {
	Trace    *trace.Trace
	Cluster  *cluster.Cluster
	System   string
	Settings map[string]string                   // keys of the system and of RuntimeKeys
	Preset   string                              // "" = none
	Budget   float64                             // GPUs rented on average, for systems that rent; 0 = none given
	Round    time.Duration                       // decisions at multiples of it only; 0 = the system's own
	Files    key.Contents                        // of the files that keys name
	Apps     map[string]speedup.App              // how fast jobs truly go, by the model they name; nil = in proportion to their GPUs
	Mix      []speedup.Class                     // rates and curves of applications as an oracle knows them; nil = those of the trace
	Scores   *variability.Scores                 // true PM scores of the GPUs by number; nil = GPUs do not differ
	Known    *variability.Scores                 // what the system is told of them; nil = Scores
	Sharing  *Sharing                            // how jobs that share GPUs slow each other down; nil = they do not, and none consents by it
	Caps     CapCurves                           // what GPUs do under power caps, by model; nil = caps slow nobody down
	Energy   metrics.Energy                      // power caps, prices and carbon of energy, where known
	Inject   []sched.Event                       // user commands, prices, node changes from outside
	Sinks    []eventlog.Sink                     // told every event; not under a preset that has a simulator of its own
	Log      func(eventlog.Header) eventlog.Sink // begins one that is told how the log begins as well; nil = there is none
	Clock    func() int64                        // nanoseconds, for decision times; nil = not measured

	NoiseSeed uint64 // of the key report_noise

	Adapt func(*pipeline.Stages) // shown the system's stages, may change them; nil = nobody is
}

// Outcome is what came of a simulation.
type Outcome struct {
	metrics.Result
	PerJob []metrics.Job // in order of arrival
}

// RuntimeKeys are the keys of the simulated world, taken for every system.
var RuntimeKeys = system.World

// Check returns what is wrong with the request, or nil: an unknown system, key or preset, a value that makes no sense.
// Whatever Run returns after a Check without error is not the request's fault.
func (s *Simulation) Check() error {
	_, err := s.build()
	return err
}

// Run simulates to the end: until nothing can happen any more.
func (s *Simulation) Run(ctx context.Context) (*Outcome, error) {
	b, err := s.build()
	if err != nil {
		return nil, err
	}
	if b.alone != nil {
		return b.alone()
	}
	return s.drive(ctx, b)
}

// built is a simulation ready to run: a trace, a system and a world, or a replica that needs nothing more.
type built struct {
	trace   *trace.Trace
	cluster *cluster.Cluster
	header  eventlog.Header
	system  system.System
	runtime sim.Runtime
	alone   func() (*Outcome, error)
}

// build reads the settings, then makes the world, then what is known of it, then the system that knows it.
func (s *Simulation) build() (*built, error) {
	info, err := system.Named(s.System)
	if err != nil {
		return nil, err
	}
	err = CheckKeys(info, s.Preset, s.Settings)
	if err != nil {
		return nil, err
	}
	p, err := presetFor(s.Preset, s.System)
	if err != nil {
		return nil, err
	}
	values := withDefaults(s.Settings, p.defaults)
	set := system.NewSettings(values).Bind(KeysOf(info, s.Preset), s.Scores != nil, s.Files)
	if p.alone != nil {
		return s.buildAlone(p, set)
	}
	w := *s
	if info.Rents {
		w.Cluster = s.Cluster.ToRent(system.BootDelay.Get(set))
	}
	b := &built{cluster: w.Cluster}
	oracle, err := w.world(b, p, info, set)
	if err != nil {
		return nil, err
	}
	k, err := w.knowledge(b, set, oracle)
	if err != nil {
		return nil, err
	}
	if err = set.Err(); err != nil {
		return nil, fmt.Errorf("system: %s: %w", s.System, err)
	}
	b.header = eventlog.Header{Trace: s.Trace.Path, Zone: s.Trace.Zone, Cluster: s.Cluster.Name, System: s.System, Preset: s.Preset, Settings: values,
		Round: s.Round, Budget: s.Budget, NodeGPUs: w.perNode(), GPUs: w.Cluster.MostGPUs(), Types: b.cluster.Types, Pools: w.Cluster.PoolSpecs(),
		Seed: s.Cluster.Failures.Seed}
	if b.system, err = system.Begin(&b.header, k, w.adapt(p, &b.runtime)); err != nil {
		return nil, err
	}
	return b, progresses(b.system, s.Round, b.runtime)
}

// buildAlone is build for a preset with a simulator of its own.
func (s *Simulation) buildAlone(p preset, set *system.Settings) (b *built, err error) {
	for _, k := range [...]*key.Key{&system.SlowGPUs.Key, &system.ReportInterval.Key, &system.ReportNoise.Key} {
		if set.Has(k.Name) {
			return nil, fmt.Errorf("preset: %s=%s, want none: the released simulator knows nothing of it", k.Name, set.Text(k))
		}
	}
	b = &built{}
	b.alone, err = p.alone(s, set)
	return b, err
}

// world fills in the jobs, the cluster and the laws by which jobs run on it. It returns the truth about their speeds, nil if
// they have none of their own.
func (s *Simulation) world(b *built, p preset, info *system.Info, set *system.Settings) (oracle *speedup.Oracle, err error) {
	if b.trace, err = s.prepared(p, info); err != nil {
		return nil, err
	}
	oracle = s.oracle(b.trace)
	err = errors.Join(measure(b.trace, oracle), s.checkFiles(set), s.Caps.within(b.trace, set.Text(&system.Caps.Key)))
	if err != nil {
		return nil, err
	}
	b.runtime = s.runtimeOf(set, skewOf(set))
	goBy(oracle, &b.runtime)
	s.Caps.slow(&b.runtime)
	if s.Sharing == nil {
		return oracle, nil
	}
	b.cluster, _ = s.Sharing.on(s.Cluster)
	sets, err := s.Sharing.sets(b.cluster)
	if err == nil {
		err = interfere(sets, b.cluster, system.InterferenceNoise.Get(set), uint64(system.InterferenceSeed.Get(set)), &b.runtime)
	}
	return oracle, err
}

// knowledge is what the system is told of the world.
func (s *Simulation) knowledge(b *built, set *system.Settings, oracle *speedup.Oracle) (k system.Knowledge, err error) {
	k = system.Knowledge{Work: b.trace.Oracle(), Files: s.Files, Slow: s.slow(system.SlowGPUs.Get(set))}
	if k.Scores, err = s.scores(); err != nil {
		return k, err
	}
	if k.Zone, err = time.LoadLocation(set.Text(&system.MonthZone.Key)); err != nil {
		return k, fmt.Errorf("system: month_zone=%q, want a time zone such as Europe/Berlin", set.Text(&system.MonthZone.Key))
	}
	if oracle != nil {
		if k.Speeds, k.Mix = oracle, s.Mix; k.Mix == nil {
			k.Mix = mixOf(b.trace, oracle)
		}
	}
	if s.Sharing != nil {
		k.Sets, err = s.Sharing.sets(b.cluster)
	}
	if s.Caps != nil {
		k.Caps = s.Caps.Of
	}
	return k, err
}

// checkFiles refuses keys that name a file whose contents were not given with them, and those that do nothing without reports.
func (s *Simulation) checkFiles(set *system.Settings) error {
	silent := system.ReportInterval.Get(set) == 0 && set.Err() == nil
	switch err := RuntimeKeys.Held(s.Settings, s.Files); {
	case err != nil:
		return fmt.Errorf("system: %w", err)
	case set.Text(&system.Stragglers.Key) == "watch" && silent:
		return errors.New("system: stragglers=watch learns from reports, and there are none; set report_interval, such as 60")
	case system.ReportNoise.Get(set) > 0 && silent:
		return errors.New("system: report_noise is that of reports, and there are none; set report_interval, such as 60")
	}
	return nil
}

// adapt returns what the preset changes of the system's stages, nil if nothing.
func (s *Simulation) adapt(p preset, r *sim.Runtime) func(*pipeline.Stages) {
	if p.adapt == nil && s.Adapt == nil {
		return nil
	}
	return func(st *pipeline.Stages) {
		if p.adapt != nil {
			p.adapt(st, r)
		}
		if s.Adapt != nil {
			s.Adapt(st)
		}
	}
}

// skewOf returns what is known of models: what was given, else what was published.
func skewOf(set *system.Settings) func(model string) (float64, bool) {
	if system.Profiles.Taken(set) {
		if of := system.Profiles.Get(set); of != nil {
			return of
		}
	}
	return skew.Of
}

// progresses refuses an order that is looked at again before a restarted job does any work: jobs would take turns for
// ever.
func progresses(sys system.System, round time.Duration, r sim.Runtime) error {
	if sys.Every == 0 {
		return nil
	}
	name := "quantum"
	if round > 0 {
		name = "round"
	}
	what, idle := "restart_overhead", r.Restart
	if d := r.StartDelay + r.StopDelay; d > 0 {
		what, idle = "restart_overhead and delays", idle+d
	}
	if sys.Every <= idle {
		return fmt.Errorf("system: %s %v is not longer than %s %v: jobs would restart and never progress; raise it, or set restart_overhead",
			name, sys.Every, what, idle)
	}
	return nil
}

func (s *Simulation) drive(ctx context.Context, b *built) (*Outcome, error) {
	d, err := sim.New(b.trace, b.cluster, sim.Options{Runtime: b.runtime, Inject: s.Inject})
	if err != nil {
		return nil, err
	}
	rec := metrics.NewRecorder(len(b.trace.Jobs))
	if rec.Energy = s.Energy; rec.Energy.Caps == nil && s.Caps != nil {
		rec.Energy.Caps = func(_ sched.TypeID, spec *sched.JobSpec) power.Caps { return s.Caps.Of(spec.Model) }
	}
	opt := engine.Options{Sinks: append([]eventlog.Sink{rec}, s.Sinks...), Clock: s.Clock}
	var latency metrics.Latency
	if s.Clock != nil {
		opt.Decided = latency.Add
	}
	if s.Log != nil {
		opt.Sinks = append(opt.Sinks, s.Log(b.header))
	}
	state := engine.NewState(b.header)
	state.Expect(len(b.trace.Jobs))
	if err := engine.Run(ctx, state, d, b.system.Decider, opt); err != nil {
		return nil, err
	}
	out := &Outcome{Result: rec.Result(s.System), PerJob: rec.Jobs}
	out.DecisionP50, out.DecisionP99 = latency.Quantile(.50), latency.Quantile(.99)
	return out, nil
}

// KeysOf returns the keys that a system takes in a simulation under the preset of that name, "" = none: its own, those of every
// system, those of the simulated world and those of the preset.
func KeysOf(info *system.Info, preset string) key.List {
	return key.Join(info.All(), system.World, presetKeys(preset))
}

// CheckKeys returns an error about the first key, in order of name, that is none of KeysOf.
func CheckKeys(info *system.Info, preset string, settings map[string]string) error {
	return KeysOf(info, preset).Check("system: "+info.Name, settings, key.Simulation)
}

func withDefaults(given, defaults map[string]string) map[string]string {
	all := maps.Clone(defaults)
	if all == nil {
		all = make(map[string]string)
	}
	maps.Copy(all, given)
	return all
}

// scores checks the PM scores and returns what the system knows of them.
func (s *Simulation) scores() (*variability.Scores, error) {
	known := s.Known
	if known == nil {
		known = s.Scores
	}
	for _, x := range []*variability.Scores{s.Scores, known} {
		if x == nil {
			continue
		}
		if err := x.Validate(); err != nil {
			return nil, err
		}
		if n := s.Cluster.MostGPUs(); len(x.GPUs) != n {
			return nil, fmt.Errorf("variability: %s: scores of %d GPUs, the cluster has %d", x.Name, len(x.GPUs), n)
		}
	}
	return known, s.Scores.SameOrder(known)
}

func (s *Simulation) runtimeOf(set *system.Settings, skewOf func(string) (float64, bool)) sim.Runtime {
	r := sim.Runtime{
		StartDelay: system.StartDelay.Get(set),
		StopDelay:  system.StopDelay.Get(set),
		Boot:       system.BootDelay.Get(set),
		Checkpoint: system.CheckpointInterval.Get(set),
	}
	r.Changes, r.Seed = disturbances(system.SlowGPUs.Get(set)), s.NoiseSeed
	r.Report, r.Noise = system.ReportInterval.Get(set), system.ReportNoise.Get(set)
	restart := system.RestartOverhead.Get(set)
	r.Restart, r.RestartAtFirst = restart.Longest(), system.RestartAtFirst.Get(set)
	if len(restart.Models) > 0 {
		r.RestartOf = func(j *trace.Job) time.Duration { return restart.Of(j.Spec.Model) }
	}
	penalty, w := system.SpreadPenalty.Get(set), s.truth(set)
	r.Slowdown = func(v *sched.View, t *trace.Job, gpus []sched.GPUID, nodes, need int) float64 {
		x := w.slowdown(v, t, gpus)
		if nodes > need && t.Spec.Model != "" {
			f, _ := skewOf(t.Spec.Model)
			x *= 1 + penalty*f
		}
		return x
	}
	return r
}

// truth is the world in which jobs run.
func (s *Simulation) truth(set *system.Settings) *truth {
	w := &truth{scores: s.Scores}
	if s.Scores != nil {
		w.class = pal.Class(s.Scores.Classes, system.Classes.Get(set))
	}
	across, table := system.LocalityPenalty.Get(set), system.Locality.Get(set)
	if table != nil {
		w.locality = table.OrElse(across)
	} else {
		w.locality = variability.TwoLevel(across)
	}
	return w
}

// prepared returns the trace with GPU types resolved, with the demands a preset adds and without the widths and batch
// sizes that the system is to choose; the trace itself if nothing changes. Durations of a Profiled trace are yet to be measured.
func (s *Simulation) prepared(p preset, info *system.Info) (*trace.Trace, error) {
	typed := slices.ContainsFunc(s.Trace.Jobs, func(j trace.Job) bool { return j.GPUType != "" })
	for i := range s.Trace.Jobs {
		if spec := &s.Trace.Jobs[i].Spec; spec.Deadline > 0 && spec.Deadline <= spec.Submit {
			return nil, fmt.Errorf("trace: %s: job %s: deadline %v, submitted at %v, want a later deadline", s.Trace.Path, spec.Name, spec.Deadline, spec.Submit)
		}
	}
	if !typed && p.demand == nil && !info.Batches && !s.Trace.Profiled && s.Sharing == nil {
		return s.Trace, nil
	}
	memGB := float32(0)
	if s.Sharing != nil {
		_, memGB = s.Sharing.on(s.Cluster)
	}
	t := *s.Trace
	t.Jobs = slices.Clone(s.Trace.Jobs)
	for i := range t.Jobs {
		j := &t.Jobs[i]
		if j.GPUType != "" && !slices.Equal(s.Cluster.Types, []string{"gpu"}) {
			id := slices.Index(s.Cluster.Types, j.GPUType)
			if id < 0 {
				return nil, fmt.Errorf("trace: %s: job %s wants GPU type %q, the cluster has %s",
					t.Path, j.Spec.Name, j.GPUType, strings.Join(s.Cluster.Types, ", "))
			}
			j.Spec.Types = sched.TypeSet(0).With(sched.TypeID(id))
		}
		if s.Sharing != nil {
			if err := s.Sharing.describe(j, memGB); err != nil {
				return nil, err
			}
		}
		if p.demand != nil {
			p.demand(&j.Spec, s.Cluster)
		}
		if info.Batches && s.Trace.Profiled {
			j.Spec.Batch, j.Spec.GPUs.Want = sched.BatchRange{}, j.Spec.GPUs.Min
		}
	}
	return &t, nil
}
