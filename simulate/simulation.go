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
	"github.com/trainyard/trainyard/model/dist"
	"github.com/trainyard/trainyard/model/power"
	"github.com/trainyard/trainyard/model/skew"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
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
	Sizes    *dist.Empirical                     // from the key distribution; nil = learned
	Skew     func(model string) (float64, bool)  // from the key profiles; nil = what was published
	Apps     map[string]speedup.App              // how fast jobs truly go, by the model they name; nil = in proportion to their GPUs
	Mix      []speedup.Class                     // rates and curves of applications as an oracle knows them; nil = those of the trace
	Scores   *variability.Scores                 // true PM scores of the GPUs by number; nil = GPUs do not differ
	Known    *variability.Scores                 // what the system is told of them; nil = Scores
	Classes  *variability.ClassMap               // of models, among the classes of the scores: from the key classes; nil = what jobs say, else what was published
	Locality *variability.Locality               // from the key locality; nil = the key locality_penalty alone
	Sharing  *Sharing                            // how jobs that share GPUs slow each other down; nil = they do not, and none consents by it
	Caps     CapCurves                           // what GPUs do under power caps, by model; nil = caps slow nobody down
	Energy   metrics.Energy                      // power caps, prices and carbon of energy, where known
	Inject   []sched.Event                       // user commands, prices, node changes from outside
	Sinks    []eventlog.Sink                     // told every event; not under a preset that has a simulator of its own
	Log      func(eventlog.Header) eventlog.Sink // begins one that is told how the log begins as well; nil = there is none
	Clock    func() int64                        // nanoseconds, for decision times; nil = not measured

	Slow      []variability.Spell // of GPUs that are slow for a while, one at a time each: from the key slow_gpus; nobody is told but oracles
	NoiseSeed uint64              // of the key report_noise

	Adapt func(*pipeline.Stages) // shown the system's stages, may change them; nil = nobody is
}

// Outcome is what came of a simulation.
type Outcome struct {
	metrics.Result
	PerJob []metrics.Job // in order of arrival
}

