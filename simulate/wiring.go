package simulate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/model/power"
	"github.com/trainyard/trainyard/model/remaining"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
	"github.com/trainyard/trainyard/trace"
)

// built is a simulation ready to run: a trace, a system and a world, or a replica that needs nothing more.
type built struct {
	request *Request // all read
	trace   *trace.Trace
	cluster *cluster.Cluster
	header  eventlog.Header
	system  system.System
	runtime sim.Runtime
	oracles *oracles // that the system may ask; nil = they are not watched
	alone   replicaRun
}

// build reads the settings, then makes the world, then what is known of it, then the system that knows it.
func (s *Request) build() (*built, error) {
	info, err := system.Named(s.System)
	if err != nil {
		return nil, wrong("System", err)
	}
	err = CheckKeys(info, s.Preset, s.Settings)
	if err != nil {
		return nil, wrong("Settings", err)
	}
	p, err := presetFor(s.Preset, s.System)
	if err != nil {
		return nil, wrong("Preset", err)
	}
	values := withDefaults(s.Settings, p.defaults)
	set := key.NewSettings(values).Bind(KeysOf(info, s.Preset), s.Scores != nil, s.Files)
	if p.alone != nil {
		return s.buildAlone(p, set)
	}
	w := *s
	w.Cluster = s.rented(set)
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
	b.header = eventlog.Header{Trace: s.Trace.Path, Zone: s.Trace.Zone, Cluster: s.Cluster.Name, System: s.System,
		Preset: s.Preset, Settings: values,
		Round: s.Round, Budget: s.Budget, NodeGPUs: w.perNode(), GPUs: w.Cluster.MostGPUs(), Types: b.cluster.Types,
		Pools: w.Cluster.PoolSpecs(),
		Seed:  s.Cluster.Failures.Seed}
	if b.system, err = system.Begin(&b.header, k, w.adapt(p, &b.runtime)); err != nil {
		return nil, err
	}
	return b, wrong("Round", progresses(b.system, s.Round, b.runtime))
}

// buildAlone is build for a preset with a simulator of its own.
func (s *Request) buildAlone(p preset, set *key.Settings) (b *built, err error) {
	for _, k := range [...]*key.Key{&system.SlowGPUs.Key, &system.ReportInterval.Key, &system.ReportNoise.Key} {
		if set.Has(k.Name) {
			return nil, wrong("Settings",
				fmt.Errorf("preset: %s=%s, want none: the released simulator knows nothing of it", k.Name,
					set.Text(k)))
		}
	}
	b = &built{}
	b.alone, err = p.alone(s, set)
	return b, wrong("Preset", err)
}

// knowledge is what the system knows of the world.
func (s *Request) knowledge(b *built, set *key.Settings, oracle *speedup.Oracle) (k system.Knowledge, err error) {
	b.oracles = &oracles{work: b.trace.Oracle()}
	k = system.Knowledge{Work: b.oracles, Asked: &b.oracles.curves, Files: s.Files,
		Slow: s.slow(system.SlowGPUs.Get(set))}
	if known := s.Recorded.Known; known != nil {
		k.Work = &estimates{remaining.New(), b.trace, known}
	}
	if k.Scores, err = s.scores(); err != nil {
		return k, wrong("Scores", err)
	}
	if k.Zone, err = time.LoadLocation(set.Text(&system.MonthZone.Key)); err != nil {
		return k, fmt.Errorf("system: month_zone=%q, want a time zone such as Europe/Berlin",
			set.Text(&system.MonthZone.Key))
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

// adapt returns what the preset changes of the system's stages, nil if nothing.
func (s *Request) adapt(p preset, r *sim.Runtime) func(*pipeline.Stages) {
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
		return fmt.Errorf("system: %s %v is not longer than %s %v: jobs would restart and never progress; raise it, "+
			"or set restart_overhead",
			name, sys.Every, what, idle)
	}
	return nil
}

func (s *Request) drive(ctx context.Context, b *built) (*Outcome, error) {
	d, err := sim.New(b.trace, b.cluster, sim.Options{Runtime: b.runtime, Inject: s.Inject})
	if err != nil {
		return nil, err
	}
	rec := metrics.NewRecorder(len(b.trace.Jobs))
	if rec.Energy = s.Energy; rec.Energy.Caps == nil && s.Caps != nil {
		rec.Energy.Caps = func(_ sched.TypeID, spec *sched.JobSpec) power.Caps { return s.Caps.Of(spec.Model) }
	}
	opt := engine.Options{Clock: s.Clock}
	if s.Timeline != nil { // before the Recorder, which is asked for the power up to the event
		s.Timeline.Meter = rec.Bill()
		opt.Sinks = append(opt.Sinks, s.Timeline)
	}
	opt.Sinks = append(append(opt.Sinks, rec), s.Sinks...)
	var latency metrics.Latency
	if s.Clock != nil {
		opt.Decided = latency.Add
	}
	if s.Prices != nil {
		s.Prices.by = pipeline.PricerOf(b.system.Decider)
		opt.Sinks = append(opt.Sinks, s.Prices)
	}
	if s.Log != nil {
		opt.Sinks = append(opt.Sinks, s.Log(b.header))
	}
	state := engine.NewState(b.header)
	state.Expect(len(b.trace.Jobs))
	if err := engine.Run(ctx, state, d, b.system.Decider, opt); errors.Is(err, engine.ErrUnsettled) {
		return nil, fmt.Errorf("simulate: %s: %w", s.System, err)
	} else if err != nil {
		return nil, err
	}
	out := &Outcome{Result: rec.Result(s.System), PerJob: rec.Jobs, Knows: b.oracles.knows()}
	out.DecisionP50, out.DecisionP99 = latency.Quantile(.50), latency.Quantile(.99)
	return out, nil
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
func (s *Request) scores() (*variability.Scores, error) {
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