// RuntimeKeys are the keys of the simulated world, taken for every system.
var RuntimeKeys = []system.Key{
	system.Beliefs[0],
	{Name: "restart_at_first", Default: "no", Doc: "yes: at its first start as well"},
	{Name: "start_delay", Default: "0", Doc: "seconds between the order to start and the job being up"},
	{Name: "stop_delay", Default: "0", Doc: "seconds between the order to stop and the GPUs being free"},
	{Name: "boot_delay", Default: "0", Doc: "seconds a node takes to boot that sleeps, or is rented for a system that rents although the cluster names no pools"},
	{Name: "checkpoint_interval", Default: "600", Doc: "seconds between periodic checkpoints: what a node failure can cost; 0 = nothing is lost"},
	system.Beliefs[1], system.Beliefs[2], system.Beliefs[3],
	sharingKeys[0], sharingKeys[1],
	{Name: "spread_penalty", Default: "1", Doc: "slow-down of a gang on more nodes than it needs, per unit of its model's skew"},
	{Name: "slow_gpus", Doc: "FILE with gpu,from_s,to_s,factor: GPUs, by number from 0, that take factor times as long for a while; only stragglers=oracle is told"},
	{Name: "report_interval", Default: "0", Doc: "seconds between reports of jobs on their progress, from which stragglers=watch learns; 0 = only changes of speed are told, at once"},
	{Name: "report_noise", Default: "0", Doc: "deviation of the logarithm of the speed that a report tells, such as 0.02"},
}

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
	set := system.NewSettings(values)
	if p.alone != nil {
		return s.buildAlone(p, set)
	}
	w := *s
	if info.Rents {
		w.Cluster = s.Cluster.ToRent(set.Seconds("boot_delay", 0))
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
	for _, key := range [...]string{"slow_gpus", "report_interval", "report_noise"} {
		if set.Has(key) {
			return nil, fmt.Errorf("preset: %s=%s, want none: the released simulator knows nothing of it", key, set.Text(key))
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
	err = errors.Join(measure(b.trace, oracle), s.checkFiles(set), s.Caps.within(b.trace, set.Text("power_cap")))
	if err != nil {
		return nil, err
	}
	b.runtime = s.runtimeOf(set, s.skewOf())
	goBy(oracle, &b.runtime)
	s.Caps.slow(&b.runtime)
	if s.Sharing == nil {
		return oracle, nil
	}
	b.cluster, _ = s.Sharing.on(s.Cluster)
	sets, err := s.Sharing.sets(b.cluster)
	if err == nil {
		err = interfere(sets, b.cluster, set.Float("interference_noise", 0), uint64(set.Int("interference_seed", 0)), &b.runtime)
	}
	return oracle, err
}

// knowledge is what the system is told of the world.
func (s *Simulation) knowledge(b *built, set *system.Settings, oracle *speedup.Oracle) (k system.Knowledge, err error) {
	k = system.Knowledge{Work: b.trace.Oracle(), Sizes: s.Sizes, Skew: s.skewOf(), Classes: s.Classes, Locality: s.Locality, Slow: s.slow()}
	if k.Scores, err = s.scores(); err != nil {
		return k, err
	}
	if k.Zone, err = time.LoadLocation(set.Text("month_zone")); err != nil {
		return k, fmt.Errorf("system: month_zone=%q, want a time zone such as Europe/Berlin", set.Text("month_zone"))
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
	silent := set.Seconds("report_interval", 0) == 0 && set.Err() == nil
	switch text := set.Text("classes"); {
	case text == system.ObservedClasses && s.Classes != nil, text != "" && text != system.StatedClasses && text != system.ObservedClasses && s.Classes == nil:
		return fmt.Errorf("system: classes=%q, want %s, %s, or a file read into Classes", text, system.StatedClasses, system.ObservedClasses)
	case set.Text("locality") != "" && s.Locality == nil:
		return fmt.Errorf("system: locality=%q, want a file read into Locality", set.Text("locality"))
	case set.Text("slow_gpus") != "" && s.Slow == nil:
		return fmt.Errorf("system: slow_gpus=%q, want a file read into Slow", set.Text("slow_gpus"))
	case set.Text("stragglers") == "watch" && silent:
		return errors.New("system: stragglers=watch learns from reports, and there are none; set report_interval, such as 60")
	case set.Float("report_noise", 0) > 0 && silent:
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
func (s *Simulation) skewOf() func(model string) (float64, bool) {
	if s.Skew == nil {
		return skew.Of
	}
	return s.Skew
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

// CheckKeys returns an error about the first key, in order of name, that neither the system nor the simulated world
// takes, nor the preset of that name, "" = none.
func CheckKeys(info *system.Info, preset string, settings map[string]string) error {
	return info.CheckKeys(settings, slices.Concat(RuntimeKeys, presetKeys(preset))...)
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
		StartDelay: set.Seconds("start_delay", 0),
		StopDelay:  set.Seconds("stop_delay", 0),
		Boot:       set.Seconds("boot_delay", 0),
		Checkpoint: set.Seconds("checkpoint_interval", 10*time.Minute),
	}
	r.Changes, r.Seed = disturbances(s.Slow), s.NoiseSeed
	r.Report, r.Noise = set.Seconds("report_interval", 0), set.Float("report_noise", 0)
	restart := set.ByModel("restart_overhead", system.DefaultRestart)
	r.Restart, r.RestartAtFirst = restart.Longest(), set.OneOf("restart_at_first", "no", "no", "yes") == "yes"
	if len(restart.Models) > 0 {
		r.RestartOf = func(j *trace.Job) time.Duration { return restart.Of(j.Spec.Model) }
	}
	penalty, w := set.Float("spread_penalty", skew.Penalty), s.truth(set)
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
	across := 1.0
	if s.Scores != nil {
		across, w.class = variability.PublishedAcross, pal.Class(s.Scores.Classes, s.Classes)
	}
	across = set.Float("locality_penalty", across)
	if s.Locality != nil {
		w.locality = s.Locality.OrElse(across)
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
